package pop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// testBroker is the part of a broker that POP needs, over a store in memory.
type testBroker struct {
	t     testing.TB
	fs    *vfs.MemFS
	sync  bool
	clock *clock.Clock
	store *memStore
	cfg   *config.Live[config.Broker]

	// These die in a crash.
	db       *state.DB
	topics   *topic.Table
	groups   *group.Table
	offsets  *offset.Table
	polls    *longpoll.Table
	pop      *Popper
	running  context.Context
	stopping context.CancelFunc
	loops    sync.WaitGroup

	mu        sync.Mutex
	present   map[string]bool
	subs      map[string][]*clients.Subscription
	inMemory  bool
	left      map[string]bool
	waiters   int             // Limits.Total
	forbidden map[string]bool // group and topic
	events    []string
	tweak     func(*Options)
	wrap      func(*vfs.MemFS) vfs.FS
}

func newTestBroker(t testing.TB, sync bool) *testBroker {
	b := &testBroker{t: t, fs: vfs.NewCrashableMem(), sync: sync, clock: clock.New(), cfg: config.NewLive(config.DefaultBroker()),
		waiters: 1000, forbidden: map[string]bool{}, present: map[string]bool{}, left: map[string]bool{}, subs: map[string][]*clients.Subscription{}}
	b.store = newMemStore(func() int64 { return b.clock.NowMilli() })
	return b
}

func (b *testBroker) fatal(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *testBroker) note(format string, args ...any) {
	b.mu.Lock()
	b.events = append(b.events, fmt.Sprintf(format, args...))
	b.mu.Unlock()
}

// open starts everything on b.fs; loops says whether goroutines run, too.
func (b *testBroker) open(loops bool) {
	b.t.Helper()
	var err error
	var disk vfs.FS = b.fs
	if b.wrap != nil {
		disk = b.wrap(b.fs)
	}
	b.db, err = state.Open(state.Options{FS: disk, Dir: "state", Sync: b.sync, SyncInterval: time.Hour})
	b.fatal(err)
	b.topics, err = topic.Open(topic.Options{State: b.db, Config: b.cfg, LogEnd: b.store.logEnd})
	b.fatal(err)
	b.groups, err = group.Open(group.Options{State: b.db, Config: b.cfg})
	b.fatal(err)
	b.offsets, err = offset.Open(offset.Options{State: b.db})
	b.fatal(err)
	b.polls = longpoll.New(longpoll.Limits{Total: b.waiters})
	b.polls.Properties = func(physical int64, _ int32) (message.Properties, bool) {
		record, err := b.store.ReadAt(physical)
		b.fatal(err)
		return message.PropertiesOf(record)
	}
	pub := publish.New(publish.Options{
		Store: b.store, Topics: b.topics, Broker: b.cfg,
		Group: func(name string) (publish.GroupLimits, error) {
			g, err := b.groups.GetOrCreate(name)
			if err != nil {
				return publish.GroupLimits{}, err
			}
			return publish.GroupLimits{RetryQueues: g.RetryQueues, RetryMaxTimes: g.RetryMaxTimes}, nil
		},
		Ordered: func(string) bool { return false },
	})
	o := Options{
		State: b.db, Store: b.store, Offsets: b.offsets, Clock: b.clock, LongPoll: b.polls, Broker: b.cfg,
		Topic: b.topics.Get, Group: b.groups.GetOrCreate,
		Subscriptions: func(g, t string) []*clients.Subscription {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.subs[g+"/"+t]
		},
		Present: func(c string) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.present[c]
		},
		InMemory: func(string, int32) bool { return b.inMemory },
		Left: func(g, t string) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.left[g+"/"+t]
		},
		Forbidden: func(g, t string) bool {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.forbidden[g+"/"+t]
		},
		Retry: pub.Retry, DeadLetter: pub.DeadLetter, Workers: 2,
		Events: Events{
			Skipped: func(g, t string, q int32, from, to int64) { b.note("skipped %s %s %d %d..%d", g, t, q, from, to-1) },
			Lost:    func(g, t string, q int32, off int64) { b.note("lost %s %s %d %d", g, t, q, off) },
			Failed:  func(g, t string, err error) { b.note("failed %s %s: %v", g, t, err) },
			Corrected: func(g, t string, q int32, from, to int64) {
				b.note("corrected %s %s %d: %d to %d", g, t, q, from, to)
			},
		},
	}
	if b.tweak != nil {
		b.tweak(&o)
	}
	b.pop, err = Open(o)
	b.fatal(err)
	p, polls := b.pop, b.polls
	b.store.onDispatch = func(d storage.Dispatched) {
		if d.Source != "" {
			p.Dispatched(d.Source)
		}
		polls.Arrived(longpoll.Arrival{Topic: d.Topic, QueueID: d.QueueID, Offset: d.QueueOffset, TagsCode: d.TagsCode,
			Physical: d.PhysicalOffset, Size: d.Size})
	}
	if dropped, err := b.pop.DropBeyond(); err != nil {
		b.t.Fatal(err)
	} else if dropped != (Dropped{}) {
		b.note("dropped %d messages in %d windows", dropped.Messages, dropped.Windows)
	}
	b.running, b.stopping = context.WithCancel(context.Background())
	if !loops {
		return
	}
	for _, l := range b.db.Loops() {
		b.loop(l.Run)
	}
	b.loop(b.polls.Run)
	for _, l := range b.pop.Loops() {
		b.loop(l.Run)
	}
}

// loop runs until the next close.
func (b *testBroker) loop(run func(context.Context) error) {
	ctx := b.running
	b.loops.Go(func() { _ = run(ctx) })
}

// close stops everything in order.
func (b *testBroker) close() {
	b.polls.Close()
	b.stopping()
	b.loops.Wait()
	b.pop.Close()
	b.fatal(b.db.Close())
}

// crash kills the process: percent of what was not synced survives, 100 for kill -9.
func (b *testBroker) crash(percent int, rng *rand.Rand, loops bool) {
	b.t.Helper()
	clone := b.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rng})
	b.store.onDispatch = nil
	b.close() // its last writes go to the old disk
	b.fs = clone
	b.open(loops)
}

func (b *testBroker) topic(name, kind string, queues int32) {
	cfg := topic.New(name)
	cfg.ReadQueues, cfg.WriteQueues = queues, queues
	if kind != "" {
		cfg.Attributes = map[string]string{"+message.type": kind}
		if old, ok := b.topics.Get(name); ok && old.MessageType() == kind {
			cfg.Attributes = old.Attributes
		}
	}
	b.fatal(b.topics.Put(cfg))
}

func (b *testBroker) send(topic string, queue int32, body, tag, sharding string) int64 {
	m := &message.Message{
		Topic: topic, QueueID: queue, Body: []byte(body), BornTimestamp: b.clock.NowMilli(),
		BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2"),
	}
	if tag != "" {
		m.Properties = m.Properties.With(message.PropertyTags, tag)
	}
	if sharding != "" {
		m.Properties = m.Properties.With(message.PropertyShardingKey, sharding)
	}
	var at int64
	b.store.Append(m, func(p storage.Placed, err error) { b.fatal(err); at = p.QueueOffset })
	return at
}

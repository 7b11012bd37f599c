package pop_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// TestCrash runs whole brokers on a file system that can crash, again and again under load:
// kill -9 under asynchronous flush, power cuts under both policies. What a producer was
// told is stored is delivered; what a consumer was told is acked never comes back (R003,
// R006, R013). Under asynchronous flush a power cut may take what was not synced, here or
// there: a message may have two lives then, and come again, but what is still stored is
// delivered.
func TestCrash(t *testing.T) {
	for _, k := range []crashKind{{"ASYNC_FLUSH", false}, {"ASYNC_FLUSH", true}, {"SYNC_FLUSH", true}} {
		t.Run(fmt.Sprintf("%s,cut=%v", k.flush, k.cut), func(t *testing.T) {
			for seed := range uint64(3) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) { newCrashRun(t, k, seed).run() })
			}
		})
	}
}

type crashKind struct {
	flush string
	cut   bool // of the power; else the process is killed
}

type crashRun struct {
	t *testing.T
	crashKind
	rng *rand.Rand
	fs  *vfs.MemFS

	mu     sync.Mutex
	stored map[string]bool // a producer was told
	acked  map[string]bool // a consumer was told
	asked  map[string]int  // acks without an answer so far
	maybe  map[string]bool // asked when a crash came: acked or not
	sent   int
}

func newCrashRun(t *testing.T, k crashKind, seed uint64) *crashRun {
	return &crashRun{t: t, crashKind: k, rng: rand.New(rand.NewPCG(seed, 11)), fs: vfs.NewCrashableMem(),
		stored: map[string]bool{}, acked: map[string]bool{}, asked: map[string]int{}, maybe: map[string]bool{}}
}

type runningBroker struct {
	*broker.Broker
	loops *lifecycle.Group
}

func (c *crashRun) open() runningBroker {
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	sc.MappedFileSizeCommitLog, sc.MappedFileSizeConsume, sc.MaxMessageSize = 64<<10, 20*64, 16<<10
	sc.FlushDiskType, sc.FlushIntervalCommitLog = c.flush, 20
	b, err := broker.Open(broker.Options{FS: c.fs, Dir: "data", Broker: config.NewLive(bc), StoreConfig: config.NewLive(sc),
		StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"), Log: slog.New(slog.NewTextHandler(c.t.Output(), nil)),
		Tune: broker.Tuning{IndexSlots: 100, IndexEntries: 1000, MaxWaiting: 1000}})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := b.Check(); err != nil {
		c.t.Fatal(err)
	}
	g := lifecycle.New(slog.New(slog.DiscardHandler))
	for _, l := range b.Loops() {
		g.Go(l.Name, l.Run)
	}
	return runningBroker{b, g}
}

func (c *crashRun) close(b runningBroker, sound bool) {
	b.Quiesce()
	if err := b.loops.Stop(); err != nil && sound {
		c.t.Error(err)
	}
	if err := b.Close(); err != nil && sound {
		c.t.Error(err)
	}
}

func (c *crashRun) run() {
	b := c.open()
	cfg := topic.New("t")
	cfg.ReadQueues, cfg.WriteQueues = 3, 3
	if err := b.Topics.Put(cfg); err != nil {
		c.t.Fatal(err)
	}
	g, err := b.Groups.GetOrCreate("g")
	if err != nil {
		c.t.Fatal(err)
	}
	g = g.Clone()
	g.RetryMaxTimes = 1000
	if err := b.Groups.Put(g); err != nil {
		c.t.Fatal(err)
	}
	for range 6 {
		c.load(b, 10+c.rng.IntN(60))
		b = c.crash(b)
	}
	c.drain(b)
	c.close(b, true)
}

// load sends and consumes until n pops have been made.
func (c *crashRun) load(b runningBroker, n int) {
	var clients sync.WaitGroup
	for i := range 2 {
		produce := rand.New(rand.NewPCG(c.rng.Uint64(), uint64(i)))
		consume := rand.New(rand.NewPCG(c.rng.Uint64(), uint64(i)))
		clients.Go(func() { c.produce(b, produce, n*3) })
		clients.Go(func() { c.consume(b, consume, n) })
	}
	clients.Wait()
}

func (c *crashRun) produce(b runningBroker, rng *rand.Rand, n int) {
	for range n {
		c.mu.Lock()
		c.sent++
		id := fmt.Sprint("m", c.sent)
		c.mu.Unlock()
		done := make(chan struct{})
		b.Publish.Publish(&message.Message{
			Topic: "t", QueueID: int32(rng.IntN(3)), Body: []byte(id + strings.Repeat(".", rng.IntN(600))),
			BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2"),
		}, func(_ storage.Placed, err error) {
			if err == nil {
				c.mu.Lock()
				c.stored[id] = true
				c.mu.Unlock()
			}
			close(done)
		})
		if rng.IntN(4) == 0 {
			<-done
		}
	}
}

func (c *crashRun) consume(b runningBroker, rng *rand.Rand, n int) {
	for range n {
		ids, handles := c.pop(b, int64(5+rng.IntN(200)))
		for i, h := range handles {
			id := ids[i]
			ask := func(h receipt.Handle) {
				c.mu.Lock()
				c.asked[id]++
				c.mu.Unlock()
				b.Pop.Ack("g", "t", h, func(err error) {
					c.mu.Lock()
					defer c.mu.Unlock()
					c.asked[id]--
					if err == nil {
						c.acked[id] = true
					}
				})
			}
			switch rng.IntN(4) {
			case 0:
				continue // it lapses
			case 1:
				b.Pop.ChangeInvisible("g", "t", h, int64(rng.IntN(50)), rng.IntN(2) == 0, func(n receipt.Handle, err error) {
					if err == nil && n.Offset%2 == 0 {
						ask(n)
					}
				})
			default:
				ask(h)
			}
		}
		if rng.IntN(8) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

// pop checks that nothing comes back that was acked.
func (c *crashRun) pop(b runningBroker, invisible int64) (ids []string, handles []receipt.Handle) {
	done := make(chan struct{})
	c.mu.Lock()
	final := make(map[string]bool, len(c.acked))
	for id := range c.acked {
		final[id] = true
	}
	c.mu.Unlock()
	b.Pop.Pop(pop.Request{Group: "g", Topic: "t", QueueID: -1, Max: 16, Invisible: invisible}, func(res pop.Result, err error) {
		defer close(done)
		if err != nil {
			c.t.Error(err)
			return
		}
		for i := range res.Batches {
			batch := &res.Batches[i]
			for j := range batch.Records {
				var m message.Message
				if _, err := message.DecodeStored(batch.Records[j].Bytes, &m); err != nil {
					c.t.Error(err)
				}
				id, _, _ := strings.Cut(string(m.Body), ".")
				h := res.Handle(batch, &batch.Records[j], "b")
				if final[id] && !(c.cut && c.flush == "ASYNC_FLUSH") {
					c.t.Errorf("%s came back after its OK, as %s", id, h)
					c.where(b, []string{id})
				}
				ids, handles = append(ids, id), append(handles, h)
			}
		}
		res.Release()
	})
	<-done
	return ids, handles
}

// crash freezes the disk as a killed process (or a power cut) leaves it and starts anew.
func (c *crashRun) crash(b runningBroker) runningBroker {
	c.mu.Lock()
	wasAcked, wasStored := clone(c.acked), clone(c.stored)
	c.mu.Unlock()
	percent, loses := 100, c.cut && c.flush == "ASYNC_FLUSH"
	if c.cut {
		percent = c.rng.IntN(101)
	}
	if loses && c.rng.IntN(2) == 0 {
		// Syncing the state syncs the log only where the state has changed.
		if err := errors.Join(b.Store.Sync(), b.State.Sync()); err != nil {
			c.t.Fatal(err)
		}
		loses = false
	}
	frozen := c.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.rng})
	c.close(b, false)
	c.mu.Lock()
	// What was answered after the disk was frozen belongs to a future that never came, or
	// happened before it and was not seen.
	for id, n := range c.asked {
		if n > 0 {
			c.maybe[id] = true
		}
	}
	for id := range c.acked {
		if !wasAcked[id] {
			c.maybe[id] = true
		}
	}
	clear(c.asked)
	c.acked, c.stored = wasAcked, wasStored
	c.mu.Unlock()
	c.fs = frozen
	next := c.open()
	if loses {
		c.remain(next)
	}
	return next
}

// remain makes what a power cut has left the truth: what was acked may come, what is stored
// must.
func (c *crashRun) remain(b runningBroker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.acked {
		c.maybe[id] = true
	}
	clear(c.acked)
	clear(c.stored)
	c.everything(b, func(id string, _ storage.QueueName, _ int64, _ *message.Message) { c.stored[id] = true })
}

// everything goes through all that the store has; id is what the sender called it.
func (c *crashRun) everything(b runningBroker, each func(id string, q storage.QueueName, off int64, m *message.Message)) {
	for _, q := range b.Store.Queues() {
		for off := b.Store.MinOffset(q.Topic, q.QueueID); off < b.Store.MaxOffset(q.Topic, q.QueueID); off++ {
			res := b.Store.Read(storage.ReadRequest{Topic: q.Topic, QueueID: q.QueueID, Offset: off, MaxMessages: 1})
			for _, rec := range res.Records {
				var m message.Message
				if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
					c.t.Error(err)
				}
				id, _, _ := strings.Cut(string(m.Body), ".")
				each(id, q, off, &m)
			}
			res.Release()
		}
	}
}

func clone(m map[string]bool) map[string]bool {
	out := make(map[string]bool, len(m))
	for k := range m {
		out[k] = true
	}
	return out
}

// drain consumes until everything that was stored is acked.
func (c *crashRun) drain(b runningBroker) {
	deadline := time.Now().Add(2 * time.Minute)
	for {
		ids, handles := c.pop(b, 60_000)
		var acks sync.WaitGroup
		for i, h := range handles {
			acks.Add(1)
			b.Pop.Ack("g", "t", h, func(err error) {
				defer acks.Done()
				if err != nil {
					c.t.Errorf("ack of %s: %v", h, err)
					return
				}
				c.mu.Lock()
				c.acked[ids[i]] = true
				c.mu.Unlock()
			})
		}
		acks.Wait()
		if len(handles) > 0 {
			continue
		}
		var lost []string
		for id := range c.stored {
			if !c.acked[id] && !c.maybe[id] {
				lost = append(lost, id)
			}
		}
		if len(lost) == 0 {
			return
		}
		if time.Now().After(deadline) {
			c.where(b, lost)
			c.t.Fatalf("%d of %d stored messages never came: %.20v", len(lost), len(c.stored), lost)
		}
		b.Clock.Advance(time.Second)
	}
}

// where shows what became of lost messages.
func (c *crashRun) where(b runningBroker, lost []string) {
	isLost := map[string]bool{}
	for _, id := range lost {
		isLost[id] = true
	}
	c.everything(b, func(id string, q storage.QueueName, off int64, m *message.Message) {
		if isLost[id] {
			c.t.Logf("%s: %s %d %d, delivered %d times, from %s", id, q.Topic, q.QueueID, off, m.ReconsumeTimes, m.Properties.Value(message.PropertySource))
		}
	})
}

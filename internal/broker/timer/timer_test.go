package timer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

var host = netip.MustParseAddrPort("127.0.0.1:10911")

// fakeLog is the schedule topic's queues and the copies that were appended, in memory.
type fakeLog struct {
	mu     sync.Mutex
	queues map[int32][][]byte
	copies []string // dispatched copies
	fail   func(m *message.Message) error
	hold   bool // copies are written, and dispatched later
	held   []string
	clock  *clock.Clock
	timer  *Timer
}

func (f *fakeLog) Read(r storage.ReadRequest) (res storage.ReadResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[r.QueueID]
	res.Max, res.Next = int64(len(q)), r.Offset
	res.Status = storage.OffsetOverflowOne
	for ; res.Next < res.Max && len(res.Records) < r.MaxMessages; res.Next++ {
		res.Status = storage.Found
		res.Records = append(res.Records, storage.Record{QueueOffset: res.Next, PhysicalOffset: 100, Bytes: q[res.Next]})
	}
	return res
}
func (f *fakeLog) MinOffset(string, int32) int64 { return 0 }
func (f *fakeLog) MaxOffset(_ string, q int32) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.queues[q]))
}

func (f *fakeLog) AppendLight(m *message.Message, _ []string, _ bool, done func(storage.Placed, error)) {
	f.Append(m, done)
}

func (f *fakeLog) AppendHeld(m *message.Message, done func(storage.Placed, error)) { f.Append(m, done) }

func (f *fakeLog) Append(m *message.Message, done func(storage.Placed, error)) {
	if f.fail != nil {
		if err := f.fail(m); err != nil {
			done(storage.Placed{}, err)
			return
		}
	}
	if m.Topic == names.Schedule {
		now := f.clock.NowMilli()
		rec, err := message.AppendStored(nil, m)
		if err != nil {
			panic(err)
		}
		message.Patch(rec, 0, 100, now)
		f.mu.Lock()
		f.queues[m.QueueID] = append(f.queues[m.QueueID], rec)
		f.mu.Unlock()
		done(storage.Placed{}, nil)
		f.timer.Arrived(m.QueueID, now)
		return
	}
	source := m.Properties.Value(message.PropertySource)
	line := fmt.Sprintf("%s %d %s %s", m.Topic, m.QueueID, m.Body, strings.NewReplacer("\x01", "=", "\x02", ";").Replace(string(m.Properties)))
	f.mu.Lock()
	f.copies = append(f.copies, strings.Clone(line))
	hold := f.hold
	if hold {
		f.held = append(f.held, source)
	}
	f.mu.Unlock()
	done(storage.Placed{}, nil)
	if !hold {
		f.timer.Dispatched(source)
	}
}
func (f *fakeLog) AppendBatch([]*message.Message, func([]storage.Placed, error)) { panic("unused") }
func (f *fakeLog) ReadAt(int64) ([]byte, error)                                  { return nil, storage.ErrNotFound }

func (f *fakeLog) delivered() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.copies, "\n")
}

type fixture struct {
	*Timer
	t         *testing.T
	log       *fakeLog
	fs        vfs.FS
	db        *state.DB
	topics    *topic.Table
	publisher *publish.Publisher
	stop      func()
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, fs: vfs.NewMem(), log: &fakeLog{queues: map[int32][][]byte{}, clock: clock.New()}}
	live := config.NewLive(config.DefaultBroker())
	f.db = f.openState()
	t.Cleanup(func() { f.db.Close() })
	var err error
	if f.topics, err = topic.Open(topic.Options{Config: live, State: f.db}); err != nil {
		t.Fatal(err)
	}
	if err := f.topics.Put(&topic.Config{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6}); err != nil {
		t.Fatal(err)
	}
	f.publisher = publish.New(publish.Options{Store: f.log, Topics: f.topics, Broker: live})
	f.start()
	return f
}

func (f *fixture) openState() *state.DB {
	db, err := state.Open(state.Options{FS: f.fs, Dir: "state"})
	if err != nil {
		f.t.Fatal(err)
	}
	return db
}

// start opens the timer on the state and runs it.
func (f *fixture) start() {
	f.t.Helper()
	var err error
	if f.Timer, err = Open(Options{Store: f.log, State: f.db, Publish: f.publisher, Topic: f.topics.Get, Clock: f.log.clock}); err != nil {
		f.t.Fatal(err)
	}
	f.log.timer = f.Timer
	f.Clamp()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { f.Timer.Run(ctx); close(ended) }()
	f.stop = func() { cancel(); <-ended }
	f.t.Cleanup(f.stop)
}

func (f *fixture) send(body, level string) {
	f.t.Helper()
	m := &message.Message{Topic: "T", QueueID: 2, Body: []byte(body), BornHost: host, StoreHost: host,
		Properties: message.Properties("UNIQ_KEY\x01K\x02DELAY\x01" + level + "\x02")}
	f.publisher.Publish(m, func(_ storage.Placed, err error) {
		if err != nil {
			f.t.Error(err)
		}
	})
}

func (f *fixture) expect(want ...string) {
	f.t.Helper()
	if got := f.log.delivered(); got != strings.Join(want, "\n") {
		f.t.Errorf("delivered\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

func copyOf(body string, level, offset int) string {
	return fmt.Sprintf("T 2 %s UNIQ_KEY=K;CLUSTER=DefaultCluster;MSG_REGION=DefaultRegion;REAL_TOPIC=T;REAL_QID=2;__BOLIDE_SRC=level/%d/%d;", body, level, offset)
}

func TestDueInTime(t *testing.T) {
	f := newFixture(t)
	f.send("a", "3")
	f.send("b", "1")
	f.send("c", "3")
	f.log.clock.Advance(900 * time.Millisecond) // real time goes on beside it
	f.expect()
	f.log.clock.Advance(time.Second)
	f.expect(copyOf("b", 1, 0))
	f.log.clock.Advance(7 * time.Second)
	f.expect(copyOf("b", 1, 0))
	f.log.clock.Advance(2 * time.Second)
	f.expect(copyOf("b", 1, 0), copyOf("a", 3, 0), copyOf("c", 3, 1))
	if got := f.Offsets(); got[1] != 1 || got[3] != 2 {
		t.Errorf("progress %v", got)
	}
}

// TestRestartRepeatsNothing is R076: what was dispatched before a stop or a crash does
// not come again, what was not does.
func TestRestartRepeatsNothing(t *testing.T) {
	f := newFixture(t)
	f.send("a", "1")
	f.send("b", "1")
	f.log.clock.Advance(2 * time.Second)
	f.stop()
	f.send("c", "1")
	f.start()
	f.log.clock.Advance(2 * time.Second)
	f.expect(copyOf("a", 1, 0), copyOf("b", 1, 1), copyOf("c", 1, 2))
}

// TestCrashBetweenAppendAndDispatch: the copy is in the log, its dispatch is replayed by
// recovery before the timer runs; the copy is the only one (P6).
func TestCrashBetweenAppendAndDispatch(t *testing.T) {
	f := newFixture(t)
	f.send("a", "1")
	f.log.mu.Lock()
	f.log.hold = true
	f.log.mu.Unlock()
	advanced := make(chan struct{})
	go func() { f.log.clock.Advance(2 * time.Second); close(advanced) }()
	for deadline := time.Now().Add(20 * time.Second); f.log.delivered() == "" && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	f.stop()
	<-advanced
	var err error
	if f.Timer, err = Open(Options{Store: f.log, State: f.db, Publish: f.publisher, Topic: f.topics.Get, Clock: f.log.clock}); err != nil {
		t.Fatal(err)
	}
	f.Dispatched(f.log.held[0])
	f.log.hold = false
	f.Timer.alarm.Stop()
	f.start()
	f.log.clock.Advance(2 * time.Second)
	f.expect(copyOf("a", 1, 0))
}

// TestOnlyTheFailedOneIsRepeated is R077 and R078.
func TestOnlyTheFailedOneIsRepeated(t *testing.T) {
	f := newFixture(t)
	failures := 2
	for _, b := range []string{"a", "b", "c"} {
		f.send(b, "1")
	}
	f.log.fail = func(m *message.Message) error {
		if string(m.Body) == "b" && failures > 0 {
			failures--
			return errors.New("no room")
		}
		return nil
	}
	f.log.clock.Advance(10 * time.Second)
	f.expect(copyOf("a", 1, 0), copyOf("c", 1, 2), copyOf("b", 1, 1))
	if got := f.Offsets(); got[1] != 3 {
		t.Errorf("progress %v", got)
	}
}

// TestProgressOutsideTheQueueHeals is R079.
func TestProgressOutsideTheQueueHeals(t *testing.T) {
	f := newFixture(t)
	f.send("a", "1")
	f.send("b", "1")
	f.log.clock.Advance(2 * time.Second)
	f.stop()
	f.log.mu.Lock()
	f.log.queues[0] = f.log.queues[0][:1] // an older log beside newer progress
	f.log.mu.Unlock()
	f.start()
	f.send("c", "1")
	f.log.clock.Advance(2 * time.Second)
	f.expect(copyOf("a", 1, 0), copyOf("b", 1, 1), copyOf("c", 1, 1))
}

func TestDeletedTopicDropsItsMessages(t *testing.T) {
	f := newFixture(t)
	f.send("a", "1")
	if err := f.topics.Delete("T"); err != nil {
		t.Fatal(err)
	}
	f.log.clock.Advance(2 * time.Second)
	f.expect()
	if got := f.Offsets(); got[1] != 1 {
		t.Errorf("progress %v", got)
	}
}

func TestManyDueTogether(t *testing.T) {
	f := newFixture(t)
	const n = 3000
	for i := range n {
		f.send(fmt.Sprint(i), "2")
	}
	f.log.clock.Advance(6 * time.Second)
	lines := strings.Split(f.log.delivered(), "\n")
	if len(lines) != n {
		t.Fatalf("%d copies of %d messages", len(lines), n)
	}
	for i, line := range lines {
		if line != copyOf(fmt.Sprint(i), 2, i) {
			t.Fatalf("copy %d: %s", i, line)
		}
	}
}

// A stamp that is ahead of the clock, a little or far, is another server's, whose clock was wrong:
// the message is not early, and does not wait for that time.
func TestStampsAheadOfTheClock(t *testing.T) {
	c := clock.New()
	timer := &Timer{o: Options{Clock: c}, levels: publish.Levels{time.Minute}, began: c.NowMilli() - 5000}
	now := timer.began + 5000
	for _, k := range []struct{ ahead, due time.Duration }{{-2 * time.Minute, -time.Minute}, {-time.Second, 59 * time.Second},
		{30 * time.Second, 55 * time.Second}, {time.Hour, 55 * time.Second}} {
		m := &message.Message{Topic: names.Schedule, Body: []byte("x"), BornHost: host, StoreHost: host}
		rec, err := message.AppendStored(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		message.Patch(rec, 0, 100, now+k.ahead.Milliseconds())
		if due := timer.due(0, &storage.Record{Bytes: rec}); due != now+k.due.Milliseconds() {
			t.Errorf("stored %v ahead: due in %d ms", k.ahead, due-now)
		}
	}
}

// A start with fewer levels than the server had whose files it takes over keeps the progress of
// the others too: what they have delivered does not come again when they are back.
func TestImportKnowsLevelsThatAreMissing(t *testing.T) {
	f := newFixture(t)
	f.send("a", "5")
	f.log.clock.Advance(2 * time.Minute)
	delivered := copyOf("a", 5, 0)
	f.expect(delivered)
	text, err := f.Export()
	if err != nil {
		t.Fatal(err)
	}
	f.stop()

	f.fs = vfs.NewMem() // the state is this server's alone
	f.db = f.openState()
	t.Cleanup(func() { f.db.Close() })
	live := config.NewLive(config.DefaultBroker())
	few := publish.New(publish.Options{Store: f.log, Topics: f.topics, Broker: live, Levels: publish.DefaultLevels()[:2]})
	fewer, err := Open(Options{Store: f.log, State: f.db, Publish: few, Topic: f.topics.Get, Clock: f.log.clock})
	if err != nil {
		t.Fatal(err)
	}
	if err := fewer.Import(text); err != nil {
		t.Fatal(err)
	}
	fewer.Clamp()
	fewer.alarm.Stop()
	if n, err := fewer.Waiting(); err != nil || n["T"] != 0 {
		t.Errorf("%v wait, %v", n, err)
	}
	f.start()
	f.log.clock.Advance(2 * time.Minute)
	f.expect(delivered)
}

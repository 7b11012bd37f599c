package pop_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"strings"
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
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// TestEveryWrite crashes a whole broker before each of the writes of a short life in which
// messages go every way that there is: acknowledged, in both batch forms, extended, handed
// back, lapsed into the retry topic and from there to the dead letters, forwarded, moved
// in order. So a crash comes between any two steps of a move (P6). Its recovery is crashed
// as well, and then everything that was promised must hold, and each message be in one
// place. Power is cut under synchronous flush, the process killed under the other (R003,
// R006, R013, R018).
func TestEveryWrite(t *testing.T) {
	stride := 1
	if testing.Short() {
		stride = 7
	}
	for _, flush := range []string{"ASYNC_FLUSH", "SYNC_FLUSH"} {
		t.Run(flush, func(t *testing.T) {
			n := 0
			for ; ; n += stride {
				l := &life{t: t, flush: flush, at: n, rng: rand.New(rand.NewPCG(uint64(n), 3)), fs: vfs.NewCrashableMem()}
				if sprung := l.run(); !sprung || t.Failed() {
					break
				}
			}
			t.Logf("crashed before each of %d writes", n)
		})
	}
}

// life is one life of a broker, and what it promised before its end.
type life struct {
	t     *testing.T
	flush string
	at    int // the write before which it ends
	rng   *rand.Rand
	fs    *vfs.MemFS
	trap  pop.Trap

	stored, acked, forwarded map[string]bool
	asked                    map[string]bool // to be acknowledged or forwarded, with whatever answer
}

func (l *life) open() runningBroker {
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	sc.MappedFileSizeCommitLog, sc.MappedFileSizeConsume, sc.MaxMessageSize = 16<<10, 20*64, 4<<10
	sc.FlushDiskType, sc.FlushIntervalCommitLog = l.flush, 20
	b, err := broker.Open(broker.Options{FS: l.trap.Wrap(l.fs), Dir: "data", Broker: config.NewLive(bc), StoreConfig: config.NewLive(sc),
		StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"), Log: slog.New(slog.NewTextHandler(l.t.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
		Tune: broker.Tuning{IndexSlots: 20, IndexEntries: 100, MaxWaiting: 100}})
	if err != nil {
		l.t.Fatalf("write %d: %v", l.at, err)
	}
	if err := b.Check(); err != nil {
		l.t.Fatalf("write %d: %v", l.at, err)
	}
	g := lifecycle.New(slog.New(slog.DiscardHandler))
	for _, loop := range b.Loops() {
		g.Go(loop.Name, loop.Run)
	}
	return runningBroker{b, g}
}

func (l *life) close(b runningBroker) {
	b.Quiesce()
	_ = b.loops.Stop()
	_ = b.Close()
}

// run reports whether the life was long enough to end before the write.
func (l *life) run() bool {
	l.stored, l.acked, l.forwarded, l.asked = map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	b := l.open()
	l.create(b, "t", "")
	l.create(b, "f", "FIFO")
	percent := 100
	if l.flush == "SYNC_FLUSH" {
		percent = l.rng.IntN(3) * 50
	}
	l.trap.Arm(l.at, percent, l.rng)
	l.live(b)
	sprung := l.trap.Caught()
	l.trap.Disarm()
	if !sprung {
		l.trap.Arm(0, percent, l.rng)
		l.trap.Now(l.fs)
	}
	// Twice in a row: somewhere in the recovery, and then the rest of it.
	for _, again := range []bool{true, false} {
		left := l.trap.Take()
		if left == nil {
			break // the recovery wrote less than that
		}
		l.close(b)
		l.fs = left
		if again {
			l.trap.Arm(l.rng.IntN(40), percent, l.rng)
		}
		b = l.open()
		l.trap.Disarm()
	}
	l.settle(b)
	l.trap.Take()
	l.close(b)
	return sprung
}

func (l *life) create(b runningBroker, name, kind string) {
	cfg := topic.New(name)
	cfg.ReadQueues, cfg.WriteQueues = 1, 1
	if kind != "" {
		cfg.Attributes = map[string]string{"+message.type": kind}
	}
	if err := b.Topics.Put(cfg); err != nil {
		l.t.Fatal(err)
	}
	g, err := b.Groups.GetOrCreate("g")
	if err != nil {
		l.t.Fatal(err)
	}
	g = g.Clone()
	g.RetryMaxTimes = 1
	if err := b.Groups.Put(g); err != nil {
		l.t.Fatal(err)
	}
}

// promise notes what was answered before the end.
func (l *life) promise(kept map[string]bool, id string, err error) {
	if err == nil && !l.trap.Caught() {
		kept[id] = true
	}
}

// live is the short life. After its end it goes on without being believed.
func (l *life) live(b runningBroker) {
	l.send(b, "t", 1, 8)
	l.send(b, "f", 9, 11)
	got := l.pop(b, "t", 6, 60_000)
	if len(got) != 6 {
		l.t.Fatalf("write %d: %d messages", l.at, len(got))
	}
	l.ack(b, "t", got[0])
	l.change(b, "t", &got[1], 30_000)
	l.change(b, "t", &got[2], 0)
	l.forward(b, "t", got[3])
	l.ackBatch(b, "t", got[4:5])
	// got[5] is left alone. The order goes on in place, and then to the dead letters.
	first := l.pop(b, "f", 1, 1000)
	b.Clock.Advance(time.Second)
	l.pop(b, "f", 1, 1000)
	b.Clock.Advance(time.Second)
	l.await(b, names.DeadLetter("g"), first[0].id)
	second := l.pop(b, "f", 1, 60_000)
	l.ack(b, "f", second[0])
	// The one handed back comes as a retry, is acknowledged in the second form, and what
	// was left alone lapses twice.
	l.await(b, names.PopRetryV1("t", "g"), got[2].id)
	l.ackBits(b, "t", l.retry(b, got[2].id, 60_000))
	b.Clock.Advance(time.Minute)
	l.await(b, names.PopRetryV1("t", "g"), got[5].id)
	l.retry(b, got[5].id, 1000)
	b.Clock.Advance(time.Second)
	l.await(b, names.DeadLetter("g"), got[5].id)
	for _, d := range l.pop(b, "t", 32, 60_000) {
		l.ack(b, "t", d)
	}
}

func (l *life) send(b runningBroker, topic string, from, to int) {
	for i := from; i <= to; i++ {
		id := fmt.Sprint("m", i)
		done := make(chan error, 1)
		b.Publish.Publish(&message.Message{
			Topic: topic, Body: []byte(id + strings.Repeat(".", 700)),
			BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2"),
		}, func(_ storage.Placed, err error) { done <- err })
		l.promise(l.stored, id, <-done)
	}
	l.await(b, topic, fmt.Sprint("m", to))
}

type lent struct {
	id     string
	handle receipt.Handle
}

func (l *life) pop(b runningBroker, topic string, n int, invisible int64) (got []lent) {
	done := make(chan struct{})
	b.Pop.Pop(pop.Request{Group: "g", Topic: topic, QueueID: -1, Max: n, Invisible: invisible}, func(res pop.Result, err error) {
		defer close(done)
		if err != nil {
			l.t.Error(err)
		}
		for i := range res.Batches {
			batch := &res.Batches[i]
			for j := range batch.Records {
				var m message.Message
				if _, err := message.DecodeStored(batch.Records[j].Bytes, &m); err != nil {
					l.t.Error(err)
				}
				id, _, _ := strings.Cut(string(m.Body), ".")
				got = append(got, lent{id, res.Handle(batch, &batch.Records[j], "b")})
			}
		}
		res.Release()
	})
	<-done
	return got
}

// retry pops until it gets id, and acknowledges what else comes.
func (l *life) retry(b runningBroker, id string, invisible int64) lent {
	for range 10 {
		for _, d := range l.pop(b, "t", 1, invisible) {
			if d.id == id {
				return d
			}
			l.ack(b, "t", d)
		}
	}
	l.t.Fatalf("write %d: %s did not come back", l.at, id)
	return lent{}
}

func (l *life) ack(b runningBroker, topic string, d lent) {
	l.asked[d.id] = true
	done := make(chan error, 1)
	b.Pop.Ack("g", topic, d.handle, func(err error) { done <- err })
	l.promise(l.acked, d.id, <-done)
}

func (l *life) ackBatch(b runningBroker, topic string, all []lent) {
	var handles []receipt.Handle
	for _, d := range all {
		l.asked[d.id] = true
		handles = append(handles, d.handle)
	}
	done := make(chan []error, 1)
	b.Pop.AckBatch("g", topic, handles, func(errs []error) { done <- errs })
	for i, err := range <-done {
		l.promise(l.acked, all[i].id, err)
	}
}

func (l *life) ackBits(b runningBroker, topic string, d lent) {
	l.asked[d.id] = true
	done := make(chan error, 1)
	h := d.handle
	b.Pop.AckBits([]pop.BatchAck{{Group: "g", Topic: h.RealTopic(topic, "g"), QueueID: h.QueueID, StartOffset: h.Offset,
		PopTime: h.PopTime, Invisible: h.InvisibleTime, Bits: []byte{1}}}, func(_ int, err error) { done <- err })
	l.promise(l.acked, d.id, <-done)
}

func (l *life) change(b runningBroker, topic string, d *lent, invisible int64) {
	done := make(chan error, 1)
	b.Pop.ChangeInvisible("g", topic, d.handle, invisible, false, func(h receipt.Handle, err error) {
		d.handle = h
		done <- err
	})
	if err := <-done; err != nil {
		l.t.Errorf("write %d: change of %s: %v", l.at, d.id, err)
	}
}

func (l *life) forward(b runningBroker, topic string, d lent) {
	l.asked[d.id] = true
	done := make(chan error, 1)
	b.Pop.Forward("g", topic, d.handle, func(err error) { done <- err })
	l.promise(l.forwarded, d.id, <-done)
}

// in counts the messages that a topic holds, by id.
func (l *life) in(b runningBroker, topic string) map[string]int {
	all := map[string]int{}
	for off := b.Store.MinOffset(topic, 0); off < b.Store.MaxOffset(topic, 0); off++ {
		res := b.Store.Read(storage.ReadRequest{Topic: topic, Offset: off, MaxMessages: 1})
		for _, rec := range res.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				l.t.Error(err)
			}
			id, _, _ := strings.Cut(string(m.Body), ".")
			all[id]++
		}
		res.Release()
	}
	return all
}

// await waits until dispatch has shown a message.
func (l *life) await(b runningBroker, topic, id string) {
	for limit := time.Now().Add(20 * time.Second); l.in(b, topic)[id] == 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(limit) {
			l.t.Fatalf("write %d: %s is not in %s", l.at, id, topic)
		}
	}
	l.dispatched(b)
}

// dispatched waits until no delivery awaits its copy.
func (l *life) dispatched(b runningBroker) {
	for limit := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Microsecond) {
		claimed := 0
		for _, v := range b.Pop.Dump(nil) {
			for _, f := range v.InFlight {
				if f.Claimed {
					claimed++
				}
			}
		}
		if claimed == 0 {
			return
		}
		if time.Now().After(limit) {
			l.t.Fatalf("write %d: %d deliveries await their copies", l.at, claimed)
		}
	}
}

// settle consumes what is left and looks where each message went: to one place.
func (l *life) settle(b runningBroker) {
	came := map[string]int{}
	for quiet := 0; quiet < 3; quiet++ {
		for _, name := range []string{"t", "f"} {
			for _, d := range l.pop(b, name, 32, 1<<40) {
				came[d.id]++
				quiet = 0
				done := make(chan error, 1)
				b.Pop.Ack("g", name, d.handle, func(err error) { done <- err })
				if err := <-done; err != nil {
					l.t.Errorf("write %d: ack of %s: %v", l.at, d.id, err)
				}
			}
		}
		b.Clock.Advance(2 * time.Minute)
		l.dispatched(b)
	}
	if err := b.Check(); err != nil {
		l.t.Errorf("write %d: %v", l.at, err)
	}
	dead := l.in(b, names.DeadLetter("g"))
	for i := 1; i <= 11; i++ {
		id := fmt.Sprint("m", i)
		places := came[id] + dead[id]
		switch {
		case l.acked[id] && came[id] > 0:
			l.t.Errorf("write %d: %s came back after its OK", l.at, id)
		case l.forwarded[id] && (came[id] > 0 || dead[id] != 1):
			l.t.Errorf("write %d: %s is a dead letter, and came %d times and is %d times among the dead letters", l.at, id, came[id], dead[id])
		case places > 1:
			l.t.Errorf("write %d: %s came %d times and is %d times among the dead letters", l.at, id, came[id], dead[id])
		case l.stored[id] && !l.asked[id] && places == 0:
			l.t.Errorf("write %d: %s is lost", l.at, id)
			l.where(b)
		}
	}
}

// where shows what there is.
func (l *life) where(b runningBroker) {
	for _, q := range b.Store.Queues() {
		l.t.Logf("%s: %v", q.Topic, l.in(b, q.Topic))
	}
	for _, v := range b.Pop.Dump(nil) {
		l.t.Logf("%+v", v)
	}
}

package pop

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// popNow pops what is there now.
func popNow(t *testing.T, b *testBroker, r Request) Result {
	t.Helper()
	var got Result
	b.pop.Pop(r, func(res Result, err error) {
		b.fatal(err)
		got = res
	})
	return got
}

func handleOf(res *Result) receipt.Handle {
	return res.Handle(&res.Batches[0], &res.Batches[0].Records[0], "b")
}

// A group is deleted while its members pop: what they pop between the moment that its
// windows go and the commit of the deletion has records whose window the deletion takes.
// The next start finds them and goes on.
func TestRecordsWithoutTheirWindow(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(false)
	b.topic("T", "", 1)
	for range 3 {
		b.send("T", 0, "x", "", "")
	}
	r := Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 60_000}
	popNow(t, b, r)
	deletion := b.db.NewBatch()
	b.pop.DropGroup("g", deletion)
	popNow(t, b, r)
	b.fatal(b.db.Commit(deletion))
	b.crash(100, rand.New(rand.NewPCG(1, 1)), false)
	if w := b.pop.window(windowKey{"g", "T", 0}); w != nil {
		t.Errorf("the window is back: %+v", w.key)
	}
	// A window with the number of the one that is gone must not find its records.
	for range 3 {
		if res := popNow(t, b, r); res.Messages() != 1 {
			t.Fatalf("%d messages", res.Messages())
		}
	}
	b.crash(100, rand.New(rand.NewPCG(1, 1)), false)
	if n := b.pop.window(windowKey{"g", "T", 0}).mu.inFlight; n != 3 {
		t.Errorf("%d messages are in flight, 3 were popped", n)
	}
	b.close()
}

// A message that comes for a request whose connection has closed goes to the next that waits.
func TestGoneTakesNothing(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(false)
	defer func() { b.close() }()
	b.topic("T", "", 1)
	var peer longpoll.Peer
	type answer struct {
		who      string
		messages int
		err      error
	}
	answers := make(chan answer, 2)
	ask := func(who string, peer *longpoll.Peer) {
		b.pop.Pop(Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 60_000, PollTime: time.Hour, Peer: peer},
			func(res Result, err error) { answers <- answer{who, res.Messages(), err} })
	}
	ask("gone", &peer)
	ask("there", &longpoll.Peer{})
	b.send("T", 0, "x", "", "") // wakes the one that has waited longer
	b.polls.Release(&peer)
	for _, l := range b.pop.Loops() {
		b.loop(l.Run)
	}
	for range 2 {
		select {
		case a := <-answers:
			if want := (answer{"gone", 0, ErrGone}); a.who == "gone" && a != want {
				t.Errorf("%+v", a)
			}
			if want := (answer{"there", 1, nil}); a.who == "there" && a != want {
				t.Errorf("%+v", a)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("no answer, %d wait", b.polls.Waiting())
		}
	}
}

// A request whose connection closes between its wake-up and the next look finds nothing and
// ends: it does not wait on for nobody.
func TestGoneWhileWoken(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(false)
	defer func() { b.close() }()
	b.topic("T", "", 1)
	var peer longpoll.Peer
	answers := make(chan error, 1)
	b.pop.Pop(Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 60_000, PollTime: time.Hour, Peer: &peer},
		func(_ Result, err error) { answers <- err })
	b.polls.WakeIf(func(*longpoll.Waiter) bool { return true })
	b.polls.Release(&peer)
	for _, l := range b.pop.Loops() {
		b.loop(l.Run)
	}
	select {
	case err := <-answers:
		if err != ErrGone {
			t.Errorf("answered %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("no answer, %d wait", b.polls.Waiting())
	}
}

// Times from the wire that no clock reaches: the message stays invisible, it does not
// lapse at once because a sum has run over.
func TestAbsurdInvisibleTimes(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(false)
	defer func() { b.close() }()
	b.topic("T", "", 1)
	b.send("T", 0, "x", "", "")
	res := popNow(t, b, Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: math.MaxInt64})
	if due, now := b.pop.due.next(), b.clock.NowMilli(); due < now+1000 {
		t.Errorf("popped for ever, due at %d, now is %d", due, now)
	}
	var next receipt.Handle
	b.pop.ChangeInvisible("g", "T", handleOf(&res), math.MaxInt64, false, func(h receipt.Handle, err error) {
		b.fatal(err)
		next = h
	})
	if due, now := b.pop.due.next(), b.clock.NowMilli(); due < now+1000 {
		t.Errorf("changed to for ever, due at %d, now is %d", due, now)
	}
	b.pop.Ack("g", "T", next, b.fatal)
	b.send("T", 0, "y", "", "")
	res = popNow(t, b, Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: math.MinInt64})
	if r := b.pop.window(windowKey{"g", "T", 0}).findLocked(1); r == nil || r.due < res.PopTime {
		t.Errorf("popped for less than nothing: %+v", r)
	}
}

// A message of a retry topic that is handed back is for whoever waits, whatever queue of
// the topic it waits for.
func TestHandedBackRetryWakesAnyQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestBroker(t, true)
		b.open(true)
		defer func() { b.close() }()
		b.topic("T", "", 4)
		b.send("T", 0, "x", "", "")
		change := func(h receipt.Handle, suspend bool) {
			done := make(chan error, 1)
			b.pop.ChangeInvisible("g", "T", h, 0, suspend, func(_ receipt.Handle, err error) { done <- err })
			b.fatal(<-done)
			synctest.Wait()
		}
		r := Request{Group: "g", Topic: "T", QueueID: 0, Max: 1, Invisible: 60_000}
		res := popNow(t, b, r)
		change(handleOf(&res), false) // into the retry topic
		time.Sleep(time.Second)
		r.QueueID = 3
		res = popNow(t, b, r)
		if res.Messages() != 1 || res.Batches[0].RetryFlag == receipt.FlagNormal {
			t.Fatalf("%+v", res)
		}
		r.PollTime = 20 * time.Second
		answered := make(chan Result, 1)
		b.pop.Pop(r, func(res Result, err error) {
			b.fatal(err)
			answered <- res
		})
		began := time.Now()
		change(handleOf(&res), true)
		if again := <-answered; again.Messages() != 1 || time.Since(began) > time.Second {
			t.Errorf("%d messages after %v", again.Messages(), time.Since(began))
		}
	})
}

// The revive loop comes to a delivery between the moment that a change has named it anew and
// the moment that the change is queued for its commit. A crash right after the copy is written
// must find the delivery in the database, or the message would be there twice (P6).
func TestLapseBeforeTheChangeIsQueued(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(false)
	b.topic("T", "", 1)
	b.send("T", 0, "x", "", "")
	r := Request{Group: "g", Topic: "T", QueueID: -1, Max: 32, Invisible: 100}
	pass := func(ms int64) { // no loop waits here that Advance could wait for
		for end := b.pop.now() + ms; b.pop.now() <= end; {
			time.Sleep(time.Millisecond)
		}
	}
	if res := popNow(t, b, r); res.Messages() != 1 {
		t.Fatalf("%d messages", res.Messages())
	}
	w := b.pop.window(windowKey{"g", "T", 0})
	w.mu.Lock()
	b.pop.splitLocked(w, w.findLocked(0), 0, Changed{PopTime: b.pop.now() + 1}, false)
	w.mu.Unlock()
	pass(1)
	b.store.onDispatch = nil // the crash comes before the copy is dispatched
	b.pop.reviveDue()
	b.crash(100, rand.New(rand.NewPCG(1, 1)), false)
	for _, d := range slices.Clone(b.store.recent) {
		b.store.dispatch(d)
	}
	came := 0
	for range 3 {
		res := popNow(t, b, r)
		came += res.Messages()
		for i := range res.Batches {
			for j := range res.Batches[i].Records {
				b.pop.Ack("g", "T", res.Handle(&res.Batches[i], &res.Batches[i].Records[j], "b"), b.fatal)
			}
		}
		pass(100)
		for b.pop.reviveDue() {
		}
	}
	if came != 1 {
		t.Errorf("the message came %d times", came)
	}
	b.close()
}

// Messages were popped while the machine's clock was a year ahead, which the next process does not
// believe: what is in flight ends in time all the same, its receipts count, and no delivery has a
// name that is not later than theirs.
func TestPoppedByAClockThatWasAhead(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(true)
	defer func() { b.close() }()
	b.topic("T", "", 1)
	b.send("T", 0, "x", "", "")
	b.send("T", 0, "y", "", "")
	b.clock.Step(365 * 24 * time.Hour)
	r := Request{Group: "g", Topic: "T", QueueID: -1, Max: 1, Invisible: 60_000}
	acked := popNow(t, b, r)
	lapses := popNow(t, b, r)
	b.close()
	b.clock = clock.New()
	b.open(true)
	if now, wall := b.clock.Read(); now != wall {
		t.Errorf("the time is %d ms ahead", now-wall)
	}
	b.pop.Ack("g", "T", handleOf(&acked), b.fatal)
	b.clock.Advance(50 * time.Second)
	if res := popNow(t, b, r); len(res.Batches) != 0 {
		t.Error("it has lapsed early")
	}
	b.clock.Advance(13 * time.Second)
	res := popNow(t, b, r)
	if len(res.Batches) != 1 || res.PopTime <= lapses.PopTime {
		t.Errorf("after 63 s there is %+v, popped before at %d", res, lapses.PopTime)
	}
}

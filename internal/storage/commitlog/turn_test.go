package commitlog

import (
	"context"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage/segment"
)

// openAsync opens an empty log that completes appends after the write.
func openAsync(t *testing.T) *Log[int] {
	t.Helper()
	l, err := Open[int](Options{Pool: segment.NewPool(vfs.NewMem(), 8), Dir: "log", Size: 1 << 22, MaxOpen: 1 << 22, Keep: 1 << 20, Chunk: 1 << 16,
		Busy: 5 * time.Second, Now: func() int64 { return time.Now().UnixMilli() }, Rounds: new(round.Rounds), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l.Start(0, 0, 0)
	l.Inline(atOnce{l})
	return l
}

// add appends a record; the channel gets what becomes of it.
func (l *Log[N]) add(t *testing.T, held bool) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	if err := l.Append(&Put[N]{Records: record(), Held: held, Done: func(_ Placed, err error) { done <- err }}); err != nil {
		t.Fatal(err)
	}
	return done
}

// written waits for what was appended.
func written(t *testing.T, what string, done <-chan error) {
	t.Helper()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(5 * time.Second):
		t.Fatalf("%s is not written", what)
	}
}

// sleeping waits until the writer is asleep.
func (l *Log[N]) sleeping() {
	for asleep := false; !asleep; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		asleep = l.mu.asleep
		l.mu.Unlock()
	}
}

// What wakes the writer is written by the end of a round, too, when the writer has not begun: here
// it never does. The wake-up that is left over does no harm.
func TestSettleTakesTheTurnOfAWokenWriter(t *testing.T) {
	for name, settle := range map[string]func(*Log[int]){"Settle": (*Log[int]).Settle, "SettleAll": (*Log[int]).SettleAll} {
		t.Run(name, func(t *testing.T) {
			l := openAsync(t)
			l.mu.asleep = true // as a writer leaves it that has found nothing
			first := l.add(t, false)
			if l.mu.asleep || len(l.wake) != 1 {
				t.Fatal("the writer was not woken")
			}
			settle(l)
			select {
			case err := <-first:
				if err != nil {
					t.Fatal(err)
				}
			default:
				t.Fatal("the writer that has not begun was waited for")
			}
			if l.Done() != l.End() {
				t.Error("what was written was not dispatched")
			}
			second := l.add(t, false)
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- l.Run(ctx) }()
			written(t, "what comes before the writer begins", second)
			l.sleeping()
			written(t, "what comes when it sleeps", l.add(t, false))
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// The writer may write and fall asleep while the end of a round looks who is to write. It is woken
// for what comes later all the same.
func TestWriterThatFallsAsleepBesideSettle(t *testing.T) {
	l := openAsync(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	l.opt.Rounds.Begin()
	for range 20 {
		l.sleeping()
		settled := make(chan struct{})
		first := l.add(t, true)
		second := func() <-chan error {
			// On one processor, whoever lets go of a mutex that others have waited for for more than a
			// millisecond lets the next of them run at once: so Settle stops right behind the lock in
			// which it looks.
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			wait := func() { time.Sleep(2 * time.Millisecond) }
			l.mu.Lock()
			go func() { l.Settle(); close(settled) }()
			wait() // it is the first in the line for mu
			l.mu.asleep = false
			l.rouse()
			wait() // the writer is the second
			l.mu.Unlock()
			l.mu.Lock() // Settle has been woken, finds mu locked and insists
			wait()
			l.mu.Unlock()
			return l.add(t, true) // the writer has written the first and sleeps
		}()
		written(t, "the first", first)
		<-settled
		l.Settle() // the round of the second
		written(t, "the second", second)
		written(t, "what belongs to no round", l.add(t, false))
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is too much for the end of a round, or comes while that writes, the writer writes.
func TestSettleLeavesTheRestToTheWriter(t *testing.T) {
	l := openAsync(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	l.opt.Rounds.Begin()
	l.sleeping()
	var much []<-chan error
	for range maxInline + 1 {
		much = append(much, l.add(t, true))
	}
	l.Settle()
	for _, done := range much {
		written(t, "much", done)
	}
	l.sleeping()
	var later <-chan error
	put := Put[int]{Records: record(), Held: true, Done: func(Placed, error) {
		later = l.add(t, true)
		l.Settle() // of another round
	}}
	if err := l.Append(&put); err != nil {
		t.Fatal(err)
	}
	l.Settle()
	written(t, "what comes while a round's end writes", later)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

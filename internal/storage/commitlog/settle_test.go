package commitlog

import (
	"context"
	"log/slog"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// openSync opens an empty log with synchronous flush.
func openSync(t *testing.T) *Log[int] {
	t.Helper()
	l, err := Open[int](Options{Pool: slowPool(), Dir: "log", Size: 1 << 22, Sync: true, MaxOpen: 1 << 22, Keep: 1 << 20, Chunk: 1 << 16,
		Busy: 5 * time.Second, Now: func() int64 { return time.Now().UnixMilli() }, Rounds: new(round.Rounds), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	l.Start(0, 0, 0)
	l.Inline(atOnce{l})
	return l
}

// atOnce dispatches whatever it is offered.
type atOnce struct{ l *Log[int] }

func (atOnce) Begin(*Batch[int]) bool   { return true }
func (d atOnce) Dispatch(b *Batch[int]) { d.l.Dispatched(b) }

// slowPool is of files whose syncs take a while.
func slowPool() *segment.Pool {
	slow := errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			time.Sleep(20 * time.Millisecond)
		}
		return nil
	})
	return segment.NewPool(errorfs.Wrap(vfs.NewMem(), slow), 8)
}

func record() []byte {
	m := &message.Message{Topic: "t", Body: []byte("body"), BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2")}
	b, err := message.AppendStored(nil, m)
	if err != nil {
		panic(err)
	}
	return b
}

// A writer that gathers for a sync keeps its batch: if Settle took it, the writer would wait
// for a wake that nobody sends, and not for the end of its context.
func TestSettleLeavesGatheringAlone(t *testing.T) {
	l := openSync(t)
	done := make(chan error, 1)
	if err := l.Append(&Put[int]{Records: record(), Held: true, Done: func(_ Placed, err error) { done <- err }}); err != nil {
		t.Fatal(err)
	}
	l.gathering.sync, l.gathering.expected, l.gathering.since = time.Second, 2, time.Now().Add(5*time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	for asleep := false; !asleep; runtime.Gosched() {
		l.mu.Lock()
		asleep = l.mu.asleep
		l.mu.Unlock()
	}
	l.Settle() // as the round of the append, or of anything else, does
	if err := <-done; err != nil {
		t.Error(err)
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the writer does not end with its context")
		l.wake <- struct{}{}
	}
}

package txn

import (
	"strconv"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/names"
)

const (
	opMost = 4096  // bytes of an op message's body
	opWait = 3_000 // ms that a decided half message waits for its op message
)

// ops is what Apache's broker has to know to go on: which half messages are decided. Bolide
// knows without, so nothing waits for an op message, and many half messages share one.
type ops struct {
	pending []int64 // decided, in no op message yet
	bytes   int     // of the body that they make
	due     int64   // when it is written at the latest; 0: nothing pending
	// low is the op queue's offset from which on op messages matter: those before speak of
	// half messages before the first open one. marked is a later one that will be low as soon
	// as nothing before half queue offset until is open.
	low, marked, until int64
	end                int64 // of the op queue, as far as stored
}

// opLocked notes a place of the half queue that is done with.
func (t *Txn) opLocked(at int64) {
	o := &t.mu.ops
	o.pending = append(o.pending, at)
	o.bytes += digits(at) + 1
	switch {
	case o.due == 0:
		o.due = t.o.Clock.NowMilli() + opWait
		t.alarm.Earlier(o.due)
	case o.bytes >= opMost && o.due != 1:
		o.due = 1
		t.alarm.Earlier(1)
	}
}

func digits(n int64) int {
	d := 1
	for ; n >= 10; n /= 10 {
		d++
	}
	return d
}

// opBody is the body of the op message for one place.
func opBody(at int64) []byte { return append(strconv.AppendInt(nil, at, 10), ',') }

// writeOps writes the op messages that are due, or all, and then waits for them.
func (t *Txn) writeOps(all bool) {
	for {
		t.mu.Lock()
		o := &t.mu.ops
		if len(o.pending) == 0 || !all && o.due > t.o.Clock.NowMilli() {
			t.mu.Unlock()
			return
		}
		n, body := 0, make([]byte, 0, min(o.bytes, opMost+32))
		for n < len(o.pending) && len(body) < opMost {
			body = append(strconv.AppendInt(body, o.pending[n], 10), ',')
			n++
		}
		batch := append([]int64(nil), o.pending[:n]...)
		o.pending = append(o.pending[:0], o.pending[n:]...)
		o.bytes -= len(body)
		o.due = 0
		if len(o.pending) > 0 {
			o.due = t.o.Clock.NowMilli() + opWait
			if o.bytes >= opMost {
				o.due = 1
			}
		}
		t.mu.Unlock()
		written := make(chan error, 1)
		t.o.Publish.Op(body, "", t.o.Clock.NowMilli(), false, t.opStored(func(err error) { written <- err }))
		if err := <-written; err != nil {
			t.o.Log.Warn("an op message could not be written and will be tried again", "err", err)
			t.mu.Lock()
			o.pending = append(batch, o.pending...)
			o.bytes += len(body)
			o.due = t.o.Clock.NowMilli() + opWait
			t.mu.Unlock()
			return
		}
	}
}

// opStored notes where an op message went.
func (t *Txn) opStored(done func(error)) func(storage.Placed, error) {
	return func(at storage.Placed, err error) {
		if err == nil {
			t.mu.Lock()
			t.mu.ops.end = max(t.mu.ops.end, at.QueueOffset+1)
			t.mu.Unlock()
		}
		done(err)
	}
}

// commitOffsets stores from where on Apache's broker has to read the two topics: the first
// half message that is open, and the op messages that may speak of later ones. All op
// messages before the mark were there when the half queue ended at until, so they speak of
// nothing behind it.
func (t *Txn) commitOffsets() {
	opEnd := t.o.Store.MaxOffset(names.OpHalf, 0)
	t.mu.Lock()
	opEnd = max(opEnd, t.mu.ops.end)
	low := t.mu.end
	if first, ok := t.mu.order.first(); ok {
		low = min(low, first)
	}
	o := &t.mu.ops
	if low >= o.until {
		o.low = max(o.low, min(o.marked, opEnd))
		o.marked, o.until = opEnd, t.mu.end
		if low >= o.until && len(o.pending) == 0 {
			o.low = max(o.low, opEnd)
		}
	}
	op, used := o.low, t.mu.end > 0
	t.mu.Unlock()
	if !used {
		return
	}
	for name, off := range map[string]int64{names.Half: low, names.OpHalf: op} {
		if err := t.o.Offsets.Commit(names.TransactionGroup, name, 0, off); err != nil {
			t.o.Log.Warn("the progress of transactions could not be noted", "topic", name, "err", err)
		}
	}
}

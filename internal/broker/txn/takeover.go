package txn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// TakenOver is what TakeOver found.
type TakenOver struct{ Open, Decided, Repeated int }

// TakeOver forgets what is known and finds out anew from the two topics and the offsets that
// another server has left: what lies in the half queue from its offset on and is in no op
// message is open. Apache's broker writes a half message again each time that it asks, so of
// those with the same id the last counts, and a decision of any is one of all.
func (t *Txn) TakeOver() (TakenOver, error) {
	from, ok := t.o.Offsets.Query(names.TransactionGroup, names.Half, 0)
	low, end := t.o.Store.MinOffset(names.Half, 0), t.o.Store.MaxOffset(names.Half, 0)
	if !ok || from < low {
		from = low
	}
	decided, opEnd, err := t.readOps(from)
	if err != nil {
		return TakenOver{}, err
	}
	b := t.o.State.NewBatch()
	b.DeletePrefix(state.Transactions, nil)
	if err := t.o.State.Commit(b); err != nil {
		return TakenOver{}, fmt.Errorf("forget transactions: %w", err)
	}
	t.mu.Lock()
	t.clear()
	t.mu.end, t.mu.ops.low = end, opEnd.low
	t.mu.Unlock()
	var got TakenOver
	byID := make(map[string]*entry)
	over := make(map[string]bool) // ids that a decided copy had
	err = t.eachOf(names.Half, from, func(rec *storage.Record, m *message.Message) {
		id := strings.Clone(m.UniqueID())
		first := rec.QueueOffset
		if n, err := strconv.ParseInt(m.Properties.Value(message.PropertyTransactionPreparedOffset), 10, 64); err == nil && n >= 0 {
			first = n // the one that its producer knows
		}
		_, _, whole := realPlace(m.Properties)
		switch {
		case !whole || decided[rec.QueueOffset] || decided[first] || id != "" && over[id]:
			got.Decided++
			t.placeTakenOver(rec.QueueOffset, Elsewhere)
			if id != "" {
				over[id] = true
				if e := byID[id]; e != nil {
					got.Open, got.Decided = got.Open-1, got.Decided+1
					t.endTakenOver(e)
					delete(byID, id)
				}
			}
			return
		case id != "" && byID[id] != nil:
			got.Repeated++
			e := byID[id]
			t.placeTakenOver(rec.QueueOffset, Moved)
			t.mu.Lock()
			t.movedLocked(e.first, &storage.Placed{QueueOffset: rec.QueueOffset, PhysicalOffset: rec.PhysicalOffset, Size: int32(len(rec.Bytes))})
			t.mu.Unlock()
			return
		}
		got.Open++
		origin := rec.PhysicalOffset
		if first != rec.QueueOffset {
			origin = -1
			t.placeTakenOver(rec.QueueOffset, Moved)
		}
		t.placeTakenOver(first, Undecided)
		e := &entry{first: first, origin: origin, at: rec.QueueOffset, physical: rec.PhysicalOffset, size: int32(len(rec.Bytes)), stored: m.StoreTimestamp}
		t.mu.Lock()
		t.mu.outcomes.pages[first/pageSize].held++
		t.openLocked(e)
		t.mu.fresh.push(e)
		t.mu.Unlock()
		if id != "" {
			byID[id] = e
		}
	})
	if err != nil {
		return got, err
	}
	b = t.o.State.NewBatch()
	done := t.Save(b)
	err = t.o.State.Commit(b)
	done(err)
	t.mu.Lock()
	t.armLocked()
	t.mu.Unlock()
	return got, err
}

func (t *Txn) placeTakenOver(offset int64, is Outcome) {
	t.lockPage(offset).set(offset%pageSize, is)
	t.mu.Unlock()
}

// endTakenOver ends one that a later copy of it says is decided.
func (t *Txn) endTakenOver(e *entry) {
	p := t.lockPage(e.first)
	p.set(e.first%pageSize, Elsewhere)
	p.held--
	e.gone = true
	delete(t.mu.open, e.first)
	t.opLocked(e.at)
	t.mu.Unlock()
}

// opRange is what was read of the op queue.
type opRange struct{ low int64 }

// readOps reads which half messages from an offset on are decided.
func (t *Txn) readOps(from int64) (map[int64]bool, opRange, error) {
	low, ok := t.o.Offsets.Query(names.TransactionGroup, names.OpHalf, 0)
	if first := t.o.Store.MinOffset(names.OpHalf, 0); !ok || low < first {
		low = first
	}
	decided := make(map[int64]bool)
	err := t.eachOf(names.OpHalf, low, func(_ *storage.Record, m *message.Message) {
		for text := range strings.SplitSeq(string(m.Body), ",") {
			if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil && n >= 0 {
				decided[n] = true
			}
		}
	})
	return decided, opRange{low: low}, err
}

// eachOf reads queue 0 of a topic from an offset to its end.
func (t *Txn) eachOf(topic string, from int64, each func(*storage.Record, *message.Message)) error {
	for {
		r := t.o.Store.Read(storage.ReadRequest{Topic: topic, Offset: from, MaxMessages: 256, MaxBytes: 4 << 20})
		next := r.Next
		for i := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(r.Records[i].Bytes, &m); err != nil {
				r.Release()
				return fmt.Errorf("%s, offset %d: %w", topic, r.Records[i].QueueOffset, err)
			}
			each(&r.Records[i], &m)
		}
		status := r.Status
		r.Release()
		switch {
		case status == storage.Found && next > from:
		case (status == storage.OffsetTooSmall || status == storage.MessageWasRemoved) && next > from:
		default:
			return nil
		}
		from = next
	}
}

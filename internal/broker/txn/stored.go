package txn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Keys of the keyspace Transactions; docs/formats/state.md draws the values.
//
//	'h'                   the head: numbers of the whole
//	'o' offset (8 bytes)  one open half message
//	'p' number (8 bytes)  one page of outcomes
const (
	headKey    = 'h'
	openPrefix = 'o'
	pagePrefix = 'p'

	formatVersion = 1
)

func keyOf(prefix byte, n int64) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefix}, uint64(n))
}

var errStored = errors.New("stored transactions are not readable")

// load reads what was stored.
func (t *Txn) load() error {
	head, ok, err := t.o.State.Get(state.Transactions, []byte{headKey})
	if err != nil || !ok {
		return err
	}
	if err := t.decodeHead(head); err != nil {
		return err
	}
	var list []*entry
	err = t.o.State.Scan(state.Transactions, []byte{openPrefix}, func(key, value []byte) error {
		e, err := decodeOpen(key, value)
		if err != nil {
			return err
		}
		t.mu.open[e.first] = e
		list = append(list, e)
		n := e.first / pageSize
		if t.mu.outcomes.pages[n] == nil {
			p, err := t.readPage(n)
			if err != nil {
				return err
			}
			t.mu.outcomes.pages[n] = p
		}
		t.mu.outcomes.pages[n].held++
		t.mu.fresh.push(e)
		return nil
	})
	t.mu.order.restore(list)
	return err
}

func (t *Txn) readPage(n int64) (*page, error) {
	p := new(page)
	value, ok, err := t.o.State.Get(state.Transactions, keyOf(pagePrefix, n))
	if err != nil {
		return p, err
	}
	if ok && len(value) != len(p.bits) {
		return p, fmt.Errorf("%w: page %d has %d bytes", errStored, n, len(value))
	}
	copy(p.bits[:], value)
	return p, nil
}

func (t *Txn) encodeHeadLocked() []byte {
	o, c := &t.mu.ops, &t.mu.outcomes
	b := []byte{formatVersion}
	for _, n := range []int64{t.mu.end, c.low, c.high, o.low, o.marked, o.until, int64(len(o.pending))} {
		b = binary.AppendVarint(b, n)
	}
	for _, at := range o.pending {
		b = binary.AppendVarint(b, at)
	}
	return b
}

func (t *Txn) decodeHead(b []byte) error {
	if len(b) == 0 || b[0] != formatVersion {
		return fmt.Errorf("%w: head %x", errStored, b)
	}
	o, c := &t.mu.ops, &t.mu.outcomes
	r := state.ReadValue(b[1:])
	t.mu.end, c.low, c.high, o.low, o.marked, o.until = r.Varint(), r.Varint(), r.Varint(), r.Varint(), r.Varint(), r.Varint()
	for n := r.Varint(); n > 0 && !r.Short(); n-- {
		at := r.Varint()
		o.pending = append(o.pending, at)
		o.bytes += digits(at) + 1
	}
	if !r.Whole() {
		return fmt.Errorf("%w: head %x", errStored, b)
	}
	if len(o.pending) > 0 {
		o.due = t.o.Clock.NowMilli() + opWait
	}
	return nil
}

func (e *entry) encode() []byte {
	b := []byte{formatVersion}
	for _, n := range []int64{e.origin, e.at, e.physical, int64(e.size), e.stored, e.due, int64(e.checks)} {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func decodeOpen(key, value []byte) (*entry, error) {
	if len(key) != 9 || len(value) == 0 || value[0] != formatVersion {
		return nil, fmt.Errorf("%w: %x = %x", errStored, key, value)
	}
	r := state.ReadValue(value[1:])
	e := &entry{first: int64(binary.BigEndian.Uint64(key[1:])), saved: true,
		origin: r.Varint(), at: r.Varint(), physical: r.Varint(), size: int32(r.Varint()), stored: r.Varint(), due: r.Varint(), checks: int32(r.Varint())}
	if !r.Whole() || e.first < 0 {
		return nil, fmt.Errorf("%w: %x = %x", errStored, key, value)
	}
	return e, nil
}

// Save writes what has changed since the last time. The store calls for it before it forgets
// what it has dispatched; what happens later is dispatched again in recovery. The returned
// function is to be called with the outcome of the batch.
func (t *Txn) Save(b *state.Batch) (done func(error)) {
	t.mu.Lock()
	ready, low := t.mu.ready, int64(0)
	t.mu.Unlock()
	if ready {
		t.commitOffsets()
		low = t.o.Store.MinOffset(names.Half, 0) / pageSize
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var s saved
	c := &t.mu.outcomes
	newest := t.mu.end / pageSize
	for n, p := range c.pages {
		if p.held > 0 {
			low = min(low, n)
		}
		if p.dirty {
			p.dirty = false
			s.pages = append(s.pages, n)
			b.Put(state.Transactions, keyOf(pagePrefix, n), p.bits[:])
			if c.high < c.low { // none is stored yet
				c.low, c.high = n, n
			}
			c.low, c.high = min(c.low, n), max(c.high, n)
		} else if p.held == 0 && n != newest {
			delete(c.pages, n)
		}
	}
	for _, e := range t.mu.changed {
		if e.dirty = false; !e.gone {
			e.saved = true
			s.open = append(s.open, e)
			b.Put(state.Transactions, keyOf(openPrefix, e.first), e.encode())
		}
	}
	t.mu.changed = nil
	s.dropped, t.mu.dropped = t.mu.dropped, nil
	for _, first := range s.dropped {
		b.Delete(state.Transactions, keyOf(openPrefix, first))
	}
	for ; c.low < low && c.low <= c.high; c.low++ { // the half messages are gone with their log file
		b.Delete(state.Transactions, keyOf(pagePrefix, c.low))
	}
	if len(s.pages)+len(s.open)+len(s.dropped) > 0 {
		b.Put(state.Transactions, []byte{headKey}, t.encodeHeadLocked())
		b.AfterLog() // it speaks of what is there
	}
	return func(err error) { t.saved(&s, err) }
}

// saved is what one Save has written.
type saved struct {
	pages   []int64
	open    []*entry
	dropped []int64
}

// saved notes that it has to be written again when it could not be.
func (t *Txn) saved(s *saved, err error) {
	if err == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range s.pages {
		if p := t.mu.outcomes.pages[n]; p != nil {
			p.dirty = true
		}
	}
	for _, e := range s.open {
		if t.touchLocked(e); e.gone {
			t.mu.dropped = append(t.mu.dropped, e.first)
		}
	}
	t.mu.dropped = append(t.mu.dropped, s.dropped...)
}

// Clamp brings what was stored back into what recovery has found of the half queue (P4): what
// lies behind its end was never stored. It returns how many half messages it dropped. Those that a
// clock which was wrong has stamped ahead are as if they had come just now: their first check would
// be as far ahead, and those of all behind them.
func (t *Txn) Clamp() (dropped int, err error) {
	end := t.o.Store.MaxOffset(names.Half, 0)
	t.resident(end)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.ready = true
	if t.mu.failed != nil {
		return 0, t.mu.failed
	}
	now := t.o.Clock.NowMilli()
	for first, e := range t.mu.open {
		if first < end && e.at < end {
			if e.stored > now {
				e.stored, e.due = now, 0
				t.alarm.Earlier(now)
			}
			continue
		}
		dropped++
		e.gone = true
		delete(t.mu.open, first)
		t.mu.outcomes.pages[first/pageSize].held--
		if e.saved {
			t.mu.dropped = append(t.mu.dropped, first)
		}
	}
	if t.mu.end > end {
		t.o.Log.Warn("transactions were beyond the end of the half queue", "was", t.mu.end, "is", end)
		if p := t.mu.outcomes.pages[end/pageSize]; p != nil {
			for i := end % pageSize; i < pageSize; i++ {
				p.set(i, Unknown)
			}
		}
		for n, p := range t.mu.outcomes.pages {
			if n > end/pageSize {
				*p = page{dirty: true}
			}
		}
		t.mu.end = end
	}
	return dropped, nil
}

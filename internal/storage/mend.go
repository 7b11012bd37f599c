package storage

import (
	"errors"
	"fmt"
	"sync"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Bounds of a search for the record of a damaged entry.
const (
	mendReach = 1000     // entries on either side among which sound ones are looked for
	mendBytes = 64 << 20 // of the log that are read
	mendLost  = 4096     // entries that are remembered as not to be put right
)

// mends is the mending of entries: one at a time, and each that can't be put right is searched
// for once, as long as it is remembered.
type mends struct {
	sync.Mutex
	lost map[lostEntry]bool
}

type lostEntry struct {
	queue *consumequeue.Queue
	at    int64
}

// meant takes back of n records that were read those that are not what the queue's entries are
// for, from the first on: a damaged entry may lead to the start of another record. A light
// queue's records have the offset of the queue that they were sent to, and its entries have
// checksums.
func meant(q *consumequeue.Queue, h *readBuffers, n int, err error) (int, error) {
	for i := range h.spans[:n] {
		if !message.IsOf(h.spans[i].Bytes, q.Topic.Name, q.ID, h.numbers[i]) {
			if names.IsLight(q.Topic.Name) {
				break
			}
			return i, commitlog.ErrNoRecord
		}
	}
	return n, err
}

// passedOver mends an entry that says that its record lies before the log. An error is why it
// can't be told whether it does: who reads has to come again.
func (e *Engine) passedOver(q *consumequeue.Queue, at, logMin int64, bad consumequeue.Entry) (consumequeue.Entry, error) {
	entry, err := e.mend(q, at, bad)
	if entry.Physical >= logMin || errors.Is(err, ErrNotFound) {
		err = nil
	}
	return entry, err
}

// mend is for an entry that does not lead to its record. Entries have no checksum, and the log
// is the only truth: the record is searched for between those of the nearest sound entries, and
// with it those of the other entries there. What is found is put right in the queue's file.
// mend returns the entry as it is now, with an error if it could not be stored, and ErrNotFound
// where the log has no such record or too much lies between.
func (e *Engine) mend(q *consumequeue.Queue, at int64, bad consumequeue.Entry) (consumequeue.Entry, error) {
	if names.IsLight(q.Topic.Name) {
		return bad, ErrNotFound
	}
	e.mends.Lock()
	defer e.mends.Unlock()
	switch now, ok, err := q.Entry(at); {
	case err != nil:
		return bad, err
	case !ok:
		return bad, ErrNotFound // gone, with its topic or with the log's oldest files
	case now != bad:
		return now, nil // somebody else has put it right
	}
	if e.mends.lost[lostEntry{q, at}] {
		return bad, ErrNotFound
	}
	m, err := e.mending(q, at)
	if err != nil {
		return bad, err
	}
	// Where the size alone is damaged, the record lies where the entry says.
	if from := bad.Physical; from >= m.from && from < m.to {
		if _, err = e.log.Scan(from, from+1, false, m.take); err != nil {
			return bad, err
		}
	}
	near := m.to-m.from <= mendBytes
	if !m.right[at-m.first] && near {
		if err = e.scanPast(m.from, m.to, m.take); err != nil {
			return bad, err
		}
	}
	if m.count > 0 {
		e.opt.Log.Warn("entries of a queue were damaged; they are put right from the log",
			"topic", q.Topic.Name, "queue", q.ID, "offset", at, "entries", m.count)
	}
	if m.right[at-m.first] {
		return m.entries[at-m.first], m.failed
	}
	e.opt.Log.Error("a queue's entry leads to no record", "topic", q.Topic.Name, "queue", q.ID, "offset", at)
	if len(e.mends.lost) >= mendLost {
		e.mends.lost = nil
	}
	if e.mends.lost == nil {
		e.mends.lost = make(map[lostEntry]bool)
	}
	for i, right := range m.right {
		if !right && (near || m.first+int64(i) == at) {
			e.mends.lost[lostEntry{q, m.first + int64(i)}] = true
		}
	}
	return bad, ErrNotFound
}

// mending is one search under way: for entries that follow one another.
type mending struct {
	e        *Engine
	q        *consumequeue.Queue
	first    int64 // number of the first
	entries  []consumequeue.Entry
	right    []bool // those that lead to their record now
	count    int    // of them
	from, to int64  // where their records can be in the log
	failed   error  // why one could not be stored
}

// mending finds the entries around one that lead nowhere, and where their records must be.
func (e *Engine) mending(q *consumequeue.Queue, at int64) (*mending, error) {
	first := max(q.First(), at-mendReach)
	entries, err := q.Entries(nil, first, int(at-first)+1+mendReach)
	if err != nil {
		return nil, fmt.Errorf("entries from %d on: %w", first, err)
	}
	if at < first || at-first >= int64(len(entries)) {
		return nil, ErrNotFound // they have gone meanwhile
	}
	m := &mending{e: e, q: q, from: e.log.Min(), to: e.log.Done()}
	low, high := at-first, at-first+1
	for ; low > 0; low-- {
		if before := entries[low-1]; e.leads(q, first+low-1, before) {
			m.from = before.Physical + int64(before.Size)
			break
		}
	}
	for ; high < int64(len(entries)); high++ {
		if e.leads(q, first+high, entries[high]) {
			m.to = entries[high].Physical
			break
		}
	}
	m.first, m.entries, m.right = first+low, entries[low:high], make([]bool, high-low)
	return m, nil
}

// leads reports whether an entry leads to its record.
func (e *Engine) leads(q *consumequeue.Queue, at int64, entry consumequeue.Entry) bool {
	var head [message.HeaderSize]byte
	h, err := e.log.Head(entry.Physical, head[:])
	if err != nil || h.Size != entry.Size || h.QueueID != q.ID || h.QueueOffset != at {
		return false
	}
	span := [1]commitlog.Span{{Offset: entry.Physical, Size: entry.Size}}
	var lease commitlog.Lease
	defer lease.Release()
	n, _ := e.log.Read(span[:], &lease)
	return n == 1 && message.IsOf(span[0].Bytes, q.Topic.Name, q.ID, at)
}

// take puts the entry of a record right, if it is one that is searched for.
func (m *mending) take(_ []byte, r *message.Message) error {
	i := r.QueueOffset - m.first
	if i < 0 || i >= int64(len(m.entries)) || r.QueueID != m.q.ID || r.Topic != m.q.Topic.Name || !m.e.belongs(r) {
		return nil
	}
	var n note
	if m.e.describe(&n, r) != m.q {
		return nil
	}
	p := placedOf(r)
	entry := consumequeue.Entry{Physical: p.PhysicalOffset, Size: p.Size, TagsCode: n.dispatched(&p).TagsCode}
	if entry == m.entries[i] {
		return nil
	}
	mended, err := m.q.Mend(r.QueueOffset, entry)
	if mended {
		m.count++
	}
	if err != nil {
		m.failed = err
	}
	if mended || err != nil {
		m.entries[i], m.right[i] = entry, true
	}
	return nil
}

package storage

import (
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

const (
	defaultMaxMessages = 32
	defaultMaxBytes    = 256 << 10

	// scanEntries is how many entries of a queue one Read looks at, however few match:
	// Apache's maxFilterMessageSize of 16,000 bytes. A request for more messages than that
	// looks at as many.
	scanEntries = 16000 / consumequeue.EntrySize
)

// readBuffers is what a result's records lie in.
type readBuffers struct {
	entries []consumequeue.Entry
	spans   []commitlog.Span
	numbers []int64 // queue offsets of the spans
	codes   []int64
	records []Record
	lease   commitlog.Lease
	passed  []bool // entries that a scan need not read
	copied  []byte // what a scan has taken out of its buffers
}

// maxKeptCopies is the largest such buffer that is kept for the next result.
const maxKeptCopies = 512 << 10

var readers = sync.Pool{New: func() any { return new(readBuffers) }}

// Release gives the result's buffers back. The records must not be used any more.
func (r *ReadResult) Release() {
	h := r.held
	if h == nil {
		return
	}
	r.held, r.Records = nil, nil
	h.lease.Release()
	clear(h.spans)
	clear(h.records)
	h.spans, h.numbers, h.codes, h.records = h.spans[:0], h.numbers[:0], h.codes[:0], h.records[:0]
	if h.copied = h.copied[:0]; cap(h.copied) > maxKeptCopies {
		h.copied = nil
	}
	readers.Put(h)
}

// Read gives records of one queue.
func (e *Engine) Read(r ReadRequest) ReadResult {
	q := e.queues.Queue(r.Topic, r.QueueID)
	if q == nil {
		return ReadResult{Status: NoMatchedQueue}
	}
	logMin := e.log.Min()
	res := ReadResult{Max: q.Max(), Min: q.Min(logMin), Next: r.Offset}
	switch {
	case res.Max == 0:
		res.Status, res.Next = NoMessageInQueue, 0
		return res
	case r.Offset < res.Min:
		res.Status, res.Next = OffsetTooSmall, res.Min
		return res
	case r.Offset == res.Max:
		res.Status = OffsetOverflowOne
		return res
	case r.Offset > res.Max:
		res.Status, res.Next = OffsetOverflowBadly, res.Max
		return res
	}
	h := readers.Get().(*readBuffers)
	res.held = h
	if r.MaxMessages <= 0 {
		r.MaxMessages = defaultMaxMessages
	}
	if r.MaxBytes <= 0 {
		r.MaxBytes = defaultMaxBytes
	}
	if r.Filter.ByProperties() {
		e.scan(q, &r, &res, logMin)
	} else {
		e.choose(q, &r, &res, logMin)
		if len(h.spans) > 0 {
			e.fetch(q, &res)
			confirm(r.Filter, &res)
		}
	}
	if len(res.Records) == 0 {
		res.Release()
	}
	if res.mended {
		return e.Read(r)
	}
	return res
}

// choose looks through the queue's entries and picks those to read.
func (e *Engine) choose(q *consumequeue.Queue, r *ReadRequest, res *ReadResult, logMin int64) {
	maxMessages, maxBytes := r.MaxMessages, r.MaxBytes
	all := r.Filter.MatchesAll()
	h := res.held
	res.Status = NoMatchedMessage
	left := max(scanEntries, maxMessages)
	for left > 0 && len(h.spans) < maxMessages && res.Next < res.Max {
		step := maxMessages - len(h.spans)
		if !all {
			step = max(step*4, 64)
		}
		var err error
		h.entries, err = q.Entries(h.entries[:0], res.Next, min(step, left, int(res.Max-res.Next)))
		if len(h.entries) == 0 {
			e.noEntries(q, res, err)
			return
		}
		for _, entry := range h.entries {
			if entry.Physical < logMin && !entry.IsFiller() {
				if entry, err = e.passedOver(q, res.Next, logMin, entry); err != nil {
					if len(h.spans) == 0 {
						e.failed(q, res, res.Next, err)
					}
					return
				}
			}
			switch {
			case entry.IsFiller() || entry.Physical < logMin:
				if len(h.spans) == 0 {
					res.Status = MessageWasRemoved
				}
			case !all && !r.Filter.MatchTagsCode(entry.TagsCode):
			case len(h.spans) == maxMessages, len(h.spans) > 0 && res.Bytes+int(entry.Size) > maxBytes:
				return
			default:
				h.spans = append(h.spans, commitlog.Span{Offset: entry.Physical, Size: entry.Size})
				h.numbers = append(h.numbers, res.Next)
				h.codes = append(h.codes, entry.TagsCode)
				res.Bytes += int(entry.Size)
			}
			res.Next++
			left--
		}
	}
}

// noEntries settles a read whose entries are not where they should be.
func (e *Engine) noEntries(q *consumequeue.Queue, res *ReadResult, err error) {
	if len(res.held.spans) > 0 {
		return
	}
	res.Status = OffsetFoundNull
	if errors.Is(err, segment.ErrNoFile) {
		// Retention has removed the file meanwhile: go on in the next one.
		perFile := int64(e.opt.QueueFileEntries)
		res.Next = min(res.Next-res.Next%perFile+perFile, res.Max)
		return
	}
	e.opt.Log.Error("reading a queue failed", "topic", q.Topic.Name, "queue", q.ID, "offset", res.Next, "err", err)
}

// fetch reads the chosen records.
func (e *Engine) fetch(q *consumequeue.Queue, res *ReadResult) {
	h := res.held
	n, err := e.log.Read(h.spans, &h.lease)
	n, err = meant(q, h, n, err)
	res.Bytes = 0
	for i := range h.spans[:n] {
		s := &h.spans[i]
		h.records = append(h.records, Record{QueueOffset: h.numbers[i], PhysicalOffset: s.Offset, TagsCode: h.codes[i], Bytes: s.Bytes})
		res.Bytes += int(s.Size)
	}
	if n > 0 {
		res.Status, res.Records = Found, h.records
	}
	switch {
	case err == nil:
	case n > 0:
		res.Next = h.numbers[n]
	default:
		e.unread(q, res, 0, err)
	}
}

// unread settles a read that has found nothing before the i-th record, which can't be read.
func (e *Engine) unread(q *consumequeue.Queue, res *ReadResult, i int, err error) {
	at, span := res.held.numbers[i], res.held.spans[i]
	gone := errors.Is(err, commitlog.ErrNoRecord)
	if gone && span.Offset >= e.log.Min() {
		_, err = e.mend(q, at, consumequeue.Entry{Physical: span.Offset, Size: span.Size, TagsCode: res.held.codes[i]})
		res.mended, gone = err == nil, errors.Is(err, ErrNotFound)
	}
	switch {
	case res.mended:
		return
	case gone:
		// Deleted since it was chosen, or damaged: it can't be had, so it is passed.
		res.Status, res.Next = MessageWasRemoved, at+1
		return
	}
	e.failed(q, res, at, err)
}

// failed settles a read that has found nothing before an offset that it has to come again for.
func (e *Engine) failed(q *consumequeue.Queue, res *ReadResult, at int64, err error) {
	res.Status, res.Next = OffsetFoundNull, at
	e.opt.Log.Error("reading the log failed", "topic", q.Topic.Name, "queue", q.ID, "offset", at, "err", err)
}

// ReadAt gives a copy of the record at a log offset.
func (e *Engine) ReadAt(physicalOffset int64) ([]byte, error) {
	// A reader may have got the offset from a queue before the dispatcher has told that
	// the whole round is done, so what is written counts here.
	if physicalOffset < e.log.Min() || physicalOffset >= e.log.Written() {
		return nil, ErrNotFound
	}
	rec, err := e.log.ReadAt(physicalOffset)
	if errors.Is(err, commitlog.ErrNoRecord) {
		return nil, ErrNotFound
	}
	return rec, err
}

// MinOffset is the first offset of a queue that can be read; 0 for an unknown queue.
func (e *Engine) MinOffset(topic string, queueID int32) int64 {
	q := e.queues.Queue(topic, queueID)
	if q == nil {
		return 0
	}
	return q.Min(e.log.Min())
}

// OffsetAt is the first offset of a queue whose record lies at or after a log offset, the
// queue's end when there is none.
func (e *Engine) OffsetAt(topic string, queueID int32, logOffset int64) int64 {
	q := e.queues.Queue(topic, queueID)
	if q == nil {
		return 0
	}
	return q.Min(logOffset)
}

// MaxOffset is the dispatched end of a queue; 0 for an unknown queue.
func (e *Engine) MaxOffset(topic string, queueID int32) int64 {
	q := e.queues.Queue(topic, queueID)
	if q == nil {
		return 0
	}
	return q.Max()
}

// OffsetByTime is the first offset stored at or after ms, the end of the queue when there
// is none; with upper the last one stored at or before ms, the first of the queue when
// there is none.
func (e *Engine) OffsetByTime(topic string, queueID int32, ms int64, upper bool) int64 {
	q := e.queues.Queue(topic, queueID)
	if q == nil {
		return 0
	}
	low, high := q.Min(e.log.Min()), q.Max()
	if upper {
		ms++
	}
	at := low + int64(sort.Search(int(high-low), func(i int) bool {
		t := e.storeTime(q, low+int64(i))
		return t < 0 || t >= ms
	}))
	if upper && at > low {
		at--
	}
	return at
}

// StoreTimeAt is the store timestamp of a queue's record, -1 when there is none.
func (e *Engine) StoreTimeAt(topic string, queueID int32, offset int64) int64 {
	q := e.queues.Queue(topic, queueID)
	if q == nil {
		return -1
	}
	return e.storeTime(q, offset)
}

// EarliestStoreTime is the store timestamp of the first record of a queue, -1 when empty.
func (e *Engine) EarliestStoreTime(topic string, queueID int32) int64 {
	q := e.queues.Queue(topic, queueID)
	if q == nil {
		return -1
	}
	return e.storeTime(q, q.Min(e.log.Min()))
}

// QueueEntry is one entry of a consume queue.
type QueueEntry struct {
	PhysicalOffset, TagsCode int64
	Size                     int32
}

// Entries returns up to count entries of a queue from an offset on, without the records:
// none where the queue has none there.
func (e *Engine) Entries(topic string, queueID int32, from int64, count int) ([]QueueEntry, error) {
	q := e.queues.Queue(topic, queueID)
	if q == nil {
		return nil, fmt.Errorf("%w: queue %d of %s", ErrNotFound, queueID, topic)
	}
	if from < q.Min(e.log.Min()) || from >= q.Max() {
		return nil, nil
	}
	found, err := q.Entries(nil, from, int(min(int64(count), q.Max()-from)))
	if err != nil {
		return nil, fmt.Errorf("entries of queue %d of %s: %w", queueID, topic, err)
	}
	out := make([]QueueEntry, len(found))
	for i, f := range found {
		out[i] = QueueEntry{PhysicalOffset: f.Physical, TagsCode: f.TagsCode, Size: f.Size}
	}
	return out, nil
}

func (e *Engine) storeTime(q *consumequeue.Queue, offset int64) int64 {
	entry, ok, err := q.Entry(offset)
	if !ok || err != nil {
		return -1
	}
	var head [message.HeaderSize]byte
	h, err := e.log.Head(entry.Physical, head[:])
	if err != nil {
		return -1
	}
	return h.StoreTimestamp
}

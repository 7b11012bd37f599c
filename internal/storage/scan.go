package storage

import (
	"strings"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Bounds of a scan: what one round reads before the filter is asked, and what all rounds
// of one Read do, as far as scanEntries lets them.
const (
	scanFirst      = 16
	scanRound      = 256
	scanRoundBytes = 256 << 10
	scanBytes      = 4 << 20
)

// confirm asks a filter by tags again, now that the tags themselves are there: two of them
// may have one hash.
func confirm(f *filter.Expression, res *ReadResult) {
	if f.MatchesAll() || res.Status != Found {
		return
	}
	kept := res.Records[:0]
	for _, r := range res.Records {
		if f.MatchRecord(r.TagsCode, r.Bytes) {
			kept = append(kept, r)
		} else {
			res.Bytes -= len(r.Bytes)
		}
	}
	if res.Records = kept; len(kept) == 0 {
		res.Status = NoMatchedMessage
	}
}

// scan reads records and asks the filter for the properties of each. The queue's entries
// say nothing about those, so most of what is read may be for nothing: what matches is
// copied, and the buffers serve the next round.
func (e *Engine) scan(q *consumequeue.Queue, r *ReadRequest, res *ReadResult, logMin int64) {
	res.Status = NoMatchedMessage
	left, bytes := max(scanEntries, r.MaxMessages), scanBytes
	for round := max(scanFirst, r.MaxMessages); left > 0 && bytes > 0 && len(res.Records) < r.MaxMessages && res.Next < res.Max; round *= 2 {
		entries, read, on := e.scanSome(q, r, res, logMin, min(round, scanRound, left, int(res.Max-res.Next)))
		if !on {
			return
		}
		left, bytes = left-entries, bytes-read
	}
}

// scanSome is one round of a scan: it looks at n entries at most and says how many they
// were, how many bytes it read, and whether the scan may go on.
func (e *Engine) scanSome(q *consumequeue.Queue, r *ReadRequest, res *ReadResult, logMin int64, n int) (entries, read int, on bool) {
	h := res.held
	var err error
	h.entries, err = q.Entries(h.entries[:0], res.Next, n)
	if len(h.entries) == 0 {
		if len(res.Records) == 0 {
			e.noEntries(q, res, err)
		}
		return 0, 0, false
	}
	h.spans, h.numbers, h.codes = h.spans[:0], h.numbers[:0], h.codes[:0]
	for _, entry := range h.entries {
		if entry.IsFiller() || entry.Physical < logMin {
			if len(res.Records) == 0 {
				res.Status = MessageWasRemoved
			}
		} else {
			if len(h.spans) > 0 && read+int(entry.Size) > scanRoundBytes {
				break
			}
			h.spans = append(h.spans, commitlog.Span{Offset: entry.Physical, Size: entry.Size})
			h.numbers = append(h.numbers, res.Next+int64(entries))
			h.codes = append(h.codes, entry.TagsCode)
			read += int(entry.Size)
		}
		entries++
	}
	end := res.Next + int64(entries)
	defer h.lease.Release()
	got, err := e.log.Read(h.spans, &h.lease)
	for i := range h.spans[:got] {
		if !e.take(r, res, i) {
			res.Next = h.numbers[i]
			return entries, read, false
		}
	}
	switch {
	case err == nil:
		res.Next = end
		return entries, read, true
	case len(res.Records) > 0:
		res.Next = h.numbers[got]
	default:
		e.unread(q, res, h.numbers[got], h.spans[got].Offset, err)
	}
	return entries, read, false
}

// take gives the result the i-th record that was read if the filter wants it, and reports
// false when that has no room for it.
func (e *Engine) take(r *ReadRequest, res *ReadResult, i int) bool {
	h := res.held
	bytes := h.spans[i].Bytes
	if !r.Filter.MatchRecord(h.codes[i], bytes) {
		return true
	}
	if n := len(res.Records); n == r.MaxMessages || n > 0 && res.Bytes+len(bytes) > r.MaxBytes {
		return false
	}
	from := len(h.copied)
	h.copied = append(h.copied, bytes...)
	to := len(h.copied)
	h.records = append(h.records, Record{QueueOffset: h.numbers[i], PhysicalOffset: h.spans[i].Offset, TagsCode: h.codes[i], Bytes: h.copied[from:to:to]})
	res.Status, res.Records, res.Bytes = Found, h.records, res.Bytes+len(bytes)
	return true
}

// PropertiesAt is a copy of the properties of the record at a log offset, for who has to
// know whether anybody waits for it.
func (e *Engine) PropertiesAt(physicalOffset int64, size int32) (message.Properties, bool) {
	span := [1]commitlog.Span{{Offset: physicalOffset, Size: size}}
	var lease commitlog.Lease
	defer lease.Release()
	if _, err := e.log.Read(span[:], &lease); err != nil {
		return "", false
	}
	p, ok := message.PropertiesOf(span[0].Bytes)
	return message.Properties(strings.Clone(string(p))), ok
}

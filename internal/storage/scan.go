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

	// A scan ends when it has come this far in the log, once it has looked at scanNear
	// entries. The log keeps the blocks that it has read last: those who scan its other
	// queues at about the same pace find them there, and the log is read once for all.
	scanDistance = 1 << 21
	scanNear     = 64
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
	s := scanning{e: e, q: q, r: r, res: res, logMin: logMin, left: max(scanEntries, r.MaxMessages), from: -1}
	for n := max(scanFirst, r.MaxMessages); s.round(min(n, scanRound, s.left, int(res.Max-res.Next))); n *= 2 {
	}
}

// scanning is one scan under way.
type scanning struct {
	e      *Engine
	q      *consumequeue.Queue
	r      *ReadRequest
	res    *ReadResult
	logMin int64
	left   int   // entries that it may still look at
	bytes  int   // read so far
	from   int64 // log offset of the first record, -1 before it
	failed error // why the entry behind those taken could not be judged
}

// round looks at n entries at most and reports whether the scan goes on.
func (s *scanning) round(n int) bool {
	h := s.res.held
	var err error
	h.entries, err = s.q.Entries(h.entries[:0], s.res.Next, n)
	if len(h.entries) == 0 {
		if len(s.res.Records) == 0 {
			s.e.noEntries(s.q, s.res, err)
		}
		return false
	}
	h.passed = s.e.traits.impossible(s.r.Filter, h.entries, h.passed[:0])
	end := s.res.Next + s.choose()
	defer h.lease.Release()
	got, err := s.e.log.Read(h.spans, &h.lease)
	got, err = meant(s.q, h, got, err)
	for i := range h.spans[:got] {
		if !s.take(i) {
			s.res.Next = h.numbers[i]
			return false
		}
	}
	switch {
	case err == nil && s.failed != nil:
		if s.res.Next = end; len(s.res.Records) == 0 {
			s.e.failed(s.q, s.res, end, s.failed)
		}
	case err == nil:
		s.res.Next = end
		return s.left > 0 && s.bytes < scanBytes && len(s.res.Records) < s.r.MaxMessages && end < s.res.Max
	case len(s.res.Records) > 0:
		s.res.Next = h.numbers[got]
	default:
		s.e.unread(s.q, s.res, got, err)
	}
	return false
}

// choose makes spans of the round's entries and says how many of them it took.
func (s *scanning) choose() (taken int64) {
	h := s.res.held
	h.spans, h.numbers, h.codes = h.spans[:0], h.numbers[:0], h.codes[:0]
	bytes := 0
	for i, entry := range h.entries {
		if entry.Physical < s.logMin && !entry.IsFiller() {
			if entry, s.failed = s.e.passedOver(s.q, s.res.Next+taken, s.logMin, entry); s.failed != nil {
				break
			}
		}
		if entry.IsFiller() || entry.Physical < s.logMin {
			if len(s.res.Records) == 0 {
				s.res.Status = MessageWasRemoved
			}
			taken++
			continue
		}
		if h.passed[i] {
			taken++
			continue
		}
		if s.from < 0 {
			s.from = entry.Physical
		}
		far := scanEntries-s.left+int(taken) >= scanNear && entry.Physical-s.from > scanDistance
		if far {
			s.left = 0 // this round is the last
		}
		if len(h.spans) > 0 && (far || bytes+int(entry.Size) > scanRoundBytes) {
			break
		}
		h.spans = append(h.spans, commitlog.Span{Offset: entry.Physical, Size: entry.Size})
		h.numbers = append(h.numbers, s.res.Next+taken)
		h.codes = append(h.codes, entry.TagsCode)
		bytes += int(entry.Size)
		taken++
	}
	s.bytes += bytes
	s.left -= int(taken)
	return taken
}

// take gives the result the i-th record that was read if the filter wants it, and reports
// false when that has no room for it.
func (s *scanning) take(i int) bool {
	h, res := s.res.held, s.res
	bytes := h.spans[i].Bytes
	if !s.r.Filter.MatchRecord(h.codes[i], bytes) {
		return true
	}
	if n := len(res.Records); n == s.r.MaxMessages || n > 0 && res.Bytes+len(bytes) > s.r.MaxBytes {
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

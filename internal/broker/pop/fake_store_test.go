package pop

import (
	"slices"
	"sync"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// memStore is a store in memory: real records, queues as slices. Its dispatch happens
// inside Append, after done unless dispatchFirst.
type memStore struct {
	mu            sync.Mutex
	queues        map[storage.QueueName]*memQueue
	log           map[int64][]byte
	end           int64
	now           func() int64
	onDispatch    func(storage.Dispatched)
	failTopics    map[string]error
	dispatchFirst bool
	hold          bool // dispatch waits for dispatchHeld
	held          []storage.Dispatched
	recent        []storage.Dispatched // the last few that were dispatched
	appends       []storage.Dispatched // all that was ever appended, in the log's order
	reads         int
}

type memQueue struct {
	min     int64
	recs    [][]byte // from offset 0
	visible int64    // dispatched
}

func newMemStore(now func() int64) *memStore {
	return &memStore{queues: map[storage.QueueName]*memQueue{}, log: map[int64][]byte{}, now: now, failTopics: map[string]error{}}
}

func (s *memStore) AppendLight(m *message.Message, _ []string, _ bool, done func(storage.Placed, error)) {
	s.Append(m, done)
}

func (s *memStore) AppendHeld(m *message.Message, done func(storage.Placed, error)) {
	s.Append(m, done)
}

func (s *memStore) Append(m *message.Message, done func(storage.Placed, error)) {
	s.mu.Lock()
	if err := s.failTopics[m.Topic]; err != nil {
		s.mu.Unlock()
		done(storage.Placed{}, err)
		return
	}
	name := storage.QueueName{Topic: m.Topic, QueueID: m.QueueID}
	q := s.queues[name]
	if q == nil {
		q = &memQueue{}
		s.queues[name] = q
	}
	rec, err := message.AppendStored(nil, m)
	if err != nil {
		s.mu.Unlock()
		done(storage.Placed{}, err)
		return
	}
	p := storage.Placed{PhysicalOffset: s.end, QueueOffset: int64(len(q.recs)), StoreTimestamp: s.now(), QueueID: m.QueueID, Size: int32(len(rec))}
	message.Patch(rec, p.QueueOffset, p.PhysicalOffset, p.StoreTimestamp)
	s.log[s.end] = rec
	s.end += int64(len(rec))
	q.recs = append(q.recs, rec)
	d := storage.Dispatched{
		Topic: m.Topic, QueueID: m.QueueID, QueueOffset: p.QueueOffset, PhysicalOffset: p.PhysicalOffset,
		TagsCode: message.TagsCode(m.Tag()), StoreTimestamp: p.StoreTimestamp, Size: p.Size,
		Source: m.Properties.Value(message.PropertySource),
	}
	s.appends = append(s.appends, d)
	first, hold := s.dispatchFirst, s.hold
	if hold {
		s.held = append(s.held, d)
	}
	s.mu.Unlock()
	if hold {
		done(p, nil)
		return
	}
	if first {
		s.dispatch(d)
	}
	done(p, nil)
	if !first {
		s.dispatch(d)
	}
}

// dispatch makes a record visible and tells of it.
func (s *memStore) dispatch(d storage.Dispatched) {
	s.mu.Lock()
	q := s.queues[storage.QueueName{Topic: d.Topic, QueueID: d.QueueID}]
	q.visible = max(q.visible, d.QueueOffset+1)
	s.recent = append(s.recent, d)
	if len(s.recent) > 1000 {
		s.recent = s.recent[1:]
	}
	tell := s.onDispatch
	s.mu.Unlock()
	if tell != nil {
		tell(d)
	}
}

func (s *memStore) logEnd() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

func (s *memStore) dispatchHeld() {
	s.mu.Lock()
	held := s.held
	s.held = nil
	s.mu.Unlock()
	for _, d := range held {
		s.dispatch(d)
	}
}

func (s *memStore) AppendBatch(ms []*message.Message, done func([]storage.Placed, error)) {
	var all []storage.Placed
	for _, m := range ms {
		s.Append(m, func(p storage.Placed, _ error) { all = append(all, p) })
	}
	done(all, nil)
}

func (s *memStore) ReadAt(off int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.log[off]; ok {
		return append([]byte(nil), r...), nil
	}
	return nil, storage.ErrNotFound
}

func (s *memStore) Read(r storage.ReadRequest) (res storage.ReadResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	q := s.queues[storage.QueueName{Topic: r.Topic, QueueID: r.QueueID}]
	res.Next = r.Offset
	if q == nil {
		res.Status = storage.NoMatchedQueue
		return res
	}
	res.Min, res.Max = q.min, q.visible
	switch {
	case res.Max == 0:
		res.Status = storage.NoMessageInQueue
	case r.Offset < q.min:
		res.Status, res.Next = storage.OffsetTooSmall, q.min
	case r.Offset == res.Max:
		res.Status = storage.OffsetOverflowOne
	case r.Offset > res.Max:
		res.Status, res.Next = storage.OffsetOverflowBadly, res.Max
	default:
		for off := r.Offset; off < res.Max && len(res.Records) < max(r.MaxMessages, 1); off++ {
			rec := q.recs[off]
			var m message.Message
			if _, err := message.DecodeStored(rec, &m); err != nil {
				panic(err)
			}
			res.Next = off + 1
			if !r.Filter.MatchRecord(message.TagsCode(m.Tag()), rec) {
				continue
			}
			res.Bytes += len(rec)
			res.Records = append(res.Records, storage.Record{
				QueueOffset: off, PhysicalOffset: m.PhysicalOffset, TagsCode: message.TagsCode(m.Tag()), Bytes: rec,
			})
			if r.MaxBytes > 0 && res.Bytes >= r.MaxBytes {
				break
			}
		}
	}
	if res.Status == storage.Found && len(res.Records) == 0 {
		res.Status = storage.NoMatchedMessage
	}
	return res
}

func (s *memStore) MinOffset(topic string, queue int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[storage.QueueName{Topic: topic, QueueID: queue}]; q != nil {
		return q.min
	}
	return 0
}

func (s *memStore) MaxOffset(topic string, queue int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := s.queues[storage.QueueName{Topic: topic, QueueID: queue}]; q != nil {
		return q.visible
	}
	return 0
}

// cut loses the end of a queue, as a power cut does.
func (s *memStore) cut(topic string, queue int32, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[storage.QueueName{Topic: topic, QueueID: queue}]
	q.recs = q.recs[:min(to, len(q.recs))]
	q.visible = min(q.visible, int64(to))
}

// expire deletes the beginning of a queue, as retention does.
func (s *memStore) expire(topic string, queue int32, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[storage.QueueName{Topic: topic, QueueID: queue}].min = to
}

// appended counts all that was ever appended.
func (s *memStore) appended() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.appends)
}

// undispatched counts the last records that were not dispatched, up to n.
func (s *memStore) undispatched(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range min(n, len(s.held)) {
		if s.appends[len(s.appends)-1-i] != s.held[len(s.held)-1-i] {
			return i
		}
	}
	return min(n, len(s.held))
}

// lose loses everything that was appended after the first n records, and returns it.
func (s *memStore) lose(n int) []storage.Dispatched {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.appends[n:]
	s.appends = s.appends[:n:n]
	gone := func(d storage.Dispatched) bool { return slices.Contains(lost, d) }
	s.held = slices.DeleteFunc(s.held, gone)
	s.recent = slices.DeleteFunc(s.recent, gone)
	for _, d := range lost {
		delete(s.log, d.PhysicalOffset)
		if q := s.queues[storage.QueueName{Topic: d.Topic, QueueID: d.QueueID}]; q != nil {
			q.recs = q.recs[:min(int(d.QueueOffset), len(q.recs))]
			q.visible = min(q.visible, d.QueueOffset)
		}
	}
	return lost
}

func (s *memStore) drop(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := func(d storage.Dispatched) bool { return d.Topic == topic }
	s.held = slices.DeleteFunc(s.held, gone)
	s.recent = slices.DeleteFunc(s.recent, gone)
	for k := range s.queues {
		if k.Topic == topic {
			delete(s.queues, k)
		}
	}
}

package pop

import (
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
	reads         int
}

type memQueue struct {
	min  int64
	recs [][]byte // from offset 0
}

func newMemStore(now func() int64) *memStore {
	return &memStore{queues: map[storage.QueueName]*memQueue{}, log: map[int64][]byte{}, now: now, failTopics: map[string]error{}}
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
	dispatch, first := s.onDispatch, s.dispatchFirst
	s.mu.Unlock()
	if first && dispatch != nil {
		dispatch(d)
	}
	done(p, nil)
	if !first && dispatch != nil {
		dispatch(d)
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
	res.Min, res.Max = q.min, int64(len(q.recs))
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
			res.Bytes += len(rec)
			res.Records = append(res.Records, storage.Record{
				QueueOffset: off, PhysicalOffset: m.PhysicalOffset, TagsCode: message.TagsCode(m.Tag()), Bytes: rec,
			})
			res.Next = off + 1
			if r.MaxBytes > 0 && res.Bytes >= r.MaxBytes {
				break
			}
		}
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
		return int64(len(q.recs))
	}
	return 0
}

// cut loses the end of a queue, as a power cut does.
func (s *memStore) cut(topic string, queue int32, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[storage.QueueName{Topic: topic, QueueID: queue}]
	q.recs = q.recs[:min(to, len(q.recs))]
}

// expire deletes the beginning of a queue, as retention does.
func (s *memStore) expire(topic string, queue int32, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[storage.QueueName{Topic: topic, QueueID: queue}].min = to
}

func (s *memStore) drop(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.queues {
		if k.Topic == topic {
			delete(s.queues, k)
		}
	}
}

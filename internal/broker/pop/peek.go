package pop

import (
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Peek returns what a pop by r would find, and lends nothing: no receipt is made, no
// offset moves, and the messages stay visible to everybody.
func (p *Popper) Peek(r Request) (Result, error) {
	r.Max = min(r.Max, MaxMessages)
	q := &request{Request: r}
	if err := p.admit(q); err != nil {
		return Result{}, err
	}
	steps := plan(nil, q.planInput(p.o.Broker.Get(), p.resolve(q), q.s.peeks.Add(1)))
	res := Result{Status: PollingTimeout, Order: q.ordered}
	found := 0
	for _, st := range steps {
		offsets, next := p.visible(q, st)
		res.RestNum += int64(len(offsets)) + max(p.o.Store.MaxOffset(q.s.topic[st.flag], st.queue)-next, 0)
		if found >= r.Max {
			continue
		}
		n := p.peekQueue(&res, q, st, offsets, next, r.Max-found)
		found += n
		res.RestNum -= int64(n)
	}
	if found > 0 {
		res.Status = Found
	}
	return res, nil
}

// visible lists what is set aside in a queue, and the offset from which it is unread.
func (p *Popper) visible(q *request, st step) (aside []int64, next int64) {
	k := windowKey{group: q.Group, topic: q.s.topic[st.flag], queue: st.queue}
	w := p.window(k)
	if w == nil || !w.started() {
		return nil, p.start(&window{key: k}, InitMin)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.mu.aside {
		aside = append(aside, e.offset)
	}
	return aside, w.mu.next
}

// peekQueue adds up to want messages of one queue to res, and returns how many.
func (p *Popper) peekQueue(res *Result, q *request, st step, aside []int64, next int64, want int) int {
	b := Batch{RetryFlag: st.flag, QueueID: st.queue}
	read := func(at int64, n int) {
		got := p.o.Store.Read(storage.ReadRequest{Topic: q.s.topic[st.flag], QueueID: st.queue, Offset: at, MaxMessages: n, MaxBytes: p.o.MaxBytes})
		if got.Status == storage.OffsetTooSmall || got.Status == storage.MessageWasRemoved {
			at = max(got.Next, got.Min)
			got.Release()
			got = p.o.Store.Read(storage.ReadRequest{Topic: q.s.topic[st.flag], QueueID: st.queue, Offset: at, MaxMessages: n, MaxBytes: p.o.MaxBytes})
		}
		res.held = append(res.held, got)
		for _, rec := range got.Records {
			if q.Filter.MatchRecord(rec.TagsCode, rec.Bytes) && !(st.flag == receipt.FlagRetryV1 && q.foreign(&rec)) {
				b.Records = append(b.Records, rec)
			}
		}
	}
	for _, at := range aside[:min(len(aside), want)] {
		read(at, 1)
	}
	if left := want - len(b.Records); left > 0 {
		read(next, left)
	}
	if len(b.Records) == 0 {
		return 0
	}
	b.StartOffset = b.Records[0].QueueOffset
	res.Batches = append(res.Batches, b)
	return len(b.Records)
}

package pop

import (
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Notice answers a Notification.
type Notice struct {
	HasMessages bool
	Full        bool // it could not wait: too many do already
}

// Notification asks whether a Pop of r would find something, and waits like one. Nothing
// is delivered.
func (p *Popper) Notification(r Request, done func(Notice, error)) {
	q := &request{Request: r, notify: done}
	if err := p.admit(q); err != nil {
		done(Notice{}, err)
		return
	}
	p.run(q)
}

// look is attempt for a notification.
func (p *Popper) look(q *request, a *attempt) error {
	p.initialize(q, a.reach)
	steps := plan(nil, planInput{queue: q.QueueID, queues: a.reach[receipt.FlagNormal], retryQueues: a.reach, counter: 1, ordered: q.ordered})
	for _, st := range steps {
		if p.hasMessages(q, p.windowOf(q.s, st.flag, st.queue)) {
			a.res.Status = Found
			return nil
		}
	}
	return nil
}

// hasMessages looks at what is set aside and at the queue's next messages. A filter is
// asked for the first few only; behind them a message is taken to be there.
func (p *Popper) hasMessages(q *request, w *window) bool {
	p.prepare(w)
	w.mu.Lock()
	next := w.mu.next
	var order *ordering
	if q.ordered {
		order = newOrdering(w, q.OnePerGroup)
	}
	stuck := order != nil && w.mu.stuck && q.Filter.MatchesAll()
	for i := range w.mu.aside {
		if stuck {
			break
		}
		e := &w.mu.aside[i]
		if !e.mayMatch(q.Filter) {
			continue
		}
		if order == nil || order.admitLocked(e.group) {
			w.mu.Unlock()
			return true
		}
		order.block(e.group)
	}
	w.mu.Unlock()
	plain := order == nil && q.Filter.MatchesAll() && w.flag != receipt.FlagRetryV1
	end := p.o.Store.MaxOffset(w.key.topic, w.key.queue)
	if plain || end <= next {
		return end > next
	}
	for range 4 {
		res := p.o.Store.Read(storage.ReadRequest{Topic: w.key.topic, QueueID: w.key.queue, Offset: next, MaxMessages: MaxMessages})
		if res.Status != storage.Found {
			return end > next && res.Status != storage.OffsetOverflowOne && res.Status != storage.NoMessageInQueue
		}
		for i := range res.Records {
			rec := &res.Records[i]
			if !q.Filter.MatchRecord(rec.TagsCode, rec.Bytes) || w.flag == receipt.FlagRetryV1 && q.foreign(rec) {
				continue
			}
			if order == nil || order.admit(w.messageGroup(rec.Bytes)) {
				res.Release()
				return true
			}
		}
		next = res.Next
		res.Release()
		if next >= end {
			return false
		}
	}
	return true
}

package lite

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Request asks for messages of the lite topics that a client has subscribed to.
type Request struct {
	ClientID, Group, Topic string // the parent
	Max                    int
	Invisible              int64         // milliseconds
	PollTime               time.Duration // how long it may wait
	AttemptID              string
	AutoRenew              bool
	Filter                 *filter.Expression
	OneTopic               bool           // all from one lite topic: the answer has one pop time
	Peer                   *longpoll.Peer // who waits for the answer
}

// receive is a Request on its way.
type receive struct {
	r        *Registry
	q        Request
	deadline time.Time
	last     bool // it may not wait any more
	done     func(pop.Result, error)
	res      pop.Result
	got      []string        // queues that gave something
	tried    map[string]bool // in this look
	missed   map[string]bool // of those: they gave nothing, and may have something
	failed   error
}

// Receive gives messages of lite topics, each of them in order, and answers done, once:
// before it returns, from a worker, or from a long poll that ends.
func (r *Registry) Receive(q Request, done func(pop.Result, error)) {
	if err := r.admit(&q); err != nil {
		done(pop.Result{}, err)
		return
	}
	v := &receive{r: r, q: q, deadline: time.Now().Add(q.PollTime), last: q.PollTime <= 0, done: done}
	v.res = pop.Result{Status: pop.PollingTimeout, PopTime: r.o.Clock.NowMilli(), Invisible: q.Invisible, Order: true}
	r.recall(&q)
	v.look()
}

func (r *Registry) admit(q *Request) error {
	if r.o.Broker.Get().BrokerPermission&topic.PermRead == 0 {
		return pop.ErrBrokerUnreadable
	}
	if q.Max > pop.MaxMessages {
		return pop.ErrTooMany
	}
	q.Max = max(q.Max, 1)
	g, err := r.bound(q.Group, q.Topic)
	if err != nil {
		return err
	}
	if !g.ConsumeEnable {
		return fmt.Errorf("%w: %s", ErrGroupDisabled, q.Group)
	}
	if t, _ := r.o.Topics.Get(q.Topic); t != nil && !t.Readable() {
		return pop.ErrTopicUnreadable
	}
	return nil
}

// recall makes what the client got under this attempt's name its events once more: it never
// saw the answer.
func (r *Registry) recall(q *Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.mu.clients[q.ClientID]
	if c == nil {
		return
	}
	c.asked = r.o.Clock.NowMilli()
	if q.AttemptID == "" || q.AttemptID != c.attempt {
		return
	}
	for _, queue := range c.got {
		c.from().add(queue)
	}
}

// next takes an event of the client that this look has not had yet.
func (v *receive) next() (queue string, ok bool) {
	r := v.r
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.mu.clients[v.q.ClientID]
	if c == nil || c.group != v.q.Group {
		return "", false
	}
	e := c.from()
	for n := len(e.list); n > 0; n-- {
		queue, _ = e.take()
		if v.tried[queue] {
			e.add(queue) // it became an event again meanwhile: for the next receive
			continue
		}
		if c.moving[queue] != nil {
			e.add(queue) // who moves the offset wakes c afterwards
			continue
		}
		if c.crowd == nil && r.mu.topics[queue] == nil {
			continue // nobody wants it any more
		}
		if c.crowd == nil {
			if _, subscribed := c.topics[r.mu.topics[queue]]; !subscribed {
				continue
			}
		}
		return queue, true
	}
	return "", false
}

// look goes through the client's events until there are enough messages. Each queue may
// answer at once or later, from a worker; what comes next is then done there.
func (v *receive) look() {
	v.tried, v.missed = nil, nil
	v.resume()
}

func (v *receive) resume() {
	for v.res.Messages() < v.q.Max && !(v.q.OneTopic && v.res.Status == pop.Found) {
		queue, ok := v.next()
		if !ok {
			break
		}
		if v.tried == nil {
			v.tried = make(map[string]bool)
		}
		v.tried[queue] = true
		if !v.pop(queue) {
			return
		}
	}
	v.settle()
}

// pop takes from one queue; it reports false when the answer comes later, and resumes then.
func (v *receive) pop(queue string) bool {
	const here, answered, away = 0, 1, 2
	var where atomic.Int32
	v.r.o.Pop.Pop(pop.Request{
		Group: v.q.Group, Topic: queue, QueueID: 0, Max: v.q.Max - v.res.Messages(), Invisible: v.q.Invisible, InitMode: pop.InitMax,
		Filter: v.q.Filter, Order: true, AttemptID: v.q.AttemptID, Holder: v.q.ClientID, AutoRenew: v.q.AutoRenew,
	}, func(res pop.Result, err error) {
		v.took(queue, res, err)
		if !where.CompareAndSwap(here, answered) {
			v.resume()
		}
	})
	return !where.CompareAndSwap(here, away)
}

func (v *receive) took(queue string, res pop.Result, err error) {
	switch {
	case err != nil:
		if v.failed = err; !errors.Is(err, pop.ErrTopicNotFound) {
			v.putBack(queue)
			v.r.o.Log.Debug("a lite topic could not be popped", "queue", queue, "group", v.q.Group, "err", err)
		}
	case res.Status == pop.Found:
		_, lite, _ := names.OfLite(queue)
		v.res.Join(lite, res)
		v.got = append(v.got, queue)
	case res.Missed:
		v.again(queue)
	case res.More:
		v.putBack(queue) // one that waits goes on, after others had their turn: see park
	}
}

// again is for a queue that could not be looked through, by a failed read or a reset that came
// in between. This look tries it once more; after that it stays an event, which is no reason
// not to wait: a disk that can't be read is not asked all the time.
func (v *receive) again(queue string) {
	if !v.missed[queue] {
		delete(v.tried, queue)
	}
	if v.missed == nil {
		v.missed = make(map[string]bool)
	}
	v.missed[queue] = true
	v.putBack(queue)
}

// putBack makes a queue an event of the client again: what it has nobody could see.
func (v *receive) putBack(queue string) {
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if c := v.r.mu.clients[v.q.ClientID]; c != nil && c.group == v.q.Group {
		c.from().add(queue)
	}
}

// settle answers, or waits when nothing was found and there is time.
func (v *receive) settle() {
	switch {
	case v.res.Status == pop.Found:
		v.remember()
		v.done(v.res, nil)
		v.handOn()
	case v.failed != nil:
		v.done(pop.Result{}, v.failed)
	case v.last || !time.Now().Before(v.deadline):
		v.done(v.res, nil)
	default:
		v.park()
	}
}

// remember notes what this attempt got.
func (v *receive) remember() {
	if v.q.AttemptID == "" {
		return
	}
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if c := v.r.mu.clients[v.q.ClientID]; c != nil {
		c.attempt, c.got = v.q.AttemptID, v.got
	}
}

// handOn wakes another that waits, for the events that this receive had no room for: it may
// be the one that was woken for them.
func (v *receive) handOn() {
	r := v.r
	r.mu.Lock()
	var left []string
	if c := r.mu.clients[v.q.ClientID]; c != nil {
		list := c.from().list
		left = slices.Clone(list[:min(len(list), 8)])
	}
	r.mu.Unlock()
	for _, queue := range left {
		r.ready(v.q.Group, queue)
	}
}

// park suspends v and looks once more whether something came meanwhile.
func (v *receive) park() {
	r := v.r
	w := &longpoll.Waiter{Key: v.key(), Deadline: v.deadline, Peer: v.q.Peer, Wake: v.woken}
	if err := r.o.LongPoll.Park(w); err != nil {
		switch {
		case errors.Is(err, longpoll.ErrGone):
			v.done(pop.Result{}, pop.ErrGone)
			return
		case errors.Is(err, longpoll.ErrFull):
			v.res.Status = pop.PollingFull
		}
		v.done(v.res, nil)
		return
	}
	if v.hasFresh() && r.o.LongPoll.Remove(w) {
		v.woken(longpoll.Arrived)
	}
}

// key is what v waits for. A client that has not subscribed yet waits like one that has.
func (v *receive) key() longpoll.Key {
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if c := v.r.mu.clients[v.q.ClientID]; c != nil {
		return c.key()
	}
	if g, ok := v.r.o.Groups.Get(v.q.Group); ok && wildcard(g) {
		return waitKey(v.q.Group, everybody)
	}
	return waitKey(v.q.Group, v.q.ClientID)
}

// hasFresh reports whether there are events that may be taken and that this look has not put
// back itself.
func (v *receive) hasFresh() bool {
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	c := v.r.mu.clients[v.q.ClientID]
	return c != nil && slices.ContainsFunc(c.from().list, func(queue string) bool { return !v.missed[queue] && c.moving[queue] == nil })
}

// woken goes on with v on a worker: whoever wakes must not be held up.
func (v *receive) woken(why longpoll.Reason) {
	switch why {
	case longpoll.Released:
		v.done(pop.Result{}, pop.ErrGone)
		return
	case longpoll.Closed:
		v.done(v.res, nil)
		return
	case longpoll.Expired:
		v.last = true
	}
	v.r.o.Pop.Go(func(closing bool) {
		if closing {
			v.done(v.res, nil)
			return
		}
		v.look()
	})
}

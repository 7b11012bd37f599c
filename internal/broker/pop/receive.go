package pop

import (
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// InitMode says where a group begins that has never read a queue.
type InitMode int32

// The modes, with their numbers in the protocol.
const (
	InitMin InitMode = 0 // from the first message
	InitMax InitMode = 1 // from the newest, see Popper.start
)

// Request is one pop.
type Request struct {
	Group, Topic string
	QueueID      int32 // negative: all queues
	Max          int
	Invisible    int64         // milliseconds
	PollTime     time.Duration // how long it may wait, counted from now by this machine's clock
	InitMode     InitMode
	Filter       *filter.Expression // nil: everything
	// Order asks for messages in order even of a topic that is not ordered.
	Order bool
	// OnePerGroup delivers at most one message of each message group.
	OnePerGroup bool
	AttemptID   string
	Holder      string         // client id
	AutoRenew   bool           // renewed while Holder is present
	Peer        *longpoll.Peer // who waits for the answer; nil = nobody who could go
}

// Status says how a pop ended.
type Status int

// The outcomes.
const (
	Found          Status = iota
	PollingTimeout        // nothing came in time
	PollingFull           // nothing there, and too many requests wait already
	Throttled             // there may be messages, but the group has too many in flight
)

// String is the status in transcripts.
func (s Status) String() string {
	return [...]string{"FOUND", "POLLING_TIMEOUT", "POLLING_FULL", "THROTTLED"}[s]
}

// Result is the answer to a pop.
type Result struct {
	Status    Status
	PopTime   int64
	Invisible int64
	RestNum   int64  // messages that are still there for the group
	Reason    string // of Throttled: what the limit is and who is over it
	Order     bool   // Batches carry Attempts
	Missed    bool   // nothing was found, and not all was seen: a read failed, or a reset came in between
	More      bool   // nothing was found yet: what there is has not been looked through in time
	Batches   []Batch

	held []storage.ReadResult
}

// Batch is what a pop found in one queue; an answer has at most one per (RetryFlag, QueueID).
type Batch struct {
	RetryFlag   byte
	QueueID     int32
	StartOffset int64
	Records     []storage.Record // sorted by queue offset
	Lite        string           // the lite topic that it is from, see Result.Join
	PopTime     int64            // of such a batch; else it is the answer's
	Attempts    []int32          // of an ordered delivery: how often each was delivered before
}

// ReviveQueue is the number that receipts carry for it.
func (r *Result) ReviveQueue() int32 {
	if r.Order {
		return names.OrderedReviveQueue
	}
	return 0
}

// Messages counts what was found.
func (r *Result) Messages() (n int) {
	for i := range r.Batches {
		n += len(r.Batches[i].Records)
	}
	return n
}

// Release gives the records' memory back to the store.
func (r *Result) Release() {
	for i := range r.held {
		r.held[i].Release()
	}
	r.held, r.Batches = nil, nil
}

// Join adds what was found in a lite topic to r, whose batches may be of many.
func (r *Result) Join(lite string, o Result) {
	for i := range o.Batches {
		b := o.Batches[i]
		b.Lite, b.PopTime = lite, o.PopTime
		r.Batches = append(r.Batches, b)
	}
	r.held = append(r.held, o.held...)
	r.Status, r.PopTime, r.Invisible, r.Order = Found, o.PopTime, o.Invisible, true
}

// Handle is the receipt of one record of b.
func (r *Result) Handle(b *Batch, rec *storage.Record, broker string) receipt.Handle {
	popTime := r.PopTime
	if b.Lite != "" {
		popTime = b.PopTime
	}
	return receipt.Handle{
		Lite: b.Lite, StartOffset: b.StartOffset, PopTime: popTime, InvisibleTime: r.Invisible,
		ReviveQueue: r.ReviveQueue(), RetryFlag: b.RetryFlag, Broker: broker,
		QueueID: b.QueueID, Offset: rec.QueueOffset, LogOffset: rec.PhysicalOffset,
	}
}

// request is a Request on its way: being served, waiting for its subject, or parked.
type request struct {
	Request
	s        *subject
	deadline time.Time
	last     bool // it may not wait any more
	leave    bool // it asks for nothing, see Leave
	gone     bool
	notify   func(Notice, error)
	done     func(Result, error)

	ordered  bool
	priority bool
	factor   int32
	born     int64 // where the log was when the topic was made
}

// Pop looks for messages and answers done, once: before it returns, from a worker, or
// from a long poll that ends.
func (p *Popper) Pop(r Request, done func(Result, error)) {
	q := &request{Request: r, done: done}
	q.Invisible = boundInvisible(q.Invisible)
	if err := p.admit(q); err != nil {
		done(Result{}, err)
		return
	}
	q.Max = max(q.Max, 1)
	p.run(q)
}

// check looks at what a request names, in the protocol's order.
func (p *Popper) check(r *Request) (*topic.Config, *group.Config, error) {
	if p.o.Broker.Get().BrokerPermission&topic.PermRead == 0 {
		return nil, nil, ErrBrokerUnreadable
	}
	if r.Max > MaxMessages {
		return nil, nil, ErrTooMany
	}
	t, ok := p.o.Topic(r.Topic)
	switch {
	case !ok:
		return nil, nil, ErrTopicNotFound
	case !t.Readable():
		return nil, nil, ErrTopicUnreadable
	case r.QueueID >= t.ReadQueues:
		return nil, nil, ErrQueueIllegal
	}
	g, err := p.o.Group(r.Group)
	switch {
	case err != nil:
		return nil, nil, err
	case g == nil:
		return nil, nil, ErrGroupNotFound
	case !g.ConsumeEnable:
		return nil, nil, ErrGroupDisabled
	case p.o.Forbidden != nil && p.o.Forbidden(r.Group, r.Topic):
		return nil, nil, ErrForbidden
	}
	return t, g, nil
}

// Admits returns why a request would be refused, nil if it would not be.
func (p *Popper) Admits(r Request) error {
	_, _, err := p.check(&r)
	return err
}

// admit checks what the request names and resolves it.
func (p *Popper) admit(q *request) error {
	t, g, err := p.check(&q.Request)
	if err != nil {
		return err
	}
	kind := t.MessageType()
	q.ordered = q.Order || kind == "FIFO" || names.IsLite(q.Topic) // a lite topic has no retry topic
	q.priority = kind == "PRIORITY"
	q.factor = priorityFactor(g)
	q.born = t.Birth
	q.deadline = time.Now().Add(q.PollTime)
	q.last = q.PollTime <= 0
	q.s = p.subject(subjectKey{q.Group, q.Topic})
	return nil
}

// run serves q now, or leaves it with whoever serves its subject now.
func (p *Popper) run(q *request) {
	s := q.s
	for {
		entered, gone := s.enter(q)
		if entered {
			break
		}
		if !gone {
			return
		}
		s = p.subject(subjectKey{q.Group, q.Topic})
		q.s = s
	}
	a, err := p.attempt(q)
	if s.leave() {
		p.ready.put(job{s: s})
	}
	p.settle(q, a, err)
}

// serveWaiting serves what waits for s, which the caller took over held. After a while it
// lets other subjects have their turn.
func (p *Popper) serveWaiting(s *subject) {
	for range 64 {
		q := s.nextOrLeave()
		if q == nil {
			return
		}
		a, err := p.attempt(q)
		p.settle(q, a, err)
	}
	p.ready.put(job{s: s})
}

// seen is a picture of what a request could be given; it changes whenever that grows.
type seen struct {
	ends    int64
	version uint64
}

// settle answers q, or parks it when it found nothing and may wait.
func (p *Popper) settle(q *request, a attempt, err error) {
	switch {
	case err == ErrGone:
		p.finish(q, Result{}, err)
		p.wakeNext(q) // for what it may have been woken for
	case err != nil:
		p.finish(q, Result{}, err)
	case a.res.Status == Found:
		p.finish(q, a.res, nil)
		// A waiter with a filter has looked at everything already and is woken by what it
		// wants; only where messages were set aside to the limit it must look again.
		if a.roomAgain || a.res.RestNum > 0 && q.Filter.MatchesAll() {
			p.wakeNext(q)
		}
	case a.more && time.Now().Before(q.deadline.Add(time.Second)):
		p.ready.put(job{q: q}) // the scan goes on, after others had their turn
	case q.last || p.o.LongPoll == nil || !time.Now().Before(q.deadline):
		p.finish(q, a.res, nil)
	default:
		p.park(q, a)
	}
}

// wakeNext wakes the next that waits for what q has asked for.
func (p *Popper) wakeNext(q *request) {
	if p.o.LongPoll != nil {
		p.o.LongPoll.WakeNext(longpoll.Key{Topic: q.Topic, QueueID: q.QueueID, Group: q.Group})
	}
}

// park suspends q and looks once more whether something came between the attempt and the
// parking.
func (p *Popper) park(q *request, a attempt) {
	// A new one each time: the one before may still be in the hands of a goroutine that
	// woke it.
	w := &longpoll.Waiter{
		Key:      longpoll.Key{Topic: q.Topic, QueueID: q.QueueID, Group: q.Group},
		Deadline: q.deadline,
		Peer:     q.Peer,
		Each:     q.notify != nil,
		Wake:     func(why longpoll.Reason) { p.woken(q, why) },
	}
	if w.Key.QueueID < 0 {
		w.Key.QueueID = longpoll.AllQueues
	}
	if q.Filter != nil && !q.Filter.MatchesAll() {
		w.Filter = q.Filter
	}
	if !q.ordered {
		w.Also = []longpoll.Key{
			{Topic: q.s.topic[receipt.FlagRetryV1], QueueID: longpoll.AllQueues, Group: q.Group},
			{Topic: q.s.topic[receipt.FlagRetryV2], QueueID: longpoll.AllQueues, Group: q.Group},
		}
	}
	look := *q // for the time when q is in other hands already
	if err := p.o.LongPoll.Park(w); err != nil {
		p.refused(q, a, err)
		return
	}
	if after, _ := p.picture(&look); after != a.before && p.o.LongPoll.Remove(w) {
		p.ready.put(job{q: q})
	}
}

// refused answers q, which can't be parked.
func (p *Popper) refused(q *request, a attempt, err error) {
	switch err {
	case longpoll.ErrGone:
		p.finish(q, Result{}, ErrGone)
		return
	case longpoll.ErrClosed:
		a.res.Status = PollingTimeout
	default:
		a.res.Status = PollingFull
	}
	p.finish(q, a.res, nil)
}

// woken goes on with a parked request, on a worker or at the end of the caller's round: the
// caller must not be held up.
func (p *Popper) woken(q *request, why longpoll.Reason) {
	switch why {
	case longpoll.Released:
		p.finish(q, Result{}, ErrGone)
	case longpoll.Closed:
		p.finish(q, Result{Status: PollingTimeout, PopTime: p.now(), Invisible: q.Invisible, Order: q.ordered}, nil)
	case longpoll.Changed:
		if err := p.admitAgain(q); err != nil {
			p.finish(q, Result{}, err)
			return
		}
		p.ready.woken(q)
	case longpoll.Expired:
		q.last = true
		p.ready.woken(q)
	default:
		p.ready.woken(q)
	}
}

// admitAgain repeats the checks for a request that waited, keeping its deadline.
func (p *Popper) admitAgain(q *request) error {
	deadline, last := q.deadline, q.last
	err := p.admit(q)
	q.deadline, q.last = deadline, last
	return err
}

// finish answers q.
func (p *Popper) finish(q *request, res Result, err error) {
	if q.notify != nil {
		q.notify(Notice{HasMessages: res.Status == Found && err == nil, Full: res.Status == PollingFull}, err)
		return
	}
	q.done(res, err)
}

// reach is how many queues there are to read, by flag.
type reach [3]int32

// resolve asks the topic table what there is to read; a retry topic may have been created
// since the last time.
func (p *Popper) resolve(q *request) (r reach) {
	if t, ok := p.o.Topic(q.Topic); ok {
		r[receipt.FlagNormal] = t.ReadQueues
	}
	if q.ordered {
		return r
	}
	if p.o.Broker.Get().RetrieveMessageFromPopRetryV1 {
		if t, ok := p.o.Topic(q.s.topic[receipt.FlagRetryV1]); ok {
			r[receipt.FlagRetryV1] = t.ReadQueues
		}
	}
	if t, ok := p.o.Topic(q.s.topic[receipt.FlagRetryV2]); ok {
		r[receipt.FlagRetryV2] = t.ReadQueues
	}
	return r
}

// picture looks at everything that q can be given. It changes nothing in q, which may be
// in other hands already.
func (p *Popper) picture(q *request) (seen, reach) {
	r := p.resolve(q)
	v := seen{version: q.s.version.Load()}
	if q.QueueID >= 0 {
		v.ends = p.o.Store.MaxOffset(q.Topic, q.QueueID)
	} else {
		for i := range r[receipt.FlagNormal] {
			v.ends += p.o.Store.MaxOffset(q.Topic, i)
		}
	}
	if !q.ordered {
		for flag := receipt.FlagRetryV1; flag <= receipt.FlagRetryV2; flag++ {
			for i := range r[flag] {
				v.ends += p.o.Store.MaxOffset(q.s.topic[flag], i)
			}
		}
	}
	return v, r
}

// Package pull answers consumers that keep their own place in a queue: it checks, reads,
// suspends when there is nothing yet, and keeps the offsets that such consumers commit.
//
// Invariants: the checks run in one order, the protocol's, and again when a suspended
// pull is woken, so a topic or group that is gone meanwhile is answered as such; done is
// called exactly once for each pull; a pull that waits holds no goroutine and no lock;
// what a status means is one pure table (Outcome).
//
// Neighbours: brokerrpc and proxy/local pull; storage reads; longpoll keeps who waits;
// offset, topic, group and clients are asked.
package pull

import (
	"errors"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
)

// Store is what pull asks of the storage engine.
type Store interface {
	Read(r storage.ReadRequest) storage.ReadResult
	MinOffset(topic string, queueID int32) int64
	MaxOffset(topic string, queueID int32) int64
	StoreTimeAt(topic string, queueID int32, offset int64) int64
}

// Options is what a Puller needs.
type Options struct {
	Store    Store
	Topics   *topic.Table
	Groups   *group.Table
	Offsets  *offset.Table
	Clients  *clients.Registry
	LongPoll *longpoll.Table
	Broker   *config.Live[config.Broker]
	// NowMilli is the protocol's time, for "is this group older than that queue".
	NowMilli func() int64
	// MaxMessages bounds one answer whatever the request asks for; nil: 32.
	MaxMessages func() int
	Events      Events
}

// Events tell what happened; each may be nil.
type Events struct {
	Pulled    func(group, topic string, messages, bytes int)
	Suspended func(group, topic string)
}

// Puller is safe for concurrent use.
type Puller struct {
	o       Options
	filters filter.Cache
	starts  starts
}

// New returns a puller.
func New(o Options) *Puller {
	if o.MaxMessages == nil {
		o.MaxMessages = func() int { return 32 }
	}
	p := &Puller{o: o}
	p.starts.opened = o.NowMilli()
	p.starts.groups = make(map[groupTopic]int64)
	return p
}

// Request is one pull.
type Request struct {
	Group   string
	Topic   string
	QueueID int32
	Offset  int64

	Lite bool // from a lite pull consumer, which has a code of its own

	MaxMessages int32
	MaxBytes    int32 // 0 = 256 KiB

	Commit       bool // CommitOffset is to be stored
	CommitOffset int64
	Suspend      time.Duration // how long to wait for messages; 0 = answer at once

	// Subscribed says that Expression and Kind are the filter; otherwise the group's
	// subscription from its heartbeat is, which must have SubVersion at least.
	Subscribed bool
	Expression string
	Kind       string
	SubVersion int64

	Peer *longpoll.Peer // who asks, for the end of the waiting; nil = nobody who could go
}

// Result is the answer to a pull that was not refused.
type Result struct {
	Answer Answer
	Status storage.ReadStatus // for the remark
	Next   int64
	Min    int64
	Max    int64
	Reset  bool // Next is an offset that a command has set
	Topic  *topic.Config
	Group  *group.Config
	Read   storage.ReadResult // its records when Answer is Found; the receiver releases it
}

// Pull answers r through done: before it returns, or, when there is nothing to read and
// r allows it, as soon as a message arrives or the time is over.
func (p *Puller) Pull(r Request, done func(Result, error)) {
	res, expr, err := p.once(&r, true)
	if err == nil && res.Answer == NotFound && r.Suspend > 0 {
		p.suspend(r, expr, done)
		return
	}
	p.finish(&r, res, err, done)
}

func (p *Puller) finish(r *Request, res Result, err error, done func(Result, error)) {
	if err == nil && res.Answer == Found && p.o.Events.Pulled != nil {
		p.o.Events.Pulled(r.Group, r.Topic, len(res.Read.Records), res.Read.Bytes)
	}
	done(res, err)
}

// once checks and reads. The first run of a pull alone stores the consumer's offset; where
// the group has come to by pulling, each does.
func (p *Puller) once(r *Request, first bool) (Result, *filter.Expression, error) {
	g, t, err := p.check(r)
	if err != nil {
		return Result{}, nil, err
	}
	expr, err := p.filter(r, g, first)
	if err != nil {
		return Result{}, nil, err
	}
	if first && r.Commit {
		p.o.Offsets.Advance(r.Group, r.Topic, r.QueueID, r.CommitOffset)
	}
	res := Result{Topic: t, Group: g}
	if off, ok := p.o.Offsets.TakeReset(r.Group, r.Topic, r.QueueID); ok {
		res.Answer, res.Reset, res.Next = Moved, true, off
		res.Min, res.Max = p.o.Store.MinOffset(r.Topic, r.QueueID), p.o.Store.MaxOffset(r.Topic, r.QueueID)
		return res, expr, nil
	}
	res.Read = p.o.Store.Read(storage.ReadRequest{Topic: r.Topic, QueueID: r.QueueID, Offset: r.Offset,
		MaxMessages: max(1, min(int(r.MaxMessages), p.o.MaxMessages())), MaxBytes: maxBytes(r.MaxBytes), Filter: expr})
	res.Status, res.Answer = res.Read.Status, Outcome(res.Read.Status, r.Offset)
	res.Next, res.Min, res.Max = res.Read.Next, res.Read.Min, res.Read.Max
	p.o.Offsets.CommitPull(r.Group, r.Topic, r.QueueID, res.Next)
	return res, expr, nil
}

const (
	defaultBytes = 256 << 10
	mostBytes    = 8 << 20
)

func maxBytes(asked int32) int {
	if asked <= 0 {
		return defaultBytes
	}
	return min(int(asked), mostBytes)
}

// suspended is a pull that waits: the request, its place in the table of waiters, and
// whom to answer.
type suspended struct {
	puller *Puller
	r      Request
	waiter longpoll.Waiter
	done   func(Result, error)
}

func (p *Puller) suspend(r Request, expr *filter.Expression, done func(Result, error)) {
	wait := r.Suspend
	if !p.o.Broker.Get().LongPollingEnable {
		wait = min(wait, time.Second)
	}
	s := &suspended{puller: p, r: r, done: done}
	s.waiter = longpoll.Waiter{Key: longpoll.Key{Topic: r.Topic, QueueID: r.QueueID}, Each: true, Filter: expr,
		Offset: r.Offset, Peer: r.Peer, Deadline: time.Now().Add(wait), Wake: s.wake}
	if p.o.Events.Suspended != nil {
		p.o.Events.Suspended(r.Group, r.Topic)
	}
	s.park()
}

// park waits, unless a message has arrived since the last look.
//
//	pull: reads, nothing there     dispatcher: makes message visible
//	pull: parks                    dispatcher: wakes who is parked
//	pull: looks again
//
// Whatever the order of the two columns, either the look or the wake sees the message.
func (s *suspended) park() {
	for {
		if err := s.puller.o.LongPoll.Park(&s.waiter); err != nil {
			s.refused(err)
			return
		}
		if s.puller.o.Store.MaxOffset(s.r.Topic, s.r.QueueID) <= s.r.Offset || !s.puller.o.LongPoll.Remove(&s.waiter) {
			return
		}
		if s.again() {
			return
		}
	}
}

// refused ends a pull that can't wait: with what it would have got at its deadline when
// the server stops, and as busy when too many wait.
func (s *suspended) refused(err error) {
	switch {
	case errors.Is(err, longpoll.ErrGone):
		s.released()
	case errors.Is(err, longpoll.ErrFull):
		s.done(Result{}, fmt.Errorf("%w: %w", ErrBusy, err))
	default:
		s.answer()
	}
}

// released ends a pull whose answer nobody reads.
func (s *suspended) released() {
	s.done(Result{Answer: NotFound, Status: storage.OffsetOverflowOne, Next: s.r.Offset}, nil)
}

func (s *suspended) wake(reason longpoll.Reason) {
	switch reason {
	case longpoll.Released:
		s.released()
	case longpoll.Expired, longpoll.Closed:
		s.answer()
	default:
		if !s.again() {
			s.park()
		}
	}
}

// again looks once more and answers, unless there is still nothing and time to wait.
func (s *suspended) again() (answered bool) {
	res, expr, err := s.puller.once(&s.r, false)
	if err == nil && res.Answer == NotFound && time.Now().Before(s.waiter.Deadline) {
		s.waiter.Filter = expr
		return false
	}
	s.puller.finish(&s.r, res, err, s.done)
	return true
}

func (s *suspended) answer() {
	res, _, err := s.puller.once(&s.r, false)
	s.puller.finish(&s.r, res, err, s.done)
}

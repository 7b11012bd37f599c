// Package pop lends messages: pop, acknowledge, change of the invisible time, renewal, and
// what happens when a time lapses. DESIGN.md tells the whole; docs/architecture.md,
// section 3, names the rules P1 to P8 that the comments here refer to.
//
// Words: a message is in flight from delivery until it is acked or its invisible time
// lapses. A delivery is named by (group, real topic, queue, offset, popTime). The window of
// a (group, topic, queue) is in memory and decides; the state database holds what rebuilds
// it.
//
// Invariants: for a group, a message below the window's next offset is in flight, set
// aside, or done: exactly one of them (P5); next offset, records and what is set aside
// change in one batch (P1); an ack is answered after its batch is as durable as the policy
// asks, and no lock is held meanwhile (P2); a delivery that was claimed accepts no ack (P7).
// Lock order: Popper.mu, window.mu, then due.mu or flush.mu; subject.mu is a leaf but
// for ForgetIdle, which takes the others under it.
//
// Neighbours: fronts and proxy/local call Pop, Ack and the rest; storage is read; publish
// writes the retry copies; longpoll parks; state keeps; offset is told the lowest message
// that is not done; broker calls Dispatched for copies, DropBeyond in recovery, and adds
// DropTopic and DropGroup to its own batches.
package pop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/filter"
)

// Errors of Ack, AckBatch and ChangeInvisible. In none of these cases had the call any
// effect.
var (
	// ErrStale: the message is in flight under a later popTime.
	ErrStale = errors.New("stale receipt: the message has been delivered or renewed under a later one")
	// ErrExpired: the invisible time of the delivery is over, or the message was moved on.
	ErrExpired = errors.New("expired receipt: the invisible time is over")
	// ErrIllegal: the receipt names no delivery of this broker.
	ErrIllegal = errors.New("illegal receipt: it names no delivery of this broker")
)

// Errors of Pop and Notification.
var (
	ErrTooMany = errors.New("the number of messages must not be over 32")
	// ErrBrokerUnreadable: nobody may read from this broker.
	ErrBrokerUnreadable = errors.New("the broker does not allow reading")
	ErrTopicNotFound    = errors.New("topic does not exist")
	ErrTopicUnreadable  = errors.New("topic is not readable")
	ErrQueueIllegal     = errors.New("queue id is out of range")
	ErrGroupNotFound    = errors.New("subscription group does not exist")
	ErrGroupDisabled    = errors.New("subscription group may not consume")
	ErrForbidden        = errors.New("subscription group is forbidden to read the topic")
	// ErrGone: the connection closed while the request waited; nobody reads the answer.
	ErrGone = errors.New("the requesting connection has closed")
)

// MaxMessages is the most messages that one Pop delivers.
const MaxMessages = 32

// Store is what pop asks of the storage engine.
type Store interface {
	Read(storage.ReadRequest) storage.ReadResult
	MinOffset(topic string, queueID int32) int64
	MaxOffset(topic string, queueID int32) int64
}

// Offsets is what pop asks of the table of consumer offsets.
type Offsets interface {
	// Query returns what the group has consumed by any means.
	Query(group, topic string, queueID int32) (int64, bool)
	// Advance is told the lowest message that is not done.
	Advance(group, topic string, queueID int32, offset int64)
	// TakeReset returns the offset that an administrator set since the last call.
	TakeReset(group, topic string, queueID int32) (int64, bool)
	// PendingReset returns what TakeReset would.
	PendingReset(group, topic string, queueID int32) (int64, bool)
}

// Options are what a Popper needs. Functions that are nil answer what a broker without
// that feature would.
type Options struct {
	State    *state.DB
	Store    Store
	Offsets  Offsets
	Clock    *clock.Clock
	LongPoll *longpoll.Table
	Rounds   *round.Rounds // in which a woken request need not wake a worker; nil for none
	Topic    func(name string) (*topic.Config, bool)
	// Group returns a group, creating it where that is allowed.
	Group func(name string) (*group.Config, error)
	// Forbidden reports whether a group is forbidden to read a topic.
	Forbidden func(group, topic string) bool
	// Subscriptions are the different filters of the group's live members.
	Subscriptions func(group, topic string) []*clients.Subscription
	// Compile reads their expressions; nil: filter.Compile, each time anew.
	Compile func(kind, text string) (*filter.Expression, error)
	// Present reports whether a client is connected: its deliveries with automatic renewal
	// are kept. It must not call back.
	Present func(clientID string) bool
	// InMemory reports whether the beginning of a queue is recent enough for a new group
	// that starts from the newest to take all of it.
	InMemory func(topic string, queueID int32) bool
	// Left reports whether a group was switched over from POP to pulling a topic, see
	// Leave. Nil: there is no such switch.
	Left func(group, topic string) bool
	// LiteFree is told when a lite topic's queue has messages for a group that were blocked
	// before. It must not call back.
	LiteFree func(group, queue string)
	// Retry writes the next copy of a lapsed message; DeadLetter ends an ordered one.
	Retry      func(r publish.Redelivery, done func(error))
	DeadLetter func(r publish.Redelivery, reason string, done func(error))
	Broker     *config.Live[config.Broker]
	SetAside   int           // messages that a queue may set aside; 10,000
	MaxBytes   int           // bytes per answer and queue; 1 MiB
	MaxRenew   time.Duration // how long a delivery is renewed; 3 h
	Workers    int           // goroutines for woken and queued requests; GOMAXPROCS
	Events     Events
	Log        *slog.Logger
}

// Events tell what happened; each may be nil and must not block.
type Events struct {
	Popped    func(group, topic string, messages, again int) // again of them are redeliveries
	Acked     func(group, topic string, messages int)
	Revived   func(group, topic string, messages int)
	Failed    func(group, topic string, err error)                     // a copy could not be written
	Skipped   func(group, topic string, queueID int32, from, to int64) // retention took them unread
	Lost      func(group, topic string, queueID int32, offset int64)   // it took one that was to come again
	Renewed   func(group, topic string, messages int)
	Corrected func(group, topic string, queueID int32, from, to int64)
}

// Popper is the broker's POP. Create it with Open, then DropBeyond, then run its Loops.
type Popper struct {
	o        Options
	openedAt int64 // receipts from before are of an earlier process
	ahead    int64 // how far now is ahead of the clock, which would not reach what an earlier process has given out
	lastPop  atomic.Int64

	mu struct {
		sync.RWMutex
		windows  map[windowKey]*window
		byID     map[uint32]*window
		subjects map[subjectKey]*subject
		nextID   uint32
		floor    int64 // of new windows: later than all names that deleted ones have given
		made     int   // windows of lite topics, since those that are idle were last looked for
		sweepAt  int   // how many of them are reason to look again
	}
	due     dueHeap
	alarm   *clock.Alarm
	flush   flushQueue
	ready   readyQueue
	revival revival
	holders holders
}

// Loop is one of the goroutines that a Popper needs.
type Loop struct {
	Name string
	Run  func(ctx context.Context) error
}

// Open reads the windows of o.State. Nothing may be delivered before DropBeyond.
func Open(o Options) (*Popper, error) {
	o.setDefaults()
	p := &Popper{o: o, alarm: o.Clock.NewAlarm()}
	p.mu.windows = make(map[windowKey]*window)
	p.mu.byID = make(map[uint32]*window)
	p.mu.subjects = make(map[subjectKey]*subject)
	p.mu.nextID = 1
	p.mu.sweepAt = sweepAfter
	p.ready.wake, p.ready.rounds = make(chan struct{}, 1), o.Rounds
	o.Rounds.Wake(p.ready.signal)
	p.due.alarm = p.alarm
	p.holders.init()
	if err := p.load(); err != nil {
		p.alarm.Stop()
		return nil, fmt.Errorf("read POP state: %w", err)
	}
	return p, nil
}

// Loops are the revive loop and the workers that go on with woken requests.
func (p *Popper) Loops() []Loop {
	loops := []Loop{{Name: "pop revive", Run: p.Run}}
	for i := range p.o.Workers {
		loops = append(loops, Loop{Name: fmt.Sprintf("pop worker %d", i+1), Run: p.work})
	}
	return loops
}

// Close answers what still waits for a worker and forgets the clock. The loops and the
// long polls must have ended.
func (p *Popper) Close() {
	for j, ok := p.ready.take(); ok; j, ok = p.ready.take() {
		switch {
		case j.q != nil:
			p.finish(j.q, Result{Status: PollingTimeout}, nil)
		case j.s != nil:
			for _, q := range j.s.abandon() {
				p.finish(q, Result{Status: PollingTimeout}, nil)
			}
		case j.do != nil:
			j.do(true)
		default:
			j.f.end(storage.ErrClosed)
		}
	}
	p.alarm.Stop()
}

// now is the time of deliveries. It never runs behind what an earlier process has given
// out, and it never stands still: where the clock does not believe that any more, it runs ahead
// of it for as long as this process lives, so that what is in flight ends in time and no name of
// a delivery comes again.
func (p *Popper) now() int64 { return p.o.Clock.NowMilli() + p.ahead }

func (o *Options) setDefaults() {
	if o.SetAside == 0 {
		o.SetAside = 10_000
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	if o.Compile == nil {
		o.Compile = filter.Compile
	}
	if o.MaxRenew == 0 {
		o.MaxRenew = 3 * time.Hour
	}
	if o.Broker == nil {
		o.Broker = config.NewLive(config.DefaultBroker())
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Subscriptions == nil {
		o.Subscriptions = func(string, string) []*clients.Subscription { return nil }
	}
	if o.Present == nil {
		o.Present = func(string) bool { return false }
	}
	if o.InMemory == nil {
		o.InMemory = func(string, int32) bool { return false }
	}
}

// Package txn is transactions: half messages that wait in the half topic until their
// producer commits or rolls them back, or is asked to.
//
// Invariants: what becomes of a half message is decided by one append and by nothing else:
// the copy in its own topic is the commit, an op message is the rollback (P6; both name the
// half message, and dispatch is replayed in recovery). So the state here is a function of
// the log; the state database has it as it was at the store's last checkpoint, and only the
// number of checks is not in the log. The first decision stands: the same one again changes
// nothing and succeeds, another one is refused. A half message that is decided is not
// asked about, unless the decision lands while the question leaves; one that nobody could be asked about has used up no check. A half message
// that is open is not lost with its log file. The loop sleeps until the first check is due.
//
// Neighbours: publish diverts half messages here and stores the copies; storage reads;
// broker reports what was dispatched and has the state stored before a checkpoint; clients
// knows the producers, and carries the questions to them; offset has the two offsets with
// which Apache's broker goes on.
package txn

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Store is what is asked of the storage engine.
type Store interface {
	Read(r storage.ReadRequest) storage.ReadResult
	ReadAt(physicalOffset int64) ([]byte, error)
	PropertiesAt(physicalOffset int64, size int32) (message.Properties, bool)
	MinOffset(topic string, queueID int32) int64
	MaxOffset(topic string, queueID int32) int64
	Sync() error
}

// Offsets is what is asked of the offset table.
type Offsets interface {
	Query(group, topic string, queue int32) (int64, bool)
	Commit(group, topic string, queue int32, off int64) error
}

// Options is what a Txn needs.
type Options struct {
	Store   Store
	State   *state.DB
	Publish *publish.Publisher
	Offsets Offsets
	// Topic finds the topic that a half message is for.
	Topic func(name string) (*topic.Config, bool)
	// Producers are the members of a producer group.
	Producers func(group string) []clients.Client
	Broker    *config.Live[config.Broker]
	// MaxAge is how long a half message may be open; nil: three days.
	MaxAge func() time.Duration
	Clock  *clock.Clock
	Events Events
	Log    *slog.Logger
}

// Events tell what happened; each may be nil.
type Events struct {
	// Ended tells of a decision that was stored, and how long the half message was open.
	Ended func(topic string, committed bool, after time.Duration)
	// GivenUp tells of a half message that was moved away undecided.
	GivenUp func(topic, group string, checks int32)
	// Unasked tells that no producer of the group could be asked.
	Unasked func(group string, open int)
}

// Why a decision is not taken.
var (
	ErrNotFound  = errors.New("find prepared transaction message failed")
	ErrGroup     = errors.New("the producer group wrong")
	ErrQueue     = errors.New("the transaction state table offset wrong")
	ErrLog       = errors.New("the commit log offset wrong")
	ErrMessage   = errors.New("the transaction is of another message")
	ErrDecided   = errors.New("the transaction is decided")
	ErrTopicGone = errors.New("the topic of the half message is gone")
	ErrIllegal   = errors.New("illegal decision")
	ErrBusy      = errors.New("the transaction is busy")
)

// Txn is the transactions of a broker. mu guards all that is known of half messages; it is
// held across neither a read of the log nor an append. Decisions that are on their way are in
// flying: between the append and its dispatch neither another decision nor a check may pass.
type Txn struct {
	o     Options
	alarm *clock.Alarm
	moved chan struct{} // a decision was dispatched
	tally tally
	mu    struct {
		sync.Mutex
		open     map[int64]*entry // by the queue offset that is the half message's name
		order    order
		changed  []*entry // dirty ones; some that have gone since may be among them
		flying   map[int64]*flight
		outcomes outcomes
		fresh    fresh   // open ones that were not looked at yet
		due      dueHeap // those that were
		end      int64   // of the half queue, as far as dispatched
		ops      ops
		unasked  map[string]struct{} // groups that nobody was there of when they were to be asked
		dropped  []int64             // ended since the last save, and stored
		turn     uint32              // whose turn it is to be asked
		failed   error               // the state could not be read; Clamp tells
		ready    bool                // the store is open
	}
}

// entry is one open half message. Its name is the queue offset that its producer knows, and
// stays when it is written again.
type entry struct {
	first, origin int64 // queue and log offset that its producer knows
	at, physical  int64 // where it is now
	size          int32
	stored        int64 // ms
	due           int64 // of the next check; 0: not looked at yet
	checks        int32
	topic, group  string // once looked at
	late          bool   // when it was due nobody could be asked
	gone          bool   // decided; fresh and due may hold it still
	saved, dirty  bool   // in the state database; otherwise than there
}

// flight is a decision that is appended and not dispatched.
type flight struct {
	to     Outcome
	topic  string
	after  time.Duration
	stored bool // the append is complete
	wait   []func(error)
}

// Open returns the transactions with what was stored of them. It is opened before the store.
func Open(o Options) (*Txn, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxAge == nil {
		o.MaxAge = func() time.Duration { return 72 * time.Hour }
	}
	t := &Txn{o: o, moved: make(chan struct{}, 1)}
	t.clear()
	if err := t.load(); err != nil {
		return nil, err
	}
	t.alarm = o.Clock.NewAlarm()
	t.mu.Lock()
	t.armLocked()
	t.mu.Unlock()
	return t, nil
}

// clear forgets everything.
func (t *Txn) clear() {
	t.mu.open, t.mu.order, t.mu.changed = make(map[int64]*entry), order{}, nil
	t.mu.flying = make(map[int64]*flight)
	t.mu.unasked = make(map[string]struct{})
	t.mu.outcomes = outcomes{pages: make(map[int64]*page), high: -1}
	t.mu.fresh, t.mu.due, t.mu.dropped = fresh{}, nil, nil
	t.mu.end, t.mu.ops = 0, ops{}
}

// Run asks about what stays open, and writes op messages, until ctx ends.
func (t *Txn) Run(ctx context.Context) error {
	defer t.alarm.Stop()
	for {
		if err := t.alarm.Wait(ctx); err != nil {
			t.finish()
			return err
		}
		t.look()
		t.check(t.o.Clock.NowMilli())
		t.writeOps(false)
		if err := t.settle(ctx); err != nil {
			t.finish()
			return err
		}
		t.mu.Lock()
		t.armLocked()
		t.mu.Unlock()
	}
}

// finish leaves everything as another server can take it over: op messages for all that is
// decided, and the offsets that go with them. It waits for what is on its way, not for ever:
// a log that has failed dispatches nothing any more.
func (t *Txn) finish() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = t.settle(ctx)
	t.writeOps(true)
	t.commitOffsets()
	t.lookAtAll() // for the export
}

// settle waits until every decision that is being made has been dispatched, so that who moves
// the clock finds it done. Decisions that begin meanwhile are not waited for: there may always
// be some. A copy whose topic is deleted in between is dispatched to nobody, but dispatched.
func (t *Txn) settle(ctx context.Context) error {
	type pending struct {
		first int64
		*flight
	}
	var left []pending
	t.mu.Lock()
	for first, f := range t.mu.flying {
		left = append(left, pending{first, f})
	}
	t.mu.Unlock()
	for {
		t.mu.Lock()
		for n := len(left); n > 0 && t.mu.flying[left[n-1].first] != left[n-1].flight; n = len(left) {
			left = left[:n-1]
		}
		t.mu.Unlock()
		if len(left) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.moved:
		}
	}
}

// armLocked sets the alarm for what comes first.
func (t *Txn) armLocked() {
	next := t.mu.fresh.next(t.lookAfter())
	if n := t.mu.due.next(); n != 0 && (next == 0 || n < next) {
		next = n
	}
	if n := t.mu.ops.due; n != 0 && (next == 0 || n < next) {
		next = n
	}
	if next != 0 {
		t.alarm.Earlier(next)
	}
}

// Open counts the open half messages, by the topics that they are for.
func (t *Txn) Open() map[string]int64 {
	t.lookAtAll()
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]int64)
	for _, e := range t.mu.open {
		out[e.topic]++
	}
	return out
}

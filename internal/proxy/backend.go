package proxy

import (
	"context"
	"errors"
	"time"

	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Errors that a Backend answers with, wrapped with what was attempted. Fronts translate
// them; every other error is a failure of the server.
var (
	ErrTopicNotFound    = errors.New("topic not found")
	ErrGroupNotFound    = errors.New("consumer group not found")
	ErrNoWritableQueue  = errors.New("no writable queue")
	ErrNoReadableQueue  = errors.New("no readable queue")
	ErrForbidden        = errors.New("forbidden")
	ErrIllegalHandle    = errors.New("receipt handle is malformed or belongs elsewhere")
	ErrExpiredHandle    = errors.New("receipt handle is expired")
	ErrStaleHandle      = errors.New("receipt handle was replaced by a later one")
	ErrIllegalMessage   = errors.New("message is illegal")
	ErrDeliveryTime     = errors.New("illegal delivery time")
	ErrIllegalRecall    = errors.New("recall handle is malformed or belongs elsewhere")
	ErrRecallTooLate    = errors.New("too late to recall")
	ErrMessageTooLarge  = errors.New("message is too large")
	ErrMessageNotFound  = errors.New("message not found")
	ErrBusy             = errors.New("server is busy")
	ErrFlushTimeout     = errors.New("stored, but not flushed in time")
	ErrSlaveTimeout     = errors.New("stored, but not replicated in time")
	ErrSlaveUnavailable = errors.New("stored, but no slave is there to replicate to")
	ErrTimeout          = errors.New("broker did not answer in time")
	ErrUnsupported      = errors.New("not served")

	ErrLiteTopicQuota        = errors.New("too many lite topics")
	ErrLiteSubscriptionQuota = errors.New("too many lite subscriptions")
	ErrIllegalLite           = errors.New("topic or group is not one of lite topics")
	ErrUnfitLite             = errors.New("lite subscription does not fit")

	// ErrIllegalTransaction says that a transaction id is malformed, unknown or of another
	// message; ErrDecided that the transaction was decided otherwise before.
	ErrIllegalTransaction = errors.New("transaction id is malformed or unknown")
	ErrDecided            = errors.New("the transaction is decided")
)

// Backend carries out what a proxy decided.
//
// Completions are called once, from any goroutine, possibly before the call returns, and
// must not block.
type Backend interface {
	Directory
	Sender
	Deliveries
	Members
	Transactions
	Lites
}

// Directory knows topics and groups.
type Directory interface {
	// Route answers ErrTopicNotFound for an unknown topic, also where sending would
	// create it. The answer is shared and must not be changed.
	Route(ctx context.Context, topic string) (*Route, error)
	// Group answers the settings of a new group for an unknown one.
	Group(ctx context.Context, name string) (Group, error)
}

// Sender stores messages.
type Sender interface {
	// Send stores the messages in one queue of the broker, in order, in one put.
	// Messages and bodies belong to the caller again when done is called.
	Send(broker string, messages []*message.Message, done func(Sent, error))
	// Recall takes a message back that is not due yet; done gets its id.
	Recall(topic, handle string, done func(id string, err error))
}

// Deliveries lends messages and hears what became of them.
type Deliveries interface {
	Pop(r PopRequest, done func(Popped, error))
	// Withdraw says that nobody waits for the answer to r any more: no message need be
	// given to it, and its done may be called with any error.
	Withdraw(r PopRequest)
	// Ack may use the names and handles until done is called, and not keep them.
	Ack(group, topic string, handles []receipt.Handle, done func([]error))
	ChangeInvisible(c ChangeRequest, done func(receipt.Handle, error))
	DeadLetter(group, topic string, h receipt.Handle, done func(error))
}

// Members tells the broker who is connected.
type Members interface {
	// Join says that the client is there, with the settings it has now; said again with
	// every heartbeat.
	Join(c *Client) error
	// Leave says that the client is gone.
	Leave(c *Client)
}

// Transactions carries decisions of producers.
type Transactions interface {
	// End decides a half message; done is called when the decision is stored.
	End(r EndRequest, done func(error))
}

// EndRequest is a decision. The transaction id is what Sent had of the half message.
type EndRequest struct {
	Topic, MessageID, TransactionID string
	Commit                          bool // else: roll back
}

// Group is what a consumer group's configuration means to its clients.
type Group struct {
	Name        string
	FIFO        bool // messages of one queue or message group one after the other
	MaxAttempts int32
	Backoff     Backoff
	LiteQuota   int32
	LiteTopic   string // the topic that a lite group is bound to
}

// Backoff is how long a consumer waits before its next attempt: Next when it is not
// empty, else exponential.
type Backoff struct {
	Next         []time.Duration
	Initial, Max time.Duration
	Multiplier   float32
}

// DefaultBackoff is the waiting times that a new consumer group gets.
var DefaultBackoff = Backoff{Next: []time.Duration{
	time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second,
	1 * time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute, 5 * time.Minute,
	6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute,
	20 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour,
}}

// DefaultMaxAttempts is the number of deliveries that a new consumer group gives a
// message.
const DefaultMaxAttempts = 17

// Sent is where a message went, or the first of several.
type Sent struct {
	Offset        int64
	QueueID       int32
	TransactionID string
	RecallHandle  string
}

// PopRequest asks for messages.
type PopRequest struct {
	Group, Topic  string
	Broker        string // "" = any
	QueueID       int32  // −1 = any
	Max           int
	InvisibleTime time.Duration
	PollTime      time.Duration // how long to wait for the first message
	Filter        *filter.Expression
	Order         bool   // FIFO group
	AttemptID     string // names a FIFO request that is made again after a lost answer
	Holder        string // client id
	AutoRenew     bool   // the broker renews while the holder is there
	// OnePerGroup delivers at most one message of each message group of a FIFO topic.
	OnePerGroup bool
	// Lite asks for messages of the lite topics below Topic that Holder has subscribed to.
	Lite bool
	// Waiter is who waits for the answer, until it is withdrawn; set by Proxy.Receive.
	Waiter *longpoll.Peer
}

// PopStatus is the outcome of a PopRequest.
type PopStatus byte

// Outcomes of a pop.
const (
	PopFound       PopStatus = iota
	PopNoNew                 // nothing there within the poll time
	PopNoMatch               // something there, nothing that the filter wants
	PopPollingFull           // too many requests are waiting already
	PopThrottled             // the group has too many messages in flight
)

// Popped is the answer to a PopRequest.
type Popped struct {
	Status        PopStatus
	Broker        string
	PopTime       int64 // ms
	InvisibleTime int64 // ms
	ReviveQueue   int32
	Reason        string // of PopThrottled
	Batches       []PopBatch
	// Release, when not nil, gives the records' memory back; nothing in Batches may be
	// used after it.
	Release func()
}

// PopBatch is what one queue gave.
type PopBatch = pop.Batch

// ChangeRequest moves the due time of a delivery.
type ChangeRequest struct {
	Group, Topic string
	Handle       receipt.Handle
	Invisible    time.Duration
	// Suspend says that this is no failed attempt: the next delivery counts the same.
	Suspend bool
}

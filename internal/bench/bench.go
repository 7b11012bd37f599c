// Package bench puts load on a server and counts what comes back. It speaks the protocols
// of RocketMQ itself, so it measures any compatible server by its address, Apache's as well
// as Bolide's.
//
// Nine workloads: send (closed loop, a fixed number of requests in flight), pull (a backlog,
// read queue by queue), pop (a backlog, received and acknowledged), latency (published at a
// fixed rate and received by waiting consumers), transaction (the same with half messages that
// are committed), timer (stored, and received when they are due), lite (lite topics that sleep,
// some of which get messages), lapse (received, left to lapse, received again and
// acknowledged), idle (nothing, beside open transactions and pending timers). Every message
// carries its run, its number and the time it was sent; what is lost, comes twice or before its
// time is counted and named.
//
// Invariants: the generator is lean, so that it does not measure itself: over Remoting one
// goroutine per connection reads answers, writes the requests that follow from them and
// flushes them with one write. Messages carry UNIQ_KEY as those of official clients do, so
// the server indexes them. A Result is complete only if every message sent was seen.
//
// Neighbours: wire/remoting and wire/message give the frames, the published stubs the gRPC
// messages; cli gives options and prints results; nothing of the server is imported.
package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Protocol is the protocol that the load uses.
type Protocol string

// The two protocols.
const (
	Remoting Protocol = "remoting"
	GRPC     Protocol = "grpc"
)

// AckMode is what is acknowledged of what a run pops, and when.
type AckMode string

// The ways to acknowledge. The empty one is AckOne.
const (
	AckOne   AckMode = "one"   // each message by itself
	AckBatch AckMode = "batch" // together what came together
	AckNone  AckMode = "none"  // nothing: all stays in flight, until the group is deleted
	AckLater AckMode = "later" // each message by itself when all are in flight; that alone is measured
)

// Waiting is what consumers over Remoting wait with. Those over gRPC wait with receives.
type Waiting string

// The ways to wait. The empty one is WaitingPull.
const (
	WaitingPull Waiting = "pull"
	WaitingPop  Waiting = "pop" // all queues at once, and acknowledged
)

// The size of a body: what a run writes into each, and what a frame of the protocol has room
// for.
const (
	SmallestBody = minBody
	LargestBody  = 16 << 20
)

// Options says where the load goes and how much it is.
type Options struct {
	Protocol Protocol
	Namesrv  string // HOST:PORT of a name server; makes the topic, finds brokers
	Endpoint string // HOST:PORT of the gRPC endpoint, with protocol grpc
	TLS      bool   // gRPC under TLS, any certificate

	Topic  string // made by the run when empty
	Queues int    // of a topic made by the run
	Size   int    // bytes of a body

	Connections int
	InFlight    int // requests in flight per connection
	Count       int // messages; for latency, rate × duration
	Batch       int // messages per pull or receive, at most
	Ack         AckMode
	Invisible   time.Duration // of what is popped; 0 = what suits the workload
	Waiting     Waiting       // latency over Remoting: how consumers wait
	OneIn       int           // pull and latency over Remoting: an SQL92 filter takes one message of so many; 0 = all
	Orderly     bool          // pull and latency by pulls: the connections are members of an orderly group, with locks and commits

	Rate     int           // messages a second, for latency and for lapses one by one
	Duration time.Duration // of a run at a rate, or the limit of a send run

	Together     bool          // timers: all are due in the same second, instead of Rate in each
	Ahead        time.Duration // timers: how long after the first is sent the first is due
	Pending      int           // timers that are due in a day, and stay
	Beside       int           // timers: plain sends a second beside them
	Transactions int           // that stay open, for idle
	Lites        int           // lite topics
	Active       int           // of which so many get messages
	Clients      int           // that share them
	Rest         time.Duration // for how long the server is left alone before its memory is looked at

	Warmup int // messages before the measured ones

	shape    shape           // of the messages
	patience time.Duration   // of consumers that wait; 0 = what suits the workload
	until    <-chan struct{} // ends a run at a rate before its last message; may be nil

	Server Server // that is measured; nil if its processes are not known
	// Progress is called now and then with the number of messages done.
	Progress func(done, total int64)
}

// Run is one workload: prepared, measured, checked.
type Run func(ctx context.Context, o Options) (Result, error)

// Workloads are the workloads by name.
var Workloads = map[string]Run{
	"send":    runSend,
	"pull":    runPull,
	"pop":     runPop,
	"latency": runLatency,
	"lapse":   runLapse,

	"transaction": runTransaction,
	"timer":       runTimer,
	"lite":        runLite,
	"idle":        runIdle,
}

var errNeedsNamesrv = errors.New("--namesrv is needed to make the topic and to find the brokers")

// blind reports whether a gRPC send run knows no name server: it then sends to a topic that
// must exist, and cannot read back what it sent.
func (o *Options) blind() bool {
	return o.Namesrv == "" && o.Protocol == GRPC && o.Topic != ""
}

// paced is the number of messages of a run at a rate.
func (o *Options) paced() int { return max(1, int(float64(o.Rate)*o.Duration.Seconds())) }

// ledger counts the messages of a run that passes them through its filter.
func (o *Options) ledger(t target) *ledger {
	l := newLedger(o.Count)
	l.filter = sieve{oneIn: int64(o.OneIn), queues: int64(t.queues)}
	return l
}

// check refuses options that cannot work and fills in what is open.
func (o *Options) check() error {
	switch {
	case o.Protocol != Remoting && o.Protocol != GRPC:
		return fmt.Errorf("--protocol %q is neither remoting nor grpc", o.Protocol)
	case o.Namesrv == "" && !o.blind():
		return errNeedsNamesrv
	case o.Protocol == GRPC && o.Endpoint == "":
		return errors.New("--grpc is needed with --protocol grpc")
	case o.Size < SmallestBody || o.Size > LargestBody:
		return fmt.Errorf("--size is %d to %d, not %d", SmallestBody, LargestBody, o.Size)
	case o.Connections < 1 || o.InFlight < 1 || o.Count < 1 || o.Queues < 1:
		return errors.New("--connections, --in-flight, --count and --queues are at least 1")
	case o.Batch < 1 || o.Batch > 32:
		return fmt.Errorf("--batch %d is not between 1 and 32", o.Batch)
	case o.OneIn < 0 || o.OneIn > 0 && o.Protocol != Remoting:
		return fmt.Errorf("--sql-one-in %d is for pulls, which are of protocol remoting", o.OneIn)
	case o.Orderly && (o.Protocol != Remoting || o.OneIn > 0 || o.Waiting == WaitingPop):
		return errors.New("--orderly is for pulls without a filter, over remoting")
	case min(o.Rate, o.Pending, o.Beside, o.Transactions) < 0 || min(o.Rest, o.Duration) < 0:
		return errors.New("--rate, --pending, --beside, --transactions, --rest and --duration are not less than nothing")
	case o.Invisible < 0:
		return fmt.Errorf("--invisible %v is less than nothing", o.Invisible)
	}
	switch o.Ack {
	case "":
		o.Ack = AckOne
	case AckOne, AckBatch, AckNone, AckLater:
	default:
		return fmt.Errorf("--ack %q is none of one, batch, none and later", o.Ack)
	}
	switch o.Waiting {
	case "":
		o.Waiting = WaitingPull
	case WaitingPull, WaitingPop:
	default:
		return fmt.Errorf("--waiting %q is neither pull nor pop", o.Waiting)
	}
	if o.Server == nil {
		o.Server = unseen{}
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return nil
}

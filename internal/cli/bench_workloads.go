package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bolidemq/bolide/internal/bench"
)

// workloadFlags are the flags of one workload. Each has its own, since a flag's default is
// written to its variable when it is made.
type workloadFlags struct {
	batch, oneIn, rate  int
	duration, invisible time.Duration
	ack, waiting        string
	orderly, together   bool

	ahead, rest                 time.Duration
	pending, beside, halves     int
	liteTopics, active, clients int
}

// Limits of what a run can be asked for.
const (
	mostMessages     = 1_000_000_000
	mostRate         = 1_000_000
	shortestRun      = time.Millisecond
	longestRun       = 30 * 24 * time.Hour
	longestInvisible = 72 * time.Hour
)

// check refuses more than a run can be asked for.
func (w *workloadFlags) check() error {
	if w.duration > 0 && float64(w.rate)*w.duration.Seconds() > mostMessages {
		return fmt.Errorf("--rate %d for --duration %s are more than %d messages", w.rate, brief(w.duration), mostMessages)
	}
	return nil
}

// ofPlain are the workloads of plain messages.
func (f *benchFlags) ofPlain() []*cobra.Command {
	return []*cobra.Command{
		f.workload("send", "Send and wait for acknowledgements", func(w *workloadFlags, p *pflag.FlagSet) {
			spanVar(p, &w.duration, "duration", 0, 0, longestRun, "end after this time, if --count is not reached before (0: never)")
		}),
		f.workload("pull", "Read a backlog queue by queue", func(w *workloadFlags, p *pflag.FlagSet) {
			numberVar(p, &w.batch, "batch", 32, 1, popBatch, "`NUMBER` of messages per pull, at most")
			w.order(p)
			w.sql(p)
		}),
		f.workload("pop", "Receive a backlog and acknowledge it", func(w *workloadFlags, p *pflag.FlagSet) {
			w.pop(p, "one (each message by itself), batch (together what came together), none,\n"+
				"or later (each by itself when all were received: that alone is measured)")
			spanVar(p, &w.invisible, "invisible", 0, 0, longestInvisible, "for how long messages are invisible (0: a minute, or an hour with --ack none and later)")
		}),
		f.workload("latency", "Publish at a fixed rate and receive with waiting consumers", func(w *workloadFlags, p *pflag.FlagSet) {
			w.paced(p, 1000, 1, "`NUMBER` of messages a second")
			p.StringVar(&w.waiting, "waiting", "pull", "how consumers wait over Remoting: `HOW` is pull or pop")
			w.order(p)
			w.sql(p)
		}),
		f.workload("lapse", "Receive, let the invisible time lapse and receive again", func(w *workloadFlags, p *pflag.FlagSet) {
			w.pop(p, "one (each message by itself) or batch (together what came together)")
			w.paced(p, 0, 0, "`NUMBER` of messages a second, which lapse one by one (0: --count of them lapse in one moment)")
			spanVar(p, &w.invisible, "invisible", 0, 0, longestInvisible, "for how long messages are invisible, enough to receive all of them (0: 15s)")
		}),
	}
}

// ofKinds are those of other kinds of messages.
func (f *benchFlags) ofKinds() []*cobra.Command {
	return []*cobra.Command{
		f.workload("transaction", "Send half messages at a fixed rate, commit each, and receive with waiting consumers", func(w *workloadFlags, p *pflag.FlagSet) {
			w.paced(p, 1000, 1, "`NUMBER` of transactions a second")
		}),
		told("How late a message comes counts from the time that it was sent for, so the server's clock and this machine's\n"+
			"have to agree. The first one's time is a whole second. The server's CPU is that from the first send until all have\n"+
			"come, other traffic included; with --pending alone, that of storing them.",
			f.workload("timer", "Store messages that are due later, and receive them with waiting consumers", func(w *workloadFlags, p *pflag.FlagSet) {
				numberVar(p, &w.rate, "rate", 2000, 0, mostRate, "`NUMBER` of messages that become due in a second; 0 = those of --pending only")
				spanVar(p, &w.duration, "duration", 10*time.Second, shortestRun, longestRun, "for how long messages become due at --rate")
				p.BoolVar(&w.together, "together", false, "--count of them are due in one moment, instead of --rate")
				spanVar(p, &w.ahead, "ahead", 10*time.Second, 0, longestRun, "time from the first send until the first is due, enough to store all of them")
				numberVar(p, &w.beside, "beside", 0, 0, mostRate, "`NUMBER` of plain sends a second beside them, over Remoting, from 5 s before the first timer is sent")
				p.StringVar(&w.waiting, "waiting", "pull", "how consumers wait over Remoting: `HOW` is pull or pop")
				w.pends(p, 0, "that are stored before, are due in a day and stay")
			})),
		told("Each lite topic gets a message first; then all of them sleep, and some get messages at --rate. Each has one subscriber.\n"+
			"Apache RocketMQ has lite topics with enableLmq=true and enableMultiDispatch=true.",
			f.workload("lite", "Send to some of many lite topics, over gRPC, and receive with lite push consumers", func(w *workloadFlags, p *pflag.FlagSet) {
				w.paced(p, 1000, 1, "`NUMBER` of messages a second")
				numberVar(p, &w.liteTopics, "lite-topics", 10_000, 1, 100_000_000, "`NUMBER` of lite topics below one parent")
				numberVar(p, &w.active, "active", 1000, 1, 100_000_000, "`NUMBER` of them that get messages after the first")
				numberVar(p, &w.clients, "clients", 10, 1, 10_000, "`NUMBER` of clients that share them")
				w.rests(p)
			})),
		f.workload("idle", "Leave transactions open and timers pending, and look at the server while nobody asks it for anything", func(w *workloadFlags, p *pflag.FlagSet) {
			numberVar(p, &w.halves, "transactions", 10_000, 0, mostMessages, "`NUMBER` of half messages that nobody decides")
			spanVar(p, &w.duration, "duration", time.Minute, shortestRun, longestRun, "for how long the server is looked at")
			w.pends(p, 10_000, "that are due in a day")
		}),
	}
}

// told gives a workload's help more than its short line.
func told(long string, c *cobra.Command) *cobra.Command {
	c.Long = c.Short + ".\n\n" + long
	return c
}

func (w *workloadFlags) rests(p *pflag.FlagSet) {
	spanVar(p, &w.rest, "rest", 10*time.Second, 0, longestRun, "for how long the server is left alone before its memory is looked at")
}

func (w *workloadFlags) pends(p *pflag.FlagSet, standard int, which string) {
	numberVar(p, &w.pending, "pending", standard, 0, mostMessages, "`NUMBER` of timers "+which)
	w.rests(p)
}

func (w *workloadFlags) sql(p *pflag.FlagSet) {
	numberVar(p, &w.oneIn, "sql-one-in", 0, 0, mostMessages, "read by an SQL92 filter that takes one message of this `NUMBER`, over Remoting")
}

func (w *workloadFlags) order(p *pflag.FlagSet) {
	p.BoolVar(&w.orderly, "orderly", false, "pulls are those of an orderly group: each connection is a consumer that locks its queues, renews the locks and commits")
}

func (w *workloadFlags) pop(p *pflag.FlagSet, acks string) {
	numberVar(p, &w.batch, "batch", 32, 1, popBatch, "`NUMBER` of messages per receive, at most")
	p.StringVar(&w.ack, "ack", "one", "what is acknowledged: `WHICH` is "+acks)
}

func (w *workloadFlags) paced(p *pflag.FlagSet, standard, least int, rate string) {
	numberVar(p, &w.rate, "rate", standard, least, mostRate, rate)
	spanVar(p, &w.duration, "duration", 10*time.Second, shortestRun, longestRun, "for how long messages are sent at --rate")
}

// options are those of the run.
func (w *workloadFlags) options(common bench.Options) bench.Options {
	o := common
	o.Batch, o.OneIn, o.Rate = w.batch, w.oneIn, w.rate
	o.Duration, o.Invisible = w.duration, w.invisible
	o.Orderly, o.Together = w.orderly, w.together
	o.Ahead, o.Rest = w.ahead, w.rest
	o.Pending, o.Beside, o.Transactions = w.pending, w.beside, w.halves
	o.Lites, o.Active, o.Clients = w.liteTopics, w.active, w.clients
	o.Ack, o.Waiting = bench.AckMode(w.ack), bench.Waiting(w.waiting)
	if o.Batch == 0 {
		o.Batch = 32 // of reading back, where no flag says it
	}
	return o
}

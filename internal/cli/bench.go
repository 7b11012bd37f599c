package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bolidemq/bolide/internal/bench"
)

// benchFlags are the flags of `bolide bench`, the same for every workload.
type benchFlags struct {
	options  bench.Options
	protocol string
	pids     []int
	asJSON   bool
	quiet    bool
}

// workloadFlags are the flags of one workload. Each has its own, since a flag's default is
// written to its variable when it is made.
type workloadFlags struct {
	batch, oneIn, rate  int
	duration, invisible time.Duration
	ack, waiting        string
	orderly             bool
}

func benchCommand() *cobra.Command {
	var f benchFlags
	c := folder("bench", "Measure a server, Bolide or any other that speaks RocketMQ's protocols")
	c.Long = "Puts load on the server at the given addresses and counts every message while it measures:\n" +
		"what is lost or comes twice is named, and the exit code is then not zero.\n\n" +
		"A run leaves its topic, bench-..., with its messages: by default about 1.2 GB in the server's log, which\n" +
		"go with the log files' age. --count and --size make it less.\n\n" +
		"With --server-pid, once per process of the server on this machine, its CPU seconds per\n" +
		"million messages and its peak memory are measured too."
	c.Example = "  bolide bench send --count 100000\n" +
		"  bolide bench latency --protocol grpc --rate 1000\n" +
		"  bolide bench lapse --count 100000"
	p := c.PersistentFlags()
	p.StringVar(&f.protocol, "protocol", "remoting", "`NAME` of the protocol: remoting or grpc")
	p.StringVarP(&f.options.Namesrv, "namesrv", "n", standardNamesrv(), "`HOST:PORT` of a name server, with either protocol; NAMESRV_ADDR sets the default")
	p.StringVar(&f.options.Endpoint, "grpc", "127.0.0.1:8081", "`HOST:PORT` of the gRPC endpoint, with --protocol grpc")
	p.BoolVar(&f.options.TLS, "tls", false, "gRPC under TLS, whatever the certificate")
	p.StringVar(&f.options.Topic, "topic", "", "`TOPIC` that exists (default: a new one for the run)")
	p.IntVar(&f.options.Queues, "queues", 8, "`NUMBER` of queues of the topic")
	p.IntVar(&f.options.Size, "size", 1024, "`BYTES` of a message's body")
	p.IntVar(&f.options.Connections, "connections", 2, "`NUMBER` of connections")
	p.IntVar(&f.options.InFlight, "in-flight", 32, "`NUMBER` of requests in flight per connection")
	p.IntVar(&f.options.Count, "count", 1_000_000, "`NUMBER` of messages")
	p.IntVar(&f.options.Warmup, "warmup", 0, "`NUMBER` of messages sent before the measured ones")
	p.IntSliceVar(&f.pids, "server-pid", nil, "`PID` of a process of the server to look at, may be repeated")
	p.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
	p.BoolVar(&f.quiet, "quiet", false, "print no progress, which a terminal alone gets anyway")
	c.AddCommand(
		f.workload("send", "Send and wait for acknowledgements", func(w *workloadFlags, p *pflag.FlagSet) {
			p.DurationVar(&w.duration, "duration", 0, "end after this time, if --count is not reached before")
		}),
		f.workload("pull", "Read a backlog queue by queue", func(w *workloadFlags, p *pflag.FlagSet) {
			p.IntVar(&w.batch, "batch", 32, "`NUMBER` of messages per pull, at most")
			w.order(p)
			w.sql(p)
		}),
		f.workload("pop", "Receive a backlog and acknowledge it", func(w *workloadFlags, p *pflag.FlagSet) {
			w.pop(p, "one (each message by itself), batch (together what came together), none,\n"+
				"or later (each by itself when all were received: that alone is measured)")
			p.DurationVar(&w.invisible, "invisible", 0, "for how long messages are invisible (default a minute, or an hour with --ack none and later)")
		}),
		f.workload("latency", "Publish at a fixed rate and receive with waiting consumers", func(w *workloadFlags, p *pflag.FlagSet) {
			w.paced(p, 1000, "`NUMBER` of messages a second")
			p.StringVar(&w.waiting, "waiting", "pull", "how consumers wait over Remoting: `HOW` is pull or pop")
			w.order(p)
			w.sql(p)
		}),
		f.workload("transaction", "Send half messages at a fixed rate, commit each, and receive with waiting consumers", func(w *workloadFlags, p *pflag.FlagSet) {
			w.paced(p, 1000, "`NUMBER` of transactions a second")
		}),
		f.workload("lapse", "Receive, let the invisible time lapse and receive again", func(w *workloadFlags, p *pflag.FlagSet) {
			w.pop(p, "one (each message by itself) or batch (together what came together)")
			w.paced(p, 0, "`NUMBER` of messages a second, which lapse one by one (default: --count of them lapse in one moment)")
			p.DurationVar(&w.invisible, "invisible", 0, "for how long messages are invisible, enough to receive all of them (default 15s)")
		}),
	)
	return c
}

func (w *workloadFlags) sql(p *pflag.FlagSet) {
	p.IntVar(&w.oneIn, "sql-one-in", 0, "read by an SQL92 filter that takes one message of this `NUMBER`, over Remoting")
}

func (w *workloadFlags) order(p *pflag.FlagSet) {
	p.BoolVar(&w.orderly, "orderly", false, "pulls are those of an orderly group: each connection is a consumer that locks its queues, renews the locks and commits")
}

func (w *workloadFlags) pop(p *pflag.FlagSet, acks string) {
	p.IntVar(&w.batch, "batch", 32, "`NUMBER` of messages per receive, at most")
	p.StringVar(&w.ack, "ack", "one", "what is acknowledged: `WHICH` is "+acks)
}

func (w *workloadFlags) paced(p *pflag.FlagSet, standard int, rate string) {
	p.IntVar(&w.rate, "rate", standard, rate)
	p.DurationVar(&w.duration, "duration", 10*time.Second, "for how long messages are sent at --rate")
}

// options are those of the run.
func (w *workloadFlags) options(common bench.Options) bench.Options {
	o := common
	o.Batch, o.OneIn, o.Rate = w.batch, w.oneIn, w.rate
	o.Duration, o.Invisible = w.duration, w.invisible
	o.Orderly = w.orderly
	o.Ack, o.Waiting = bench.AckMode(w.ack), bench.Waiting(w.waiting)
	if o.Batch == 0 {
		o.Batch = 32 // of reading back, where no flag says it
	}
	return o
}

func (f *benchFlags) workload(name, short string, more func(*workloadFlags, *pflag.FlagSet)) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: cobra.NoArgs}
	var w workloadFlags
	more(&w, c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		o := w.options(f.options)
		o.Protocol = bench.Protocol(f.protocol)
		o.Namesrv, _, _ = strings.Cut(o.Namesrv, ";") // NAMESRV_ADDR may list several
		var watch *processWatch
		o.Begin = func() { watch = watchProcesses(f.pids) }
		var usage *bench.Usage
		o.End = func() { usage = watch.stop() }
		progress := !f.quiet && interactive(c.ErrOrStderr())
		if progress {
			o.Progress = progressLine(c.ErrOrStderr())
		}
		r, err := bench.Workloads[name](c.Context(), o)
		if progress {
			fmt.Fprint(c.ErrOrStderr(), "\r\033[K")
		}
		if err != nil {
			return err
		}
		if usage != nil {
			usage.CPUSecondsPerMillion = usage.CPUSeconds / float64(r.Messages) * 1e6
			r.Server = usage
		}
		if err := printResult(c.OutOrStdout(), r, f.asJSON); err != nil {
			return err
		}
		if !r.Complete() {
			return errors.New("not every message was seen exactly once")
		}
		return nil
	}
	return c
}

// progressLine returns a function that rewrites one line of a terminal.
func progressLine(w io.Writer) func(done, total int64) {
	began := time.Now()
	return func(done, total int64) {
		rate := float64(done) / time.Since(began).Seconds()
		fmt.Fprintf(w, "\r\033[K%d of %d messages, %.0f/s", done, total, rate)
	}
}

func printResult(w io.Writer, r bench.Result, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	line("workload", "%s over %s", r.Workload, r.Protocol)
	line("messages", "%d in %.2f s", r.Messages, r.Seconds)
	line("rate", "%.0f/s", r.PerSecond)
	line(r.LatencyOf, "p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.2f ms",
		r.Latency.P50, r.Latency.P90, r.Latency.P99, r.Latency.P999, r.Latency.Max)
	line("refused and repeated", "%d", r.Refused)
	if r.Unverified {
		line("lost", "not looked for: no name server was given")
	} else {
		line("lost", "%d%s", r.Lost, named(r.LostFirst))
	}
	line("duplicates", "%d%s", r.Duplicates, named(r.TwiceFirst))
	if r.Foreign > 0 {
		line("not of this run", "%d", r.Foreign)
	}
	if r.Server != nil {
		line("server CPU", "%.2f s, %.1f s per million messages", r.Server.CPUSeconds, r.Server.CPUSecondsPerMillion)
		line("server memory", "peak %.0f MB resident, %.0f MB private, of which %.0f MB more than at the start",
			r.Server.PeakResidentMB, r.Server.PeakPrivateMB, r.Server.GrownPrivateMB)
	}
	return t.Flush()
}

func named(numbers []int64) string {
	if len(numbers) == 0 {
		return ""
	}
	return " (the first: " + strings.Trim(fmt.Sprint(numbers), "[]") + ")"
}

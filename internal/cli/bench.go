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
		"  bolide bench lapse --count 100000\n" +
		"  bolide bench timer --pending 1000000 --rate 2000\n" +
		"  bolide bench lite --lite-topics 100000"
	p := c.PersistentFlags()
	p.StringVar(&f.protocol, "protocol", "remoting", "`NAME` of the protocol: remoting or grpc")
	addressVar(p, &f.options.Namesrv, "namesrv", "n", standardNamesrv(), "`HOST:PORT` of a name server, with either protocol; NAMESRV_ADDR sets the default")
	addressVar(p, &f.options.Endpoint, "grpc", "", "127.0.0.1:8081", "`HOST:PORT` of the gRPC endpoint, with --protocol grpc")
	p.BoolVar(&f.options.TLS, "tls", false, "gRPC under TLS, whatever the certificate")
	p.StringVar(&f.options.Topic, "topic", "", "`TOPIC` that exists (default: a new one for the run)")
	numberVar(p, &f.options.Queues, "queues", 8, 1, 65535, "`NUMBER` of queues of the topic")
	numberVar(p, &f.options.Size, "size", 1024, bench.SmallestBody, bench.LargestBody, "`BYTES` of a message's body")
	numberVar(p, &f.options.Connections, "connections", 2, 1, 10_000, "`NUMBER` of connections")
	numberVar(p, &f.options.InFlight, "in-flight", 32, 1, 100_000, "`NUMBER` of requests in flight per connection")
	numberVar(p, &f.options.Count, "count", 1_000_000, 1, mostMessages, "`NUMBER` of messages, where no --rate and --duration say it")
	numberVar(p, &f.options.Warmup, "warmup", 0, 0, mostMessages, "`NUMBER` of messages sent before the measured ones")
	p.IntSliceVar(&f.pids, "server-pid", nil, "`PID` of a process of the server to look at, may be repeated")
	p.BoolVar(&f.asJSON, "json", false, "print the result as JSON")
	p.BoolVar(&f.quiet, "quiet", false, "print no progress, which a terminal alone gets anyway")
	c.AddCommand(f.ofPlain()...)
	c.AddCommand(f.ofKinds()...)
	return c
}

func (f *benchFlags) workload(name, short string, more func(*workloadFlags, *pflag.FlagSet)) *cobra.Command {
	c := &cobra.Command{Use: name, Short: short, Args: none}
	var w workloadFlags
	more(&w, c.Flags())
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(w.check(), benchRun{&w, f, name}.checkVain(c)); err != nil {
			return err
		}
		if err := processes(f.pids).check(); err != nil {
			return err
		}
		o := w.options(f.options)
		o.Protocol = bench.Protocol(f.protocol)
		o.Namesrv = answering(o.Namesrv)
		o.Server = processes(f.pids)
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
		if err := printResult(c.OutOrStdout(), r, f.asJSON); err != nil {
			return err
		}
		if !r.Complete() {
			return errors.New("not every message was seen exactly once, in its time")
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
	spread := func(name string, l bench.Latency) {
		line(name, "p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.2f ms", l.P50, l.P90, l.P99, l.P999, l.Max)
	}
	if r.LatencyOf != "" { // not of an idle server
		line("rate", "%.0f/s", r.PerSecond)
		spread(r.LatencyOf, r.Latency)
		line("refused and repeated", "%d", r.Refused)
	}
	if r.LastAfter > 0 {
		line("the last one", "%.2f s after the first was due", r.LastAfter)
		line("early", "%d, by %.2f ms at most", r.Early, r.EarliestMS)
	}
	if r.Unverified {
		line("lost", "not looked for: nobody was to receive them")
	} else {
		line("lost", "%d%s", r.Lost, named(r.LostFirst))
	}
	line("duplicates", "%d%s", r.Duplicates, named(r.TwiceFirst))
	if r.Foreign > 0 {
		line("not of this run", "%d", r.Foreign)
	}
	if b := r.Beside; b != nil {
		spread(fmt.Sprintf("%d other sends/s, before", b.Rate), b.Before)
		spread("the same, meanwhile", b.During)
	}
	for _, m := range r.Memory {
		line("server memory, "+m.Name, "%.0f MB resident, %.0f MB private", m.ResidentMB, m.PrivateMB)
	}
	if r.Server != nil {
		line("server CPU", "%.2f s, %.1f s per million messages, %.2f %% of a core", r.Server.CPUSeconds, r.Server.CPUSecondsPerMillion, r.Server.CPUPercent)
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

// Command benchapache measures Apache RocketMQ 5.5.0 and Bolide in turn on the same workloads
// and prints them side by side:
//
//	go run ./test/benchapache --binary bin/bolide
//	go run ./test/benchapache --binary bin/bolide --table pop
//	go run ./test/benchapache --binary bin/bolide --table kinds
//
// Each server runs alone, is warmed up with what is measured before it is measured, and each
// figure is the median of several runs (three unless told otherwise). The generator is
// `bolide bench`, which counts every message: a run that loses one fails the whole. The table
// of POP has a column for each of the ways in which Apache keeps what is in flight; that of the
// kinds of messages says of a server that can't do something what was seen.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bolidemq/bolide/internal/bench"
	"github.com/bolidemq/bolide/test/servers"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "empty-grpc-server" {
		serveEmpty()
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchapache:", err)
		os.Exit(1)
	}
}

// workload is one row: arguments of `bolide bench`, with counts for a full run.
type workload struct {
	name   string
	args   []string
	count  int  // 0 where the arguments give a duration
	pinned bool // server and generator on a core each
	more   []number
}

// number is another argument that is less in a smaller run.
type number struct {
	flag  string
	full  int
	least int
	unit  string
}

var workloads = []workload{
	{name: "send, Remoting", args: []string{"send"}, count: 600_000},
	{name: "send, Remoting, a core each", args: []string{"send"}, count: 600_000, pinned: true},
	{name: "pull a backlog, 32 a batch", args: []string{"pull"}, count: 1_000_000},
	{name: "pull a backlog in order, 64 queues, two consumers", args: []string{"pull", "--orderly", "--queues", "64"}, count: 1_000_000},
	{name: "pull a backlog by SQL92, 1 of 1,000 matches", args: []string{"pull", "--sql-one-in", "1000"}, count: 1_000_000},
	{name: "publish to receive by SQL92, 5,000/s, 1 of 1,000 matches", args: []string{"latency", "--sql-one-in", "1000", "--rate", "5000", "--duration", "10s"}},
	{name: "pop and ack one by one, Remoting", args: []string{"pop"}, count: 200_000},
	{name: "send, gRPC", args: []string{"send", "--protocol", "grpc"}, count: 100_000},
	{name: "receive 32 and ack one by one, gRPC", args: []string{"pop", "--protocol", "grpc"}, count: 100_000},
	{name: "receive 32 and one ack a batch, gRPC", args: []string{"pop", "--protocol", "grpc", "--ack", "batch"}, count: 200_000},
	{name: "publish to receive, 2,000/s, waiting pull", args: []string{"latency", "--rate", "2000", "--duration", "10s"}},
	{name: "publish to receive in order, 2,000/s, 64 queues, two consumers", args: []string{"latency", "--orderly", "--queues", "64", "--rate", "2000", "--duration", "10s"}},
	{name: "half message and commit, to receive, 2,000/s", args: []string{"transaction", "--rate", "2000", "--duration", "10s"}},
	{name: "publish to receive, 1,000/s, waiting gRPC receive", args: []string{"latency", "--protocol", "grpc", "--rate", "1000", "--duration", "10s"}},
}

type measurer struct {
	binary string
	work   string
	runs   int
	scale  float64
	only   string
	apache servers.ApacheOptions
}

// flags are what is not the measurer's.
type flags struct {
	table, servers, json, doc string
	bigLog                    int
}

func run(ctx context.Context) error {
	m := &measurer{}
	var f flags
	flag.StringVar(&m.binary, "binary", "bin/bolide", "Bolide's binary, which is the generator too")
	flag.IntVar(&m.runs, "runs", 3, "measured runs of each workload")
	flag.Float64Var(&m.scale, "scale", 1, "factor for the number of messages")
	flag.StringVar(&m.only, "only", "", "workloads whose names hold this, and nothing else")
	flag.StringVar(&f.table, "table", "all", "what is measured: all (all protocols, Apache with its defaults) or pop (POP over Remoting, Apache in each of its ways)\nor kinds (timers, transactions, lite topics)")
	flag.StringVar(&f.servers, "servers", "", "servers to measure (default apache,bolide, with --table pop "+serverNames(popServers)+")")
	flag.StringVar(&m.apache.BrokerHeap, "broker-heap", "1g", "heap of Apache's broker")
	flag.StringVar(&m.apache.ProxyHeap, "proxy-heap", "1g", "heap of Apache's proxy")
	flag.IntVar(&f.bigLog, "big-log", 10, "GiB of the log that Bolide is started with; 0 leaves that out")
	flag.StringVar(&f.json, "json", "", "file for all results")
	flag.StringVar(&f.doc, "doc", "", "document whose figures are replaced")
	flag.Parse()
	var err error
	if m.binary, err = filepath.Abs(m.binary); err != nil {
		return err
	}
	if m.work, err = os.MkdirTemp("", "benchapache-"); err != nil {
		return err
	}
	defer os.RemoveAll(m.work)
	switch f.table {
	case "all":
		return m.tableOfAll(ctx, f)
	case "pop":
		return m.tableOfPop(ctx, f)
	case "kinds":
		return m.tableOfKinds(ctx, f)
	}
	return fmt.Errorf("--table %q is none of all, pop and kinds", f.table)
}

// tableOfAll measures both servers with every workload and what else is compared.
func (m *measurer) tableOfAll(ctx context.Context, f flags) (err error) {
	if f.servers == "" {
		f.servers = "apache,bolide"
	}
	began := time.Now()
	all := map[string]*figures{}
	for _, name := range strings.Split(f.servers, ",") {
		fmt.Fprintf(os.Stderr, "== %s\n", name)
		if all[name], err = m.measure(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if m.only != "" {
		printWorkloads(os.Stdout, all["apache"], all["bolide"])
		return nil
	}
	fmt.Fprintln(os.Stderr, "== empty grpc-go handler")
	empty, err := m.emptyHandler(ctx)
	if err != nil {
		return err
	}
	var big *bigLogStarts
	if f.bigLog > 0 && all["bolide"] != nil {
		fmt.Fprintf(os.Stderr, "== start with a log of %d GiB\n", f.bigLog)
		if big, err = m.bigLog(ctx, f.bigLog); err != nil {
			return err
		}
	}
	var table bytes.Buffer
	m.heading(&table, f, began)
	printTable(&table, all["apache"], all["bolide"], empty, big)
	return f.write("bench-apache", map[string]any{"servers": all, "empty_grpc_handler": empty, "big_log": big}, table.Bytes())
}

// heading says when and how the figures below it were measured.
func (m *measurer) heading(w io.Writer, f flags, began time.Time) {
	fmt.Fprintf(w, "Run of %s on %d cores, `go run ./test/benchapache --table %s --runs %d --scale %v`, in %v; Apache with `enablePropertyFilter=true`.\n\n",
		began.Format(time.DateOnly), runtime.NumCPU(), f.table, m.runs, m.scale, time.Since(began).Round(time.Second))
}

// write puts the results and the table where the flags say. target is what make calls this.
func (f flags) write(target string, results any, table []byte) error {
	if f.json != "" {
		text, err := json.MarshalIndent(results, "", " ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(f.json, text, 0o644); err != nil {
			return err
		}
	}
	if f.doc != "" {
		if err := replaceFigures(f.doc, target, table); err != nil {
			return err
		}
	}
	_, err := os.Stdout.Write(table)
	return err
}

// replaceFigures puts the table between the lines of the document that belong to target.
func replaceFigures(doc, target string, table []byte) error {
	text, err := os.ReadFile(doc)
	if err != nil {
		return err
	}
	begin := fmt.Sprintf("<!-- figures: written by make %s -->\n", target)
	end := fmt.Sprintf("<!-- end of what make %s writes -->\n", target)
	before, rest, found := bytes.Cut(text, []byte(begin))
	_, after, ended := bytes.Cut(rest, []byte(end))
	if !found || !ended {
		return fmt.Errorf("%s has no lines %q and %q", doc, begin, end)
	}
	return os.WriteFile(doc, slices.Concat(before, []byte(begin+"\n"), table, []byte("\n"+end), after), 0o644)
}

// figures are all that is measured of one server.
type figures struct {
	Starts   []float64                 // milliseconds until it served, empty folder
	IdleMB   float64                   // resident memory without load
	Results  map[string][]bench.Result // by workload
	Sync     []bench.Result            // send with synchronous flush
	LoadedMB float64                   // highest private memory under the loads
}

const syncFlush = "flushDiskType=SYNC_FLUSH"

// start starts Apache or Bolide with these settings of the broker.
func (m *measurer) start(ctx context.Context, apache bool, dir string, set ...string) (*servers.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	if apache {
		o := m.apache
		o.Dir = dir
		o.Broker = append(set, "enablePropertyFilter=true") // without it there is no SQL92
		return servers.StartApache(ctx, o)
	}
	o := servers.BolideOptions{Binary: m.binary, Dir: dir}
	for _, s := range set {
		o.Args = append(o.Args, "--set", s)
	}
	return servers.StartBolide(ctx, o)
}

func (m *measurer) dir(name string) string {
	dir, err := os.MkdirTemp(m.work, name+"-")
	if err != nil {
		panic(err)
	}
	return dir
}

func (m *measurer) measure(ctx context.Context, name string) (*figures, error) {
	f := &figures{Results: map[string][]bench.Result{}}
	var s *servers.Server
	for i := range m.runs {
		dir := m.dir(name)
		var err error
		if s, err = m.start(ctx, name == "apache", dir); err != nil {
			return nil, err
		}
		f.Starts = append(f.Starts, float64(s.Started.Microseconds())/1000)
		if i < m.runs-1 {
			if err := s.Stop(); err != nil {
				return nil, err
			}
			os.RemoveAll(dir)
		}
	}
	time.Sleep(5 * time.Second) // until what a start leaves behind has settled
	f.IdleMB = residentMB(s.Processes())
	chosen := slices.DeleteFunc(slices.Clone(workloads), func(w workload) bool { return !strings.Contains(w.name, m.only) })
	for _, w := range chosen {
		if _, err := m.bench(ctx, s, w, 0.3); err != nil {
			s.Stop()
			return nil, fmt.Errorf("warm-up of %s: %w", w.name, err)
		}
	}
	for _, w := range chosen {
		for range m.runs {
			r, err := m.bench(ctx, s, w, 1)
			if err != nil {
				s.Stop()
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			f.Results[w.name] = append(f.Results[w.name], r)
			f.LoadedMB = max(f.LoadedMB, r.Server.PeakPrivateMB)
			fmt.Fprintf(os.Stderr, "%-50s %8.0f/s  p50 %7.2f  p99 %7.2f ms  %7.1f CPU s/M  %5.0f MB private\n", w.name,
				r.PerSecond, r.Latency.P50, r.Latency.P99, r.Server.CPUSecondsPerMillion, r.Server.PeakPrivateMB)
		}
	}
	if err := s.Stop(); err != nil {
		return nil, err
	}
	os.RemoveAll(s.Dir)
	if m.only != "" {
		return f, nil
	}
	return f, m.measureSync(ctx, name, f)
}

// measureSync starts the server anew with synchronous flush and measures sends.
func (m *measurer) measureSync(ctx context.Context, name string, f *figures) error {
	s, err := m.start(ctx, name == "apache", m.dir(name), syncFlush)
	if err != nil {
		return err
	}
	defer os.RemoveAll(s.Dir)
	w := workload{name: "send, SYNC_FLUSH", args: []string{"send"}, count: 200_000}
	for i := range m.runs + 1 {
		r, err := m.bench(ctx, s, w, 1)
		if err != nil {
			s.Stop()
			return err
		}
		if i > 0 {
			f.Sync = append(f.Sync, r)
			fmt.Fprintf(os.Stderr, "%-50s %8.0f/s  %7.1f CPU s/M\n", w.name, r.PerSecond, r.Server.CPUSecondsPerMillion)
		}
	}
	return s.Stop()
}

// errIncomplete: the run has ended, and has a result, but not every message was seen once and
// in its time.
var errIncomplete = errors.New("not complete")

// bench runs the generator once.
func (m *measurer) bench(ctx context.Context, s *servers.Server, w workload, part float64) (r bench.Result, err error) {
	args := append([]string{"bench"}, w.args...)
	args = append(args, "--json", "--quiet", "--namesrv", s.Namesrv)
	if slices.Contains(args, "grpc") || slices.Contains(args, "lite") { // elsewhere it would be refused
		args = append(args, "--grpc", s.GRPC)
	}
	if w.count > 0 {
		args = append(args, "--count", fmt.Sprint(max(1000, int(float64(w.count)*m.scale*part))))
	}
	for _, n := range w.more {
		args = append(args, n.flag, fmt.Sprint(max(n.least, int(float64(n.full)*m.scale*part)), n.unit))
	}
	for _, pid := range s.Processes() {
		args = append(args, "--server-pid", fmt.Sprint(pid))
		if err := pin(pid, w.pinned); err != nil {
			return r, err
		}
	}
	cmd := exec.CommandContext(ctx, m.binary, args...)
	if w.pinned {
		cmd = exec.CommandContext(ctx, "taskset", append([]string{"-c", "1", m.binary}, args...)...)
	}
	var said bytes.Buffer
	cmd.Stderr = io.MultiWriter(os.Stderr, &said)
	out, err := cmd.Output()
	switch {
	case ctx.Err() != nil:
		return r, context.Cause(ctx)
	case err != nil && len(out) == 0:
		return r, fmt.Errorf("%w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	if broken := json.Unmarshal(out, &r); broken != nil {
		return r, broken
	}
	if r.Server == nil {
		return r, fmt.Errorf("no figures of processes %v", s.Processes())
	}
	if err != nil {
		return r, fmt.Errorf("%w: %s\n%s", errIncomplete, bytes.TrimSpace(said.Bytes()), out)
	}
	return r, nil
}

// pin puts all threads of a process on core 0, or gives it both back.
func pin(pid int, pinned bool) error {
	cores := "0,1"
	if pinned {
		cores = "0"
	}
	out, err := exec.Command("taskset", "-a", "-c", "-p", cores, fmt.Sprint(pid)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("taskset: %w\n%s", err, out)
	}
	return nil
}

func residentMB(pids []int) (sum float64) {
	for _, pid := range pids {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		for line := range strings.Lines(string(text)) {
			var kb float64
			if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kb); n == 1 {
				sum += kb / 1024
			}
		}
	}
	return sum
}

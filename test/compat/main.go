// Command compat runs the official clients and tools against a server, started for it or
// given by its addresses:
//
//	go run ./test/compat                          against this source tree's Bolide
//	go run ./test/compat --server apache          against Apache RocketMQ 5.5.0
//	go run ./test/compat --server ready.json      against what a ready file names
//	go run ./test/compat --server apache --suites mqadmin --record
//	                                              writes what mqadmin prints into testdata
//
// Suites: go (golang/v5 and the classic Go client), java (the classic client and
// rocketmq-client-java), python (rocketmq-python-client), node (rocketmq-client-nodejs), rust
// (crate rocketmq), snippets (the programs of docs/clients.md), mqadmin (Apache's tool),
// differences (docs/differences.md, asked over the wire), filters (SQL92 expressions, and what
// Apache says of them), metrics (the figures of groups after each step of the same traffic),
// rebalance (the classic client's strategies while members come, go and are killed; --count
// 100000 is ten rounds of that), exchange (one store goes from server to server, with all that
// it can hold). Java's need Java 17 and Maven, which fetches what they need. With --server
// apache --record, filters makes a new corpus.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/bolidemq/bolide/test/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	passed, failed, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compat:", err)
		failed++
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 || passed == 0 {
		os.Exit(1)
	}
}

// suites are run in this order.
var suites = []struct {
	name  string
	run   func(context.Context, *harness) error
	alone bool // on a server of its own, since it lists what there is
}{
	{"mqadmin", mqadminSuite, true},
	{"go", goSuite, false},
	{"java", javaSuite, false},
	{"python", pythonSuite, false},
	{"node", nodeSuite, false},
	{"rust", rustSuite, false},
	{"snippets", snippetsSuite, false},
	{"differences", differencesSuite, false},
	{"filters", filtersSuite, false},
	{"metrics", metricsSuite, false},
	{"rebalance", rebalanceSuite, false},
	{"exchange", exchangeSuite, false},
}

// harness is what the suites share.
type harness struct {
	root   string          // of the source tree
	work   string          // a temporary folder
	binary string          // Bolide's
	kind   string          // of the server under test: bolide, apache, or a ready file
	apache bool            // it is Apache's
	server *servers.Server // nil for a ready file
	target servers.Ready
	starts int // servers that were started, each in a folder of its own
	count  int
	record bool   // what Apache's servers answer is written into testdata
	only   string // part of the names of the cases to run, where a suite can choose

	passed, failed int
	javaClasspath  string
}

func run(ctx context.Context) (passed, failed int, err error) {
	h := &harness{}
	var chosen string
	flag.StringVar(&h.kind, "server", "bolide", "bolide, apache, or the path of a ready file")
	flag.StringVar(&h.binary, "binary", "", "Bolide's binary (default: built from this source tree)")
	flag.StringVar(&chosen, "suites", "go,java,python,node,rust,snippets,mqadmin,differences,filters,metrics,rebalance,exchange", "suites to run")
	flag.BoolVar(&h.apache, "apache", false, "the ready file is that of an Apache RocketMQ")
	flag.StringVar(&h.only, "only", "", "of go, java, python, node, snippets and exchange: cases whose names hold this")
	flag.IntVar(&h.count, "count", 10_000, "messages of each large case")
	flag.BoolVar(&h.record, "record", false, "with --server apache: write what mqadmin prints, and what filters find, into testdata")
	flag.Parse()
	h.apache = h.apache || h.kind == "apache"
	if h.root, err = sourceRoot(ctx); err != nil {
		return 0, 0, err
	}
	if h.work, err = os.MkdirTemp("", "bolide-compat-"); err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(h.work)
	if h.binary == "" {
		if h.binary, err = servers.BuildBolide(ctx, h.work); err != nil {
			return 0, 0, err
		}
	} else if h.binary, err = filepath.Abs(h.binary); err != nil {
		return 0, 0, err
	}
	for _, s := range suites {
		if !strings.Contains(","+chosen+",", ","+s.name+",") {
			continue
		}
		if h.target.Broker == "" || s.alone {
			h.stop()
			if err := h.start(ctx); err != nil {
				return 0, 0, err
			}
		}
		began := time.Now()
		fmt.Printf("== %s against %s\n", s.name, h.kind)
		if err := s.run(ctx, h); err != nil {
			h.report(s.name, err)
		}
		fmt.Printf("== %s took %.0f s\n", s.name, time.Since(began).Seconds())
		if s.alone {
			h.stop()
		}
	}
	h.stop()
	return h.passed, h.failed, nil
}

func sourceRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", err
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// start brings up the server under test.
func (h *harness) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	h.starts++
	dir := filepath.Join(h.work, fmt.Sprint("server-", h.starts))
	var err error
	switch h.kind {
	case "bolide":
		h.server, err = servers.StartBolide(ctx, servers.BolideOptions{Binary: h.binary, Dir: dir, Args: []string{"--metrics-addr", "127.0.0.1:0", "--set", "traceTopicEnable=true"}})
	case "apache":
		h.server, err = servers.StartApache(ctx, servers.ApacheOptions{Dir: dir, NoProxy: h.record, Metrics: true,
			// Without these there is no SQL92 to compare, no topic for traces, and there are no lite topics.
			Broker: []string{"enablePropertyFilter=true", "traceTopicEnable=true", "recallMessageEnable=true", "enableLmq=true", "enableMultiDispatch=true"}})
	default:
		text, err := os.ReadFile(h.kind)
		if err != nil {
			return fmt.Errorf("--server is bolide, apache or a ready file: %w", err)
		}
		return json.Unmarshal(text, &h.target)
	}
	if err != nil {
		return err
	}
	h.target = h.server.Ready
	fmt.Printf("%s ready in %d ms\n", h.kind, h.server.Started.Milliseconds())
	return nil
}

// stop stops the server, if there is one that start has started; the next suite starts
// another.
func (h *harness) stop() {
	if h.server != nil {
		h.check("the server stops in order", h.server.Stop())
		h.server, h.target = nil, servers.Ready{}
	}
}

// report counts a case that has ended.
func (h *harness) report(name string, err error) {
	if err != nil {
		h.failed++
		fmt.Printf("FAIL %s: %v\n", name, err)
		return
	}
	h.passed++
	fmt.Printf("PASS %s\n", name)
}

func (h *harness) check(name string, err error) { h.report(name, err) }

// verdict finds the lines in which the suites' own runners say how a case ended.
var verdict = regexp.MustCompile(`^(?:--- )?(PASS|FAIL)(?::|) \S`)

// stream runs a command, passes its output on and counts its verdicts. An exit code that is
// not zero without a failed case is a failure of its own.
func (h *harness) stream(cmd *exec.Cmd, interesting func(line string) bool) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return err
	}
	before := h.failed
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := verdict.FindStringSubmatch(line); m != nil {
			if m[1] == "PASS" {
				h.passed++
			} else {
				h.failed++
			}
		}
		if interesting(line) {
			fmt.Println(line)
		}
	}
	io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil && h.failed == before {
		return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}

func goSuite(ctx context.Context, h *harness) error {
	// Most cases that run beside others wait for real time.
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=15m", "-parallel=8", "-run", h.only, ".")
	cmd.Dir = filepath.Join(h.root, "test", "compat", "go")
	cmd.Env = h.env(fmt.Sprintf("COMPAT_COUNT=%d", h.count), "rocketmq.client.localOffsetStoreDir="+h.work)
	return h.stream(cmd, func(line string) bool { return !strings.HasPrefix(line, "===") })
}

// env is the environment of a suite in a process of its own.
func (h *harness) env(more ...string) []string { return h.envAt(h.target, more...) }

// envAt is that of one that works with another server.
func (h *harness) envAt(at servers.Ready, more ...string) []string {
	if h.apache {
		more = append(more, "COMPAT_APACHE=yes")
	}
	return slices.Concat(os.Environ(), at.Env(), more)
}

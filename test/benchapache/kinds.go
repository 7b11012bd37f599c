package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/bench"
)

var kindServers = []column{
	{name: "apache", title: "Apache RocketMQ 5.5.0", apache: true},
	{name: "bolide", title: "Bolide"},
}

// kindWorkload is a part of the table of the kinds of messages.
type kindWorkload struct {
	heldWorkload
	proxy  bool     // it goes over gRPC
	set    []string // settings of both servers, without which they could not do it
	apache []string // and more of Apache's broker
	warm   float64  // part of the messages that are sent before, on the same server; 0 = none
}

// withLite are lite topics in Apache. As files, as which it keeps their queues unless told
// otherwise, a hundred thousand are more than Linux lets a process map.
var withLite = []string{"enableLmq=true", "enableMultiDispatch=true", "rocksdbCQDoubleWriteEnable=true", "combineCQUseRocksdbForLmq=true"}

// longestKind is how long a run may take before it is said not to end.
const longestKind = 10 * time.Minute

var kindWorkloads = []kindWorkload{
	{
		heldWorkload: heldWorkload{
			workload{name: "a million timers stored, due in a day", args: []string{"timer", "--rate", "0"},
				more: []number{{flag: "--pending", full: 1_000_000, least: 1000}}},
			[]figure{cpu(0, 1./3), rate, more("pending"), growth},
		},
		warm: 0.3,
	},
	{
		heldWorkload: heldWorkload{
			workload{name: "2,000 timers due per second, beside that million", args: []string{"timer", "--rate", "2000", "--duration", "10s"},
				more: []number{{flag: "--pending", full: 1_000_000, least: 1000}}},
			[]figure{latency("late, p50", p50, 0, 0), latency("late, p99", p99, 0, 50), latency("late, at most", top, 0, 0), cpu(0, 1./3)},
		},
		warm: 0.1,
	},
	{
		heldWorkload: heldWorkload{
			workload{name: "200,000 timers due together, 500 other sends per second", count: 200_000,
				args: []string{"timer", "--together", "--beside", "500"},
				more: []number{{flag: "--ahead", full: 40, least: 10, unit: "s"}}},
			[]figure{
				{name: "until all have come", format: "%.2f s", most: 5, of: func(r bench.Result) float64 { return r.LastAfter }},
				{name: "other sends, p99 before", format: "%.2f ms", of: func(r bench.Result) float64 { return beside(r).Before.P99 }},
				{name: "other sends, p99 meanwhile", format: "%.2f ms", of: func(r bench.Result) float64 { return beside(r).During.P99 }},
				{name: "that by the one before", format: "%.1f", most: 3, withoutRelations: true, of: slowed},
			},
		},
		warm: 0.3,
	},
	{
		heldWorkload: heldWorkload{
			workload{name: "half message and commit, 2,000/s, waiting pull", args: []string{"transaction", "--rate", "2000", "--duration", "10s"}},
			[]figure{cpu(0, 1./3), latency("commit to receive, p50", p50, 0, 0), latency("commit to receive, p99", p99, 0, 10)},
		},
		warm: 1,
	},
	{
		heldWorkload: heldWorkload{
			workload{name: "100,000 lite topics, 1,000 of them get 1,000 messages per second",
				args: []string{"lite", "--clients", "50", "--rate", "1000", "--duration", "10s"},
				more: []number{{flag: "--lite-topics", full: 100_000, least: 100}, {flag: "--active", full: 1000, least: 10},
					// Longer than it takes Bolide to let go of what belongs to those that sleep.
					{flag: "--rest", full: 300, least: 10, unit: "s"}}},
			[]figure{latency("wake-up, p50", p50, 0, 0), latency("wake-up, p99", p99, 0, 20), residentAt("at rest", 200), residentAt("after", 200), cpu(0, 0)},
		},
		// The quota's default is what the run takes; the subscriptions of the warm-up may be there still.
		proxy: true, set: []string{"maxLiteSubscriptionCount=200000"}, apache: withLite, warm: 0.1,
	},
	{
		heldWorkload: heldWorkload{
			workload{name: "idle, 10,000 transactions open, 100,000 timers pending", args: []string{"idle", "--rest", "20s"},
				more: []number{{flag: "--transactions", full: 10_000, least: 100}, {flag: "--pending", full: 100_000, least: 100}, {flag: "--duration", full: 60, least: 10, unit: "s"}}},
			[]figure{{name: "of a core, over a minute", format: "%.2f %%", most: 0.5, of: func(r bench.Result) float64 { return r.Server.CPUPercent }},
				residentAt("at rest", 0)},
		},
	},
}

// moment is the server's memory at one of the run's moments.
func moment(r bench.Result, name string) (m bench.Memory) {
	for _, at := range r.Memory {
		if at.Name == name {
			m = at.Memory
		}
	}
	return m
}

// more is how much more private memory there was at a moment than before.
func more(at string) figure {
	return figure{name: "private memory, more when " + at, format: "%.0f MB", highest: true, most: 100, withoutRelations: true,
		of: func(r bench.Result) float64 { return moment(r, at).PrivateMB - moment(r, "before").PrivateMB }}
}

func residentAt(at string, most float64) figure {
	return figure{name: "resident memory " + at, format: "%.0f MB", highest: true, most: most,
		of: func(r bench.Result) float64 { return moment(r, at).ResidentMB }}
}

func beside(r bench.Result) bench.Beside {
	if r.Beside == nil {
		return bench.Beside{}
	}
	return *r.Beside
}

// slowed is how many times longer other sends took.
func slowed(r bench.Result) float64 {
	b := beside(r)
	return b.During.P99 / max(b.Before.P99, 0.001)
}

// kindOutcome is what was seen of a server with a workload.
type kindOutcome struct {
	Results []bench.Result
	Failed  string // why there are no more
}

// kindResults are all outcomes by server and workload.
type kindResults map[string]map[string]*kindOutcome

// tableOfKinds measures timers, transactions and lite topics. A server that cannot do something
// has that said in its row; the run goes on.
func (m *measurer) tableOfKinds(ctx context.Context, f flags) error {
	chosen, err := chosenServers(f.servers, kindServers)
	if err != nil {
		return err
	}
	began := time.Now()
	all := kindResults{}
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "== %s\n", s.title)
		all[s.name] = map[string]*kindOutcome{}
		for _, w := range kindWorkloads {
			if !strings.Contains(w.name, m.only) {
				continue
			}
			o := &kindOutcome{}
			all[s.name][w.name] = o
			for range m.runs {
				if err := m.measureKind(ctx, s, w, o); err != nil {
					if ctx.Err() != nil {
						return ctx.Err()
					}
					o.Failed = strings.Join(strings.Fields(err.Error()), " ")
					fmt.Fprintf(os.Stderr, "%s: %s\n", w.name, o.Failed)
					break
				}
			}
		}
	}
	var table bytes.Buffer
	m.heading(&table, f, began)
	if m.only != "" || len(chosen) < len(kindServers) {
		f.doc = "" // it holds all of them
	}
	printKinds(&table, all)
	return f.write("bench-apache-kinds", all, table.Bytes())
}

// measureKind runs one workload on a server of its own, since what it leaves would weigh on
// the next run. A result that is not complete is one.
func (m *measurer) measureKind(ctx context.Context, s column, w kindWorkload, o *kindOutcome) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestKind, fmt.Errorf("no end within %v", longestKind))
	defer cancel()
	m.apache.NoProxy = !w.proxy
	set := w.set
	if s.apache {
		set = slices.Concat(set, w.apache)
	}
	server, err := m.start(ctx, s.apache, m.dir(s.name), set...)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := server.Stop(); err == nil {
			err = stopped
		}
		os.RemoveAll(server.Dir)
	}()
	if w.warm > 0 {
		if _, err := m.bench(ctx, server, w.workload, w.warm); err != nil && !errors.Is(err, errIncomplete) {
			return fmt.Errorf("warm-up: %w", err)
		}
	}
	r, err := m.bench(ctx, server, w.workload, 1)
	if err != nil && !errors.Is(err, errIncomplete) {
		return err
	}
	o.Results = append(o.Results, r)
	fmt.Fprintf(os.Stderr, "%s: %s", w.name, o.complete())
	for _, f := range w.figures {
		fmt.Fprintf(os.Stderr, "; %s "+f.format, f.name, f.of(r))
	}
	fmt.Fprintln(os.Stderr)
	return nil
}

// complete says whether every message was seen once and in its time, and what was seen if not.
func (o *kindOutcome) complete() string {
	if o == nil {
		return "–"
	}
	if o.Failed != "" {
		return "failed: " + o.Failed
	}
	var lost, twice, early, of int64
	var earliest float64
	for _, r := range o.Results {
		lost, twice, early, of = lost+r.Lost, twice+r.Duplicates+r.Foreign, early+r.Early, of+r.Messages
		earliest = max(earliest, r.EarliestMS)
	}
	var seen []string
	for _, s := range []struct {
		n    int64
		what string
	}{{lost, "lost"}, {twice, "too many"}, {early, fmt.Sprintf("early, by up to %.0f ms", earliest)}} {
		if s.n > 0 {
			seen = append(seen, fmt.Sprintf("%d %s", s.n, s.what))
		}
	}
	if len(seen) == 0 {
		return "yes"
	}
	return fmt.Sprintf("%s (of %d)", strings.Join(seen, "; "), of)
}

// printKinds writes a row for every figure, with Bolide's by Apache's.
func printKinds(w io.Writer, all kindResults) {
	fmt.Fprintln(w, "| workload | figure | Apache RocketMQ 5.5.0 | Bolide | ratio | aim |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, k := range kindWorkloads {
		apache, bolide := all["apache"][k.name], all["bolide"][k.name]
		if apache == nil && bolide == nil {
			continue
		}
		fmt.Fprintf(w, "| %s | every message once, in its time | %s | %s |  |  |\n", k.name, cell(apache.complete()), cell(bolide.complete()))
		for _, f := range k.figures {
			a, b := f.shown(apache), f.shown(bolide)
			by := ratio(a.value, b.value)
			if f.withoutRelations {
				by = ""
			}
			fmt.Fprintf(w, "|  | %s | %s | %s | %s | %s |\n", f.name, a.text, b.text, by,
				f.aim(b.value, relation{f.ofBest, a.value, "Apache's"}))
		}
	}
}

// cell is text that may stand in a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// shownFigure is a figure of a server, with a dash for what was not measured.
type shownFigure struct {
	value float64
	text  string
}

func (f figure) shown(o *kindOutcome) shownFigure {
	if o == nil || len(o.Results) == 0 {
		return shownFigure{text: "–"}
	}
	v := f.value(o.Results)
	return shownFigure{value: v, text: fmt.Sprintf(f.format, v)}
}

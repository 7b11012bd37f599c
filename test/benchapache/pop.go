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

// popServer is a column of the table of POP.
type popServer struct {
	name, title string
	apache      bool
	set         []string // the broker's settings
	part        float64  // of the messages; less than one where all of them take minutes
}

var (
	withBuffer = []string{"enablePopBufferMerge=true"}
	withKV     = []string{"popConsumerKVServiceInit=true", "popConsumerKVServiceEnable=true"}
)

var popServers = []popServer{
	{name: "apache", title: "Apache, defaults", apache: true, part: 1},
	{name: "apache-buffer", title: "Apache, buffer merge", apache: true, set: withBuffer, part: 1},
	{name: "apache-kv", title: "Apache, KV", apache: true, set: withKV, part: 0.4},
	{name: "apache-kv-buffer", title: "Apache, KV and buffer merge", apache: true, set: slices.Concat(withKV, withBuffer), part: 1},
	{name: "bolide", title: "Bolide", part: 1},
}

func popServerNames() (names []string) {
	for _, s := range popServers {
		names = append(names, s.name)
	}
	return names
}

// popFigure is a row of the table: one figure of a workload, and what Bolide aims at.
type popFigure struct {
	name, format     string
	of               func(bench.Result) float64
	highest          bool    // of the runs, not the median
	ofDefaults       float64 // at most so much of Apache with its defaults, 0 = no aim
	ofBest           float64 // and so much of Apache's best
	most             float64 // and no more than this
	moreIsBetter     bool
	withoutRelations bool // where Apache's figure is no measure, as with the growth of a heap
}

type popWorkload struct {
	workload
	figures []popFigure
}

func popCPU(ofDefaults, ofBest float64) popFigure {
	return popFigure{name: "CPU", format: "%.1f s/M", ofDefaults: ofDefaults, ofBest: ofBest,
		of: func(r bench.Result) float64 { return r.Server.CPUSecondsPerMillion }}
}

func popTime(name string, of func(bench.Latency) float64, ofBest, most float64) popFigure {
	return popFigure{name: name, format: "%.2f ms", ofBest: ofBest, most: most,
		of: func(r bench.Result) float64 { return of(r.Latency) }}
}

var (
	popRate = popFigure{name: "rate", format: "%.0f/s", moreIsBetter: true,
		of: func(r bench.Result) float64 { return r.PerSecond }}
	popGrowth = popFigure{name: "private memory, growth", format: "%.0f MB", highest: true, most: 100, withoutRelations: true,
		of: func(r bench.Result) float64 { return r.Server.GrownPrivateMB }}
	p50 = func(l bench.Latency) float64 { return l.P50 }
	p99 = func(l bench.Latency) float64 { return l.P99 }
	top = func(l bench.Latency) float64 { return l.Max }
)

// popWorkloads are the rows of the table, each with the figures that Bolide is held to.
var popWorkloads = []popWorkload{
	{workload{name: "pop, ack one by one", args: []string{"pop"}, count: 200_000},
		[]popFigure{popCPU(1./4, 1./2), popRate}},
	{workload{name: "pop, ack by the batch", args: []string{"pop", "--ack", "batch"}, count: 200_000},
		[]popFigure{popCPU(1./3, 1./2), popRate}},
	{workload{name: "pop a million without ack", args: []string{"pop", "--ack", "none"}, count: 1_000_000},
		[]popFigure{popCPU(0, 1./2), popRate, popGrowth}},
	{workload{name: "ack that million one by one, later", args: []string{"pop", "--ack", "later"}, count: 1_000_000},
		[]popFigure{popCPU(0, 1./5), popRate}},
	{workload{name: "publish to receive, waiting POP, 2,000/s", args: []string{"latency", "--waiting", "pop", "--rate", "2000", "--duration", "10s"}},
		[]popFigure{popTime("p50", p50, 1./2, 0), popTime("p99", p99, 1./2, 0), popCPU(0, 0)}},
	{workload{name: "lapse to redelivery, waiting POP, 100/s", args: []string{"lapse", "--rate", "100", "--duration", "10s", "--invisible", "10s"}},
		[]popFigure{popTime("p50", p50, 0, 0), popTime("p99", p99, 0, 100)}},
	{workload{name: "100,000 lapse together, popped and acked again", args: []string{"lapse", "--ack", "batch"}, count: 100_000},
		[]popFigure{popTime("the last one is late by", top, 0, 1000), popCPU(0, 1./4)}},
}

// popResults are all runs by server and workload.
type popResults map[string]map[string][]bench.Result

// tableOfPop measures POP over Remoting on the servers that the flags name.
func (m *measurer) tableOfPop(ctx context.Context, f flags) error {
	m.apache.NoProxy = true
	chosen := popServers
	if f.servers != "" {
		chosen = nil
		for _, name := range strings.Split(f.servers, ",") {
			i := slices.Index(popServerNames(), name)
			if i < 0 {
				return fmt.Errorf("--servers: %q is none of %s", name, strings.Join(popServerNames(), ", "))
			}
			chosen = append(chosen, popServers[i])
		}
	}
	began := time.Now()
	all := popResults{}
	var failed []error // do not lose what took an hour
	for _, s := range chosen {
		fmt.Fprintf(os.Stderr, "== %s\n", s.title)
		all[s.name] = map[string][]bench.Result{}
		for _, w := range popWorkloads {
			if !strings.Contains(w.name, m.only) {
				continue
			}
			results, err := m.measurePop(ctx, s, w.workload)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				failed = append(failed, fmt.Errorf("%s: %s: %w", s.title, w.name, err))
				fmt.Fprintln(os.Stderr, failed[len(failed)-1])
				continue
			}
			all[s.name][w.name] = results
		}
	}
	var table bytes.Buffer
	m.heading(&table, f, began)
	if m.only != "" || f.servers != "" || len(failed) > 0 {
		f.doc = "" // it holds all of them
	}
	printPop(&table, chosen, all)
	return errors.Join(append(failed, f.write("bench-apache-pop", all, table.Bytes()))...)
}

// measurePop runs one workload on a server of its own: what it leaves in flight lapses into
// no other, and its memory is its own.
func (m *measurer) measurePop(ctx context.Context, s popServer, w workload) (results []bench.Result, err error) {
	server, err := m.start(ctx, s.apache, m.dir(s.name), s.set...)
	if err != nil {
		return nil, err
	}
	defer func() {
		if stopped := server.Stop(); err == nil {
			err = stopped
		}
		os.RemoveAll(server.Dir)
	}()
	const warm = 300_000 // messages after which a virtual machine has compiled what it needs
	part := min(1, warm/float64(max(w.count, 1)))
	if _, err := m.bench(ctx, server, w, s.part*part); err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	for range m.runs {
		r, err := m.bench(ctx, server, w, s.part)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
		fmt.Fprintf(os.Stderr, "%-48s %8.0f/s  p50 %8.2f  p99 %8.2f  max %8.2f ms  %7.1f CPU s/M  %4.0f MB more private\n", w.name,
			r.PerSecond, r.Latency.P50, r.Latency.P99, r.Latency.Max, r.Server.CPUSecondsPerMillion, r.Server.GrownPrivateMB)
	}
	return results, nil
}

// value is the figure of several runs, 0 if there are none.
func (f popFigure) value(results []bench.Result) float64 {
	var values []float64
	for _, r := range results {
		values = append(values, f.of(r))
	}
	if f.highest && len(values) > 0 {
		return slices.Max(values)
	}
	return median(values)
}

// best is the best of some figures, without those that are not there.
func (f popFigure) best(values []float64) (best float64) {
	for _, v := range values {
		if v != 0 && (best == 0 || v < best != f.moreIsBetter) {
			best = v
		}
	}
	return best
}

// aim says what Bolide aims at, and whether it gets there.
func (f popFigure) aim(bolide, defaults, best float64) string {
	var aims []string
	met := true
	hold := func(limit, value float64, format string, shown any) {
		if limit > 0 {
			aims = append(aims, fmt.Sprintf(format, shown))
			met = met && value <= limit
		}
	}
	hold(f.ofDefaults*defaults, bolide, "≤ %.2f of the defaults", f.ofDefaults)
	hold(f.ofBest*best, bolide, "≤ %.2f of the best", f.ofBest)
	hold(f.most, bolide, "≤ "+f.format, f.most)
	switch {
	case len(aims) == 0 || bolide == 0:
		return strings.Join(aims, ", ")
	case met:
		return strings.Join(aims, ", ") + ": met"
	}
	return strings.Join(aims, ", ") + ": **missed**"
}

// printPop writes a row for every figure, with Bolide's by that of Apache with its defaults
// and by the best of Apache's.
func printPop(w io.Writer, columns []popServer, all popResults) {
	head, line := "| workload | figure |", "|---|---|"
	for _, c := range columns {
		head, line = head+" "+c.title+" |", line+"---|"
	}
	fmt.Fprintln(w, head+" of the defaults | of the best | aim |")
	fmt.Fprintln(w, line+"---|---|---|")
	for _, k := range popWorkloads {
		for i, f := range k.figures {
			var apache []float64
			cells := ""
			for _, c := range columns {
				results := all[c.name][k.name]
				v := f.value(results)
				if c.apache {
					apache = append(apache, v)
				}
				if len(results) == 0 {
					cells += " – |"
				} else {
					cells += fmt.Sprintf(" "+f.format+" |", v)
				}
			}
			bolide, defaults, best := f.value(all["bolide"][k.name]), f.value(all["apache"][k.name]), f.best(apache)
			if bolide == 0 && best == 0 {
				continue // not measured
			}
			ofDefaults, ofBest := ratio(defaults, bolide), ratio(best, bolide)
			if f.withoutRelations {
				ofDefaults, ofBest = "", ""
			}
			name := k.name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "| %s | %s |%s %s | %s | %s |\n", name, f.name, cells, ofDefaults, ofBest, f.aim(bolide, defaults, best))
		}
	}
}

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

// column is a server in a table.
type column struct {
	name, title string
	apache      bool
	set         []string // the broker's settings
	part        float64  // of the messages; less than one where all of them take minutes
}

var (
	withBuffer = []string{"enablePopBufferMerge=true"}
	withKV     = []string{"popConsumerKVServiceInit=true", "popConsumerKVServiceEnable=true"}
)

var popServers = []column{
	{name: "apache", title: "Apache, defaults", apache: true, part: 1},
	{name: "apache-buffer", title: "Apache, buffer merge", apache: true, set: withBuffer, part: 1},
	{name: "apache-kv", title: "Apache, KV", apache: true, set: withKV, part: 0.4},
	{name: "apache-kv-buffer", title: "Apache, KV and buffer merge", apache: true, set: slices.Concat(withKV, withBuffer), part: 1},
	{name: "bolide", title: "Bolide", part: 1},
}

// chosenServers are those that are named, or all.
func chosenServers(named string, all []column) (chosen []column, err error) {
	if named == "" {
		return all, nil
	}
	for _, name := range strings.Split(named, ",") {
		i := slices.IndexFunc(all, func(c column) bool { return c.name == name })
		if i < 0 {
			return nil, fmt.Errorf("--servers: %q is none of %s", name, serverNames(all))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func serverNames(all []column) string {
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	return strings.Join(names, ",")
}

// popWorkloads are the rows of the table, each with the figures that Bolide is held to.
var popWorkloads = []heldWorkload{
	{workload{name: "pop, ack one by one", args: []string{"pop"}, count: 200_000},
		[]figure{cpu(1./4, 1./2), rate}},
	{workload{name: "pop, ack by the batch", args: []string{"pop", "--ack", "batch"}, count: 200_000},
		[]figure{cpu(1./3, 1./2), rate}},
	{workload{name: "pop a million without ack", args: []string{"pop", "--ack", "none"}, count: 1_000_000},
		[]figure{cpu(0, 1./2), rate, growth}},
	{workload{name: "ack that million one by one, later", args: []string{"pop", "--ack", "later"}, count: 1_000_000},
		[]figure{cpu(0, 1./5), rate}},
	{workload{name: "publish to receive, waiting POP, 2,000/s", args: []string{"latency", "--waiting", "pop", "--rate", "2000", "--duration", "10s"}},
		[]figure{latency("p50", p50, 1./2, 0), latency("p99", p99, 1./2, 0), cpu(0, 0)}},
	{workload{name: "lapse to redelivery, waiting POP, 100/s", args: []string{"lapse", "--rate", "100", "--duration", "10s", "--invisible", "10s"}},
		[]figure{latency("p50", p50, 0, 0), latency("p99", p99, 0, 100)}},
	{workload{name: "100,000 lapse together, popped and acked again", args: []string{"lapse", "--ack", "batch"}, count: 100_000},
		[]figure{latency("the last one is late by", top, 0, 1000), cpu(0, 1./4)}},
}

// popResults are all runs by server and workload.
type popResults map[string]map[string][]bench.Result

// tableOfPop measures POP over Remoting on the servers that the flags name.
func (m *measurer) tableOfPop(ctx context.Context, f flags) error {
	m.apache.NoProxy = true
	chosen, err := chosenServers(f.servers, popServers)
	if err != nil {
		return err
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
func (m *measurer) measurePop(ctx context.Context, s column, w workload) (results []bench.Result, err error) {
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

// printPop writes a row for every figure, with Bolide's by that of Apache with its defaults
// and by the best of Apache's.
func printPop(w io.Writer, columns []column, all popResults) {
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
			fmt.Fprintf(w, "| %s | %s |%s %s | %s | %s |\n", name, f.name, cells, ofDefaults, ofBest,
				f.aim(bolide, relation{f.ofDefaults, defaults, "the defaults"}, relation{f.ofBest, best, "the best"}))
		}
	}
}

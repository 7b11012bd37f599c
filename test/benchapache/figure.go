package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/bench"
)

// figure is a row of a table: one figure of a workload, and what Bolide aims at.
type figure struct {
	name, format     string
	of               func(bench.Result) float64
	highest          bool    // of the runs, not the median
	ofDefaults       float64 // at most so much of Apache with its defaults, 0 = no aim
	ofBest           float64 // and so much of Apache's best
	most             float64 // and no more than this
	moreIsBetter     bool
	withoutRelations bool // where Apache's figure is no measure, as with the growth of a heap
}

// heldWorkload is a workload with the figures that Bolide is held to.
type heldWorkload struct {
	workload
	figures []figure
}

func cpu(ofDefaults, ofBest float64) figure {
	return figure{name: "CPU", format: "%.1f s/M", ofDefaults: ofDefaults, ofBest: ofBest,
		of: func(r bench.Result) float64 { return r.Server.CPUSecondsPerMillion }}
}

func latency(name string, of func(bench.Latency) float64, ofBest, most float64) figure {
	return figure{name: name, format: "%.2f ms", ofBest: ofBest, most: most,
		of: func(r bench.Result) float64 { return of(r.Latency) }}
}

var (
	rate = figure{name: "rate", format: "%.0f/s", moreIsBetter: true,
		of: func(r bench.Result) float64 { return r.PerSecond }}
	growth = figure{name: "private memory, growth", format: "%.0f MB", highest: true, most: 100, withoutRelations: true,
		of: func(r bench.Result) float64 { return r.Server.GrownPrivateMB }}
	p50 = func(l bench.Latency) float64 { return l.P50 }
	p99 = func(l bench.Latency) float64 { return l.P99 }
	top = func(l bench.Latency) float64 { return l.Max }
)

// value is the figure of several runs, 0 if there are none.
func (f figure) value(results []bench.Result) float64 {
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
func (f figure) best(values []float64) (best float64) {
	for _, v := range values {
		if v != 0 && (best == 0 || v < best != f.moreIsBetter) {
			best = v
		}
	}
	return best
}

// relation is a part of another figure that Bolide's may be.
type relation struct {
	part, whole float64
	of          string
}

// aim says what Bolide aims at, and whether it gets there.
func (f figure) aim(bolide float64, relations ...relation) string {
	var aims []string
	met := true
	hold := func(limit, value float64, format string, shown ...any) {
		if limit > 0 {
			aims = append(aims, fmt.Sprintf(format, shown...))
			met = met && value <= limit
		}
	}
	for _, r := range relations {
		hold(r.part*r.whole, bolide, "≤ %.2f of %s", r.part, r.of)
	}
	hold(f.most, bolide, "≤ "+f.format, f.most)
	switch {
	case len(aims) == 0 || bolide == 0:
		return strings.Join(aims, ", ")
	case met:
		return strings.Join(aims, ", ") + ": met"
	}
	return strings.Join(aims, ", ") + ": **missed**"
}

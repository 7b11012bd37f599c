package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Result is what a run found.
type Result struct {
	Workload string   `json:"workload"`
	Protocol Protocol `json:"protocol"`

	Messages   int64   `json:"messages"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"per_second"`
	Latency    Latency `json:"latency_ms"` // of what the workload waits for
	LatencyOf  string  `json:"latency_of"`
	LastAfter  float64 `json:"last_after_seconds,omitempty"` // timers: from the first due time to the last delivery
	Refused    int64   `json:"refused"`                      // sends refused by the server and repeated
	Lost       int64   `json:"lost"`
	LostFirst  []int64 `json:"lost_first,omitempty"`
	Duplicates int64   `json:"duplicates"`
	TwiceFirst []int64 `json:"duplicates_first,omitempty"`
	Foreign    int64   `json:"foreign"`               // messages that this run did not send
	Early      int64   `json:"early,omitempty"`       // that came before their time
	EarliestMS float64 `json:"earliest_ms,omitempty"` // by how much, at most
	Unverified bool    `json:"unverified,omitempty"`  // nobody was to receive them

	Beside *Beside  `json:"beside,omitempty"` // other traffic
	Memory []Moment `json:"memory,omitempty"`
	Server *Usage   `json:"server,omitempty"`
}

// Complete reports whether every message was seen exactly once, and none before its time.
func (r Result) Complete() bool {
	return r.Lost == 0 && r.Duplicates == 0 && r.Foreign == 0 && r.Early == 0
}

// Latency is a distribution in milliseconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// result makes the result of a measured part that has ended.
func (l *ledger) result(workload string, o Options, m measured, of string, h *histograms) Result {
	r := Result{
		Workload: workload, Protocol: o.Protocol,
		Messages: l.total, Seconds: m.took.Seconds(), PerSecond: float64(l.total) / m.took.Seconds(),
		Latency: h.latency(), LatencyOf: of,
		Refused: l.refused.Load(), Duplicates: l.duplicate.Load(), TwiceFirst: l.named, Foreign: l.foreign.Load(),
		Server: m.usage(l.total),
	}
	r.Lost, r.LostFirst = l.missing()
	return r
}

// add adds the messages of an earlier part of the run to what was counted.
func (r *Result) add(earlier Result) {
	r.Refused += earlier.Refused
	r.Lost += earlier.Lost
	r.LostFirst = append(r.LostFirst, earlier.LostFirst...)
	r.Duplicates += earlier.Duplicates
	r.TwiceFirst = append(r.TwiceFirst, earlier.TwiceFirst...)
	r.Foreign += earlier.Foreign
}

// histograms collects durations; each goroutine has one of its own.
type histograms struct {
	mu  sync.Mutex
	all []*hdrhistogram.Histogram
}

// longest is what longer times are filed as: ten minutes, in microseconds.
const longest = 600_000_000

// one returns a histogram for the caller alone: a microsecond to the longest, three digits.
func (h *histograms) one() *hdrhistogram.Histogram {
	g := hdrhistogram.New(1, longest, 3)
	h.mu.Lock()
	h.all = append(h.all, g)
	h.mu.Unlock()
	return g
}

func record(g *hdrhistogram.Histogram, d time.Duration) {
	g.RecordValue(min(max(d.Microseconds(), 1), longest))
}

func (h *histograms) latency() Latency {
	sum := hdrhistogram.New(1, longest, 3)
	for _, g := range h.all {
		sum.Merge(g)
	}
	at := func(q float64) float64 { return float64(sum.ValueAtQuantile(q)) / 1000 }
	return Latency{P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(sum.Max()) / 1000}
}

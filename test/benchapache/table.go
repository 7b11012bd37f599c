package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/bolidemq/bolide/internal/bench"
)

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// row is the medians of one workload on one server.
type row struct{ cpu, rate, p50, p99 float64 }

func medians(results []bench.Result) row {
	pick := func(of func(bench.Result) float64) float64 {
		var values []float64
		for _, r := range results {
			values = append(values, of(r))
		}
		return median(values)
	}
	return row{
		cpu:  pick(func(r bench.Result) float64 { return r.Server.CPUSecondsPerMillion }),
		rate: pick(func(r bench.Result) float64 { return r.PerSecond }),
		p50:  pick(func(r bench.Result) float64 { return r.Latency.P50 }),
		p99:  pick(func(r bench.Result) float64 { return r.Latency.P99 }),
	}
}

func (r row) String() string {
	return fmt.Sprintf("%.1f CPU s/M; %.0f/s; p50 %.2f, p99 %.2f ms", r.cpu, r.rate, r.p50, r.p99)
}

func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", b/a)
}

// printWorkloads writes the comparison of the workloads as a table of Markdown. Ratios are
// Bolide's by Apache's. It returns both sides, empty ones for those that were not measured.
func printWorkloads(w io.Writer, apache, bolide *figures) (*figures, *figures) {
	if apache == nil {
		apache = &figures{}
	}
	if bolide == nil {
		bolide = &figures{}
	}
	fmt.Fprintln(w, "| workload | Apache RocketMQ 5.5.0 | Bolide | CPU | rate | p50 | p99 |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	line := func(name string, a, b []bench.Result) {
		if len(a) == 0 && len(b) == 0 {
			return
		}
		x, y := medians(a), medians(b)
		fmt.Fprintf(w, "| %s | %v | %v | %s | %s | %s | %s |\n", name, x, y,
			ratio(x.cpu, y.cpu), ratio(x.rate, y.rate), ratio(x.p50, y.p50), ratio(x.p99, y.p99))
	}
	for _, k := range workloads {
		line(k.name, apache.Results[k.name], bolide.Results[k.name])
	}
	line("send, Remoting, SYNC_FLUSH", apache.Sync, bolide.Sync)
	return apache, bolide
}

// printTable writes the comparison as tables of Markdown.
func printTable(w io.Writer, apache, bolide *figures, empty []bench.Result, big *bigLogStarts) {
	apache, bolide = printWorkloads(w, apache, bolide)
	fmt.Fprintln(w)
	fmt.Fprintln(w, "| figure | Apache RocketMQ 5.5.0 | Bolide | ratio |")
	fmt.Fprintln(w, "|---|---|---|---|")
	plain := func(name, unit string, a, b float64) {
		fmt.Fprintf(w, "| %s | %.0f %s | %.0f %s | %s |\n", name, a, unit, b, unit, ratio(a, b))
	}
	plain("process start to ready, empty folder", "ms", median(apache.Starts), median(bolide.Starts))
	plain("resident memory, idle", "MB", apache.IdleMB, bolide.IdleMB)
	plain("private memory under the loads above, peak", "MB", apache.LoadedMB, bolide.LoadedMB)
	if big != nil {
		fmt.Fprintf(w, "| start with a log of %.1f GiB after a clean stop |  | %.0f ms |  |\n", big.GiB, big.CleanMS)
		fmt.Fprintf(w, "| the same after kill -9 |  | %.0f ms |  |\n", big.KilledMS)
	}
	if len(empty) > 0 {
		fmt.Fprintf(w, "| gRPC send to an empty grpc-go handler |  | %v |  |\n", medians(empty))
	}
}

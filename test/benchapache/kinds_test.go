package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/bench"
)

// TestTableOfKinds: a server that fails or is not exact has that in its row, beside the other's
// figures.
func TestTableOfKinds(t *testing.T) {
	const timers, lite = "2,000 timers due per second, beside that million", "100,000 lite topics, 1,000 of them get 1,000 messages per second"
	all := kindResults{
		"apache": {
			timers: {Results: []bench.Result{{Messages: 20_000, Early: 3, EarliestMS: 700, Lost: 1,
				Latency: bench.Latency{P50: 500, P99: 990, Max: 1010}, Server: &bench.Usage{CPUSecondsPerMillion: 300}}}},
			lite: {Failed: "no end | within 10m0s"},
		},
		"bolide": {
			timers: {Results: []bench.Result{{Messages: 20_000,
				Latency: bench.Latency{P50: 1, P99: 2.5, Max: 4}, Server: &bench.Usage{CPUSecondsPerMillion: 150}}}},
			lite: {Results: []bench.Result{{Messages: 10_000, Latency: bench.Latency{P50: 1, P99: 3}, Server: &bench.Usage{CPUSecondsPerMillion: 200},
				Memory: []bench.Moment{{Name: "at rest", Memory: bench.Memory{ResidentMB: 150}}, {Name: "after", Memory: bench.Memory{ResidentMB: 210}}}}}},
		},
	}
	var table bytes.Buffer
	printKinds(&table, all)
	want := `| workload | figure | Apache RocketMQ 5.5.0 | Bolide | ratio | aim |
|---|---|---|---|---|---|
| 2,000 timers due per second, beside that million | every message once, in its time | 1 lost; 3 early, by up to 700 ms (of 20000) | yes |  |  |
|  | late, p50 | 500.00 ms | 1.00 ms | 0.00 |  |
|  | late, p99 | 990.00 ms | 2.50 ms | 0.00 | ≤ 50.00 ms: met |
|  | late, at most | 1010.00 ms | 4.00 ms | 0.00 |  |
|  | CPU | 300.0 s/M | 150.0 s/M | 0.50 | ≤ 0.33 of Apache's: **missed** |
| 100,000 lite topics, 1,000 of them get 1,000 messages per second | every message once, in its time | failed: no end \| within 10m0s | yes |  |  |
|  | wake-up, p50 | – | 1.00 ms | – |  |
|  | wake-up, p99 | – | 3.00 ms | – | ≤ 20.00 ms: met |
|  | resident memory at rest | – | 150 MB | – | ≤ 200 MB: met |
|  | resident memory after | – | 210 MB | – | ≤ 200 MB: **missed** |
|  | CPU | – | 200.0 s/M | – |  |
`
	for i, line := range strings.Split(want, "\n") {
		if got := strings.Split(table.String(), "\n"); i >= len(got) || got[i] != line {
			t.Fatalf("line %d is not\n%s\nin\n%s", i, line, table.String())
		}
	}
}

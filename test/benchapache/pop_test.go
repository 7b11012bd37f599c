package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/bench"
)

// runsOf are runs with these CPU seconds per million and this growth.
func runsOf(grown float64, cpu ...float64) (all []bench.Result) {
	for _, c := range cpu {
		all = append(all, bench.Result{Server: &bench.Usage{CPUSecondsPerMillion: c, GrownPrivateMB: grown}})
	}
	return all
}

// TestTableOfPop: the median of the runs, by the defaults and by the best of Apache's ways,
// held to the aims; what was not measured is left out.
func TestTableOfPop(t *testing.T) {
	const none = "pop a million without ack"
	all := popResults{
		"apache":    {none: runsOf(500, 9, 4, 5)},
		"apache-kv": {none: runsOf(600, 12)},
		"bolide":    {none: runsOf(101, 2.5, 1, 8)},
	}
	var table bytes.Buffer
	printPop(&table, []column{popServers[0], popServers[2], popServers[4]}, all)
	lines := strings.Split(table.String(), "\n")
	for i, want := range []string{
		"| workload | figure | Apache, defaults | Apache, KV | Bolide | of the defaults | of the best | aim |",
		"|---|---|---|---|---|---|---|---|",
		"| pop a million without ack | CPU | 5.0 s/M | 12.0 s/M | 2.5 s/M | 0.50 | 0.50 | ≤ 0.50 of the best: met |",
		"|  | private memory, growth | 500 MB | 600 MB | 101 MB |  |  | ≤ 100 MB: **missed** |",
		"",
	} {
		if lines[i] != want {
			t.Errorf("line %d is\n%s, not\n%s", i, lines[i], want)
		}
	}
	if len(lines) != 5 {
		t.Errorf("%s", table.String())
	}
}

// TestEveryPopServerIsKnown: the table's ratios go by these names.
func TestEveryPopServerIsKnown(t *testing.T) {
	if names := serverNames(popServers); names != "apache,apache-buffer,apache-kv,apache-kv-buffer,bolide" {
		t.Error(names)
	}
}

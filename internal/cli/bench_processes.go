package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bolidemq/bolide/internal/bench"
)

// processWatch looks at the processes of a server through /proc while they are measured.
type processWatch struct {
	pids    []int
	before  struct{ cpu, private float64 }
	ended   chan struct{}
	looking errgroup.Group
	peak    struct{ resident, private float64 } // MB, all processes together
	broken  bool
}

// watchProcesses begins to look. Without processes, or without /proc, stop returns nil.
func watchProcesses(pids []int) *processWatch {
	w := &processWatch{pids: pids, ended: make(chan struct{})}
	if len(pids) == 0 {
		return w
	}
	w.before.cpu = w.cpuSeconds()
	w.look()
	w.before.private = w.peak.private
	w.looking.Go(func() error {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.ended:
				return nil
			case <-tick.C:
				w.look()
			}
		}
	})
	return w
}

func (w *processWatch) stop() *bench.Usage {
	cpu := w.cpuSeconds() - w.before.cpu
	close(w.ended)
	w.looking.Wait()
	if len(w.pids) == 0 || w.broken {
		return nil
	}
	w.look()
	return &bench.Usage{CPUSeconds: cpu, PeakResidentMB: w.peak.resident, PeakPrivateMB: w.peak.private,
		GrownPrivateMB: w.peak.private - w.before.private}
}

func (w *processWatch) look() {
	var resident, private float64
	for _, pid := range w.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			w.broken = true
			return
		}
		resident += megabytes(string(text), "VmRSS:")
		private += megabytes(string(text), "RssAnon:")
	}
	w.peak.resident = max(w.peak.resident, resident)
	w.peak.private = max(w.peak.private, private)
}

// cpuSeconds is the user and system time of all processes until now.
func (w *processWatch) cpuSeconds() (sum float64) {
	const ticksPerSecond = 100 // USER_HZ of Linux, whatever the kernel's own tick
	for _, pid := range w.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			w.broken = true
			return 0
		}
		// The name in parentheses may hold anything; the fields after it are separated by blanks.
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			w.broken = true
			return 0
		}
		for _, f := range fields[11:13] { // utime and stime
			n, _ := strconv.ParseFloat(f, 64)
			sum += n / ticksPerSecond
		}
	}
	return sum
}

func megabytes(status, name string) float64 {
	_, rest, found := strings.Cut(status, name)
	if !found {
		return 0
	}
	kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kb / 1024
}

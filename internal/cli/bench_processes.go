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

// processes are those of a server, looked at through /proc while they are measured. They
// implement bench.Server; of none, or without /proc, nothing is known.
type processes []int

// processWatch is one look at them that lasts.
type processWatch struct {
	processes
	before, peak struct{ cpu, resident, private float64 } // seconds, and MB of all together
	ended        chan struct{}
	looking      errgroup.Group
	broken       bool
}

// check refuses what is not there to be looked at.
func (p processes) check() error {
	for _, pid := range p {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d/status", pid)); err != nil {
			return fmt.Errorf("--server-pid %d: /proc of this machine shows no such process", pid)
		}
	}
	return nil
}

// Watch implements bench.Server.
func (p processes) Watch() (stop func() *bench.Usage) {
	if len(p) == 0 {
		return func() *bench.Usage { return nil }
	}
	w := &processWatch{processes: p, ended: make(chan struct{})}
	cpu, ok := p.cpuSeconds()
	w.broken = !ok
	w.look()
	w.before = w.peak
	w.before.cpu = cpu
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
	return w.stop
}

func (w *processWatch) stop() *bench.Usage {
	cpu, ok := w.cpuSeconds()
	close(w.ended)
	w.looking.Wait()
	w.look()
	if w.broken || !ok {
		return nil
	}
	return &bench.Usage{CPUSeconds: cpu - w.before.cpu, PeakResidentMB: w.peak.resident, PeakPrivateMB: w.peak.private,
		GrownPrivateMB: w.peak.private - w.before.private}
}

func (w *processWatch) look() {
	m := w.Memory()
	if m == nil {
		w.broken = true
		return
	}
	w.peak.resident = max(w.peak.resident, m.ResidentMB)
	w.peak.private = max(w.peak.private, m.PrivateMB)
}

// Memory implements bench.Server.
func (p processes) Memory() *bench.Memory {
	if len(p) == 0 {
		return nil
	}
	var m bench.Memory
	for _, pid := range p {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return nil
		}
		m.ResidentMB += megabytes(string(text), "VmRSS:")
		m.PrivateMB += megabytes(string(text), "RssAnon:")
	}
	return &m
}

// cpuSeconds is the user and system time of all processes until now.
func (p processes) cpuSeconds() (sum float64, ok bool) {
	const ticksPerSecond = 100 // USER_HZ of Linux, whatever the kernel's own tick
	for _, pid := range p {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, false
		}
		// The name in parentheses may hold anything; the fields after it are separated by blanks.
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 13 {
			return 0, false
		}
		for _, f := range fields[11:13] { // utime and stime
			n, _ := strconv.ParseFloat(f, 64)
			sum += n / ticksPerSecond
		}
	}
	return sum, true
}

func megabytes(status, name string) float64 {
	_, rest, found := strings.Cut(status, name)
	if !found {
		return 0
	}
	kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	return kb / 1024
}

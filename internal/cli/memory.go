package cli

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// headroom is how many bytes of garbage a server lets come together at most before they are
	// collected. Go's own rule is as many as are in use, which doubles what a server with many
	// queues holds.
	headroom = 32 << 20
	// leastPercent is how much of what is in use it lets come together at least: with
	// gigabytes in use collecting each 32 MiB would cost more than the memory is worth.
	leastPercent = 25

	memoryLook = 2 * time.Second
	// quietLooks is after how many looks in which next to nothing was allocated memory goes
	// back to the system.
	quietLooks = 15
	quietBytes = 8 << 20  // in all of these looks
	worthBytes = 32 << 20 // allocated since memory went back last
)

// memory keeps small what the process holds of the system's memory beyond what it uses: it
// bounds the garbage, and gives back what a burst has left when the server is quiet again.
// Where GOGC is set, it does neither.
type memory struct {
	samples  []metrics.Sample
	percent  int
	returned uint64   // allocated until memory went back last
	looks    []uint64 // allocated until each of the last looks
}

const (
	inUse = iota
	allocated
)

func newMemory() *memory {
	return &memory{percent: 100, samples: []metrics.Sample{inUse: {Name: "/gc/heap/live:bytes"}, allocated: {Name: "/gc/heap/allocs:bytes"}}}
}

// keep looks after the memory until ctx ends or failed is closed.
func (m *memory) keep(ctx context.Context, failed <-chan struct{}) {
	look := time.NewTicker(memoryLook)
	defer look.Stop()
	if _, set := os.LookupEnv("GOGC"); set {
		look.Stop() // and never looks
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-failed:
			return
		case <-look.C:
		}
		metrics.Read(m.samples)
		if p := percentFor(m.samples[inUse].Value.Uint64()); p != m.percent {
			m.percent = p
			debug.SetGCPercent(p)
		}
		if m.quiet(m.samples[allocated].Value.Uint64()) {
			debug.FreeOSMemory()
		}
	}
}

// percentFor is the GC percent with so much in use, in steps of five so that it is seldom set.
func percentFor(inUse uint64) int {
	const step = 5
	percent := int(100 * headroom / max(inUse, headroom))
	return max(percent/step*step, leastPercent)
}

// quiet takes in how much was allocated until this look, and reports whether it is time to give
// memory back.
func (m *memory) quiet(allocated uint64) bool {
	m.looks = append(m.looks, allocated)
	if len(m.looks) <= quietLooks {
		return false
	}
	first := m.looks[0]
	m.looks = append(m.looks[:0], m.looks[1:]...)
	if allocated-first > quietBytes || allocated-m.returned < worthBytes {
		return false
	}
	m.returned = allocated
	return true
}

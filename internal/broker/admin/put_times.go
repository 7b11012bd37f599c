package admin

import (
	"strings"
	"sync/atomic"
	"time"
)

// PutTimes counts messages by how long the log took to write them. The zero value is
// ready.
type PutTimes struct {
	counts  [len(putBounds) + 1]atomic.Int64
	longest atomic.Int64 // ms
}

// putBounds are the upper bounds of the buckets, and putNames what the tools show.
var (
	putBounds = [...]time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
		500 * time.Millisecond, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second, 10 * time.Second}
	putNames = [...]string{"<=0ms", "0~10ms", "10~50ms", "50~100ms", "100~200ms", "200~500ms", "500ms~1s", "1~2s", "2~3s", "3~4s", "4~5s", "5~10s", "10s~"}
)

// Add counts messages that were written together.
func (p *PutTimes) Add(messages int, took time.Duration) {
	took = took.Truncate(time.Millisecond)
	i := 0
	for i < len(putBounds) && took > putBounds[i] {
		i++
	}
	p.counts[i].Add(int64(messages))
	for ms := took.Milliseconds(); ; {
		old := p.longest.Load()
		if ms <= old || p.longest.CompareAndSwap(old, ms) {
			return
		}
	}
}

// text is the buckets as the tools show them, and the longest time in milliseconds.
func (p *PutTimes) text() (buckets, longest string) {
	var b strings.Builder
	for i := range p.counts {
		b.WriteString("[" + putNames[i] + "]:" + itoa(p.counts[i].Load()) + " ")
	}
	return b.String(), itoa(p.longest.Load())
}

package metrics

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/bolidemq/bolide/internal/broker/admin"
)

// What has been handed out is never less than it was, however the page is read while groups
// receive first deliveries and repeated ones.
func TestCountersNeverGoDown(t *testing.T) {
	b := newTraced(t)
	var stop atomic.Bool
	var receivers sync.WaitGroup
	for range 2 {
		receivers.Go(func() {
			for !stop.Load() {
				b.Admin.Counters.Get(admin.GroupGetNums, "T", "g").Add(1)
				b.Admin.Counters.Get(admin.GroupGetNums, "T", "g").AddAgain(3, 2)
			}
		})
	}
	defer receivers.Wait()
	defer stop.Store(true)
	const out = `rocketmq_messages_out_total{topic="T",consumer_group="g",`
	last := make(map[string]int64)
	for range 2000 {
		var p page
		p.traffic(b.Broker.Broker)
		for series, n := range samples(t, p.text) {
			if n < last[series] {
				t.Fatalf("%s was %d and is %d", series, last[series], n)
			}
			last[series] = n
		}
		fresh, again := last[out+`is_retry="false",is_system="false"}`], last[out+`is_retry="true",is_system="false"}`]
		if again > fresh {
			t.Fatalf("%d for the first time and %d again", fresh, again)
		}
	}
}

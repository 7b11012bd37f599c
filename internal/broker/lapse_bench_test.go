package broker_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// disk is a whole broker on the real disk, with the real clock and its default sizes.
type disk struct {
	*broker.Broker
	b     testing.TB
	dir   string
	loops *lifecycle.Group
}

func openDisk(b testing.TB, dir string) *disk {
	b.Helper()
	opened, err := broker.Open(broker.Options{FS: vfs.Default, Dir: dir, Broker: config.NewLive(config.DefaultBroker()),
		StoreConfig: config.NewLive(config.DefaultStore()), StoreHost: producer, Tune: broker.Tuning{MaxWaiting: 100_000}})
	if err != nil {
		b.Fatal(err)
	}
	d := &disk{Broker: opened, b: b, dir: dir, loops: lifecycle.New(slog.New(slog.DiscardHandler))}
	for _, l := range opened.Loops() {
		d.loops.Go(l.Name, l.Run)
	}
	return d
}

func (d *disk) close() {
	d.Quiesce()
	if err := d.loops.Stop(); err != nil {
		d.b.Error(err)
	}
	if err := d.Close(); err != nil {
		d.b.Error(err)
	}
}

// fill makes a topic of eight queues with n messages of 1 KiB.
func (d *disk) fill(name string, n int) {
	d.b.Helper()
	if err := d.Topics.Put(&topic.Config{Name: name, ReadQueues: 8, WriteQueues: 8, Perm: 6}); err != nil {
		d.b.Fatal(err)
	}
	body := make([]byte, 1024)
	var stored sync.WaitGroup
	for i := range n {
		stored.Add(1)
		d.Publish.Publish(&message.Message{Topic: name, QueueID: int32(i % 8), Body: body, BornHost: producer, StoreHost: producer},
			func(_ storage.Placed, err error) {
				if err != nil {
					d.b.Error(err)
				}
				stored.Done()
			})
	}
	stored.Wait()
	for q := range int32(8) {
		for d.Store.MaxOffset(name, q) < int64((n+7-int(q))/8) {
			time.Sleep(time.Millisecond)
		}
	}
}

// pops goes on popping until stop says so, and hands over what it gets.
func (d *disk) pops(ctx context.Context, r pop.Request, got func(res *pop.Result)) {
	for ctx.Err() == nil {
		answered := make(chan struct{})
		d.Pop.Pop(r, func(res pop.Result, err error) {
			if err != nil {
				d.b.Error(err)
			} else {
				got(&res)
			}
			res.Release()
			close(answered)
		})
		<-answered
	}
}

// BenchmarkLapseTogether pops b.N messages at once, lets all of them lapse, and pops and
// acknowledges them again: "late" is how long after its due time the last one came.
func BenchmarkLapseTogether(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				late, median := lapseTogether(b, n)
				b.ReportMetric(float64(late.Milliseconds()), "ms-last-late")
				b.ReportMetric(float64(median.Milliseconds()), "ms-median-late")
			}
		})
	}
}

func lapseTogether(b *testing.B, n int) (last, median time.Duration) {
	d := openDisk(b, b.TempDir())
	defer d.close()
	b.StopTimer()
	d.fill("lapse", n)
	var mu sync.Mutex
	due := int64(0) // when the last of them lapses
	taken := 0
	first := pop.Request{Group: "g", Topic: "lapse", QueueID: -1, Max: 32, Invisible: int64(5000 + n/100)}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.pops(ctx, first, func(res *pop.Result) {
		taken += res.Messages()
		due = max(due, res.PopTime+res.Invisible)
		if taken == n {
			cancel()
		}
	})
	if due < time.Now().UnixMilli() {
		b.Fatal("the first ones lapsed before the last ones were popped")
	}
	b.StartTimer()
	ctx, cancelAgain := context.WithCancel(context.Background())
	defer cancelAgain()
	var consumers, acks sync.WaitGroup
	lates := make([]time.Duration, 0, n)
	for range 8 {
		consumers.Go(func() {
			r := pop.Request{Group: "g", Topic: "lapse", QueueID: -1, Max: 32, Invisible: 600_000, PollTime: time.Second}
			d.pops(ctx, r, func(res *pop.Result) {
				if res.Status != pop.Found {
					return
				}
				now := time.Now().UnixMilli()
				var hs []receipt.Handle
				for i := range res.Batches {
					for j := range res.Batches[i].Records {
						hs = append(hs, res.Handle(&res.Batches[i], &res.Batches[i].Records[j], "b"))
					}
				}
				for _, h := range hs {
					acks.Add(1)
					d.Pop.Ack("g", "lapse", h, func(err error) {
						if err != nil {
							b.Error(err)
						}
						acks.Done()
					})
				}
				mu.Lock()
				for range hs {
					lates = append(lates, time.Duration(now-due)*time.Millisecond)
				}
				if len(lates) >= n {
					cancelAgain()
				}
				mu.Unlock()
			})
		})
	}
	consumers.Wait()
	acks.Wait()
	if len(lates) != n {
		b.Errorf("%d came again, not %d", len(lates), n)
	}
	slices.Sort(lates)
	return lates[len(lates)-1], lates[len(lates)/2]
}

// BenchmarkLapseOne measures from the due time of one message to its redelivery to a
// waiting pop.
func BenchmarkLapseOne(b *testing.B) {
	d := openDisk(b, b.TempDir())
	defer d.close()
	d.fill("one", 1)
	var lates []time.Duration
	due := int64(0)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := pop.Request{Group: "g", Topic: "one", QueueID: -1, Max: 32, Invisible: 20, PollTime: 10 * time.Second}
	if err := d.Groups.Put(manyRetries("g")); err != nil {
		b.Fatal(err)
	}
	d.pops(ctx, r, func(res *pop.Result) {
		if res.Status != pop.Found {
			return
		}
		if due != 0 {
			lates = append(lates, time.Since(time.UnixMilli(due)))
		}
		if due = res.PopTime + res.Invisible; len(lates) == b.N {
			cancel()
		}
	})
	slices.Sort(lates)
	b.ReportMetric(float64(lates[len(lates)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(lates[len(lates)*99/100].Microseconds())/1000, "ms-p99")
}

// BenchmarkRestartInFlight is the time from opening a store with a million messages in
// flight to serving.
func BenchmarkRestartInFlight(b *testing.B) {
	const n = 1_000_000
	dir := b.TempDir()
	d := openDisk(b, dir)
	d.fill("held", n)
	taken := 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d.pops(ctx, pop.Request{Group: "g", Topic: "held", QueueID: -1, Max: 32, Invisible: 3_600_000}, func(res *pop.Result) {
		if taken += res.Messages(); taken == n {
			cancel()
		}
	})
	d.close()
	for b.Loop() {
		d = openDisk(b, dir)
		b.StopTimer()
		if c := d.Pop.Count("g", "held"); c.InFlight != n {
			b.Errorf("%d in flight", c.InFlight)
		}
		d.close()
		b.StartTimer()
	}
}

func manyRetries(name string) *group.Config {
	g := group.New(name)
	g.RetryMaxTimes = 1 << 20
	return g
}

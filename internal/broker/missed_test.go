package broker_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// R090: near a full disk the operator's policy decides. Where the oldest files go, each
// group's count is exactly what it can't receive any more; where sends are refused, nothing
// is lost and nothing counted.
func TestMissedIsCounted(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		t.Run(fmt.Sprintf("refuse %v", refuse), func(t *testing.T) {
			t.Parallel() // both wait for checkpoints
			fs := vfs.NewCrashableMem()
			b := brokertest.Open(t, brokertest.Options{FS: fs, Tune: func(_ *config.Broker, s *config.Store) {
				s.MappedFileSizeCommitLog, s.MaxMessageSize, s.CleanFileForciblyEnable = 64<<10, 8<<10, !refuse
			}})
			makeTopic(t, b)
			const sent = 300
			for i := range sent {
				publish(t, b, fmt.Sprintf("m%d %s", i, strings.Repeat("x", 1000)), "")
			}
			b.Dispatched()
			at := map[string]int64{"stuck": 0, "slow": 70, "halfway": 150, "done": sent}
			for group, off := range at {
				if err := b.Offsets.Commit(group, "T", 0, off); err != nil {
					t.Fatal(err)
				}
			}
			brokertest.Until(t, "a checkpoint", func() bool { return b.Store.Checkpointed() >= b.Store.LogMax() })
			fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 6 << 30, TotalBytes: 60 << 30, UsedBytes: 54 << 30})
			deleteFile := func() {
				if err := b.Store.DeleteExpired(); err != nil {
					t.Fatal(err)
				}
			}
			deleteFile()
			// The slow one goes on and is overtaken again: what it received in between is not counted.
			if err := b.Offsets.Commit("slow", "T", 0, 100); err != nil {
				t.Fatal(err)
			}
			low := b.Store.MinOffset("T", 0)
			deleteFile()
			deleteFile()
			gone := b.Store.MinOffset("T", 0)
			if refuse {
				if gone != 0 || len(b.Missed()) != 0 {
					t.Errorf("messages from %d on, %v", gone, b.Missed())
				}
				return
			}
			if low <= 50 || low >= 70 || gone <= 150 || gone >= 250 {
				t.Fatalf("the sizes of this test are off: %d, %d", low, gone)
			}
			want := []broker.Missed{{Group: "halfway", Topic: "T", Messages: gone - 150}, {Group: "slow", Topic: "T", Messages: gone - 100}, {Group: "stuck", Topic: "T", Messages: gone}}
			if got := b.Missed(); !slices.Equal(got, want) {
				t.Errorf("counted %v, want %v", got, want)
			}
		})
	}
}

// R004: a popped message is held while its log file goes and what is around it is
// acknowledged. When its time is over nothing comes in its place; a group's count is what it
// had not received, and, when its time is over, the one that it can't receive again.
func TestMissedByAPoppingGroup(t *testing.T) {
	fs, c := vfs.NewCrashableMem(), clock.New()
	b := brokertest.Open(t, brokertest.Options{FS: fs, Clock: c, Tune: func(_ *config.Broker, s *config.Store) {
		s.MappedFileSizeCommitLog, s.MaxMessageSize = 64<<10, 8<<10
	}})
	makeTopic(t, b)
	const sent, popped = 300, 20
	for i := range sent {
		publish(t, b, fmt.Sprintf("m%d %s", i, strings.Repeat("x", 1000)), "")
	}
	b.Dispatched()
	pops := func() (got []receipt.Handle) {
		b.Pop.Pop(pop.Request{Group: "g", Topic: "T", QueueID: -1, Max: popped, Invisible: 60_000}, func(r pop.Result, err error) {
			for i := range r.Batches {
				for k := range r.Batches[i].Records {
					got = append(got, r.Handle(&r.Batches[i], &r.Batches[i].Records[k], b.Name))
				}
			}
			r.Release()
		})
		return got
	}
	list := pops()
	done := make(chan error, 1)
	for _, h := range list[1:] {
		b.Pop.Ack("g", "T", h, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	brokertest.Until(t, "the offset table", func() bool { off, ok := b.Offsets.Query("g", "T", 0); return ok && off == 0 })
	brokertest.Until(t, "a checkpoint", func() bool { return b.Store.Checkpointed() >= b.Store.LogMax() })
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 6 << 30, TotalBytes: 60 << 30, UsedBytes: 54 << 30})
	if err := b.Store.DeleteExpired(); err != nil {
		t.Fatal(err)
	}
	gone := b.Store.MinOffset("T", 0)
	want := []broker.Missed{{Group: "g", Topic: "T", Messages: gone - popped}}
	if got := b.Missed(); gone <= popped || !slices.Equal(got, want) {
		t.Fatalf("messages from %d on, counted %v, want %v", gone, got, want)
	}
	c.Advance(61 * time.Second)
	want[0].Messages++
	brokertest.Until(t, "the lapse", func() bool { return slices.Equal(b.Missed(), want) })
	if at := b.Store.MaxOffset("%RETRY%g_T", 0); at > 0 {
		t.Errorf("%d messages came in its place", at)
	}
	if next := pops(); len(next) != popped || next[0].Offset != gone {
		t.Errorf("then came %v", next)
	}
	if got := b.Missed(); !slices.Equal(got, want) {
		t.Errorf("at the end %v", got)
	}
}

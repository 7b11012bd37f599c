package timer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
)

const year = 365 * 24 * time.Hour

// yearly opens a broker that takes messages for a time in a year, with topics of one queue.
func yearly(t *testing.T, o brokertest.Options, topics ...string) *brokertest.Broker {
	t.Helper()
	o.Tune = func(_ *config.Broker, s *config.Store) { s.FileReservedTime, s.TimerMaxDelaySec = 72, 400*24*3600 }
	b := brokertest.Open(t, o)
	for _, name := range topics {
		cfg := topic.New(name)
		cfg.ReadQueues, cfg.WriteQueues = 1, 1
		if err := b.Topics.Put(cfg); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// later sets the clock, as no work is due on the way, and lets what is due then be done.
func later(c *clock.Clock, d time.Duration) {
	c.Step(d)
	c.Advance(time.Second)
}

// fill writes more than two log files.
func fill(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	for range 120 {
		send(t, b, "filler", strings.Repeat("x", 20_000), "")
	}
	b.Dispatched()
}

// A message that is due in a year is there in a year, whatever becomes of the log files that
// it was in: it is moved with each of them, counted once, and delivered once.
func TestTimersOutliveTheirLogFiles(t *testing.T) {
	t.Parallel()
	c := clock.New()
	b := yearly(t, brokertest.Options{Clock: c, NearTimers: 4}, "orders", "filler", "gone")
	var want []string
	for i := range 20 {
		body := fmt.Sprintf("late-%03d", i)
		want = append(want, body)
		send(t, b, "orders", body, fmt.Sprintf("TIMER_DELAY_SEC\x01%d\x02", 365*24*3600+60*i))
		send(t, b, "gone", body, "TIMER_DELAY_SEC\x0131536000\x02")
	}
	if err := b.Admin.DeleteTopic("gone"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		fill(t, b)
		later(c, 80*time.Hour)
		fill(t, b)
		from := b.Store.LogMin()
		brokertest.Until(t, "the log files to go", func() bool { // not before a checkpoint
			if err := b.Store.DeleteExpired(); err != nil {
				t.Fatal(err)
			}
			return b.Store.LogMin() >= from+2<<20
		})
		b.Dispatched()
		if got := b.Wheel.Counts(); len(got) != 1 || got["orders"] != 20 {
			t.Fatalf("%v wait", got)
		}
		b = b.Restart().Kill()
	}
	if got := bodies(t, b, "orders"); len(got) != 0 {
		t.Fatalf("delivered too early: %v", got)
	}
	later(c, year)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered %v", got)
	}
	b = b.Restart()
	later(c, year)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered again: %v", got)
	}
	if got := b.Wheel.Counts(); len(got) != 0 {
		t.Errorf("%v still wait", got)
	}
}

// onLine is a log handler that calls f once, when the server says something.
type onLine struct {
	slog.Handler
	line string
	once *sync.Once
	f    func()
}

func (h onLine) Enabled(context.Context, slog.Level) bool { return true }
func (h onLine) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h onLine) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.line {
		h.once.Do(h.f)
	}
	return nil
}

// The power goes just when the first log file has gone: what was moved out of it, or was
// delivered from it a moment before, is durable by then, although sends are not.
func TestPowerCutWhenALogFileGoes(t *testing.T) {
	t.Parallel()
	c, fs := clock.New(), vfs.NewCrashableMem()
	var (
		cut atomic.Pointer[vfs.MemFS]
		b   *brokertest.Broker
	)
	h := onLine{line: "log file deleted", once: new(sync.Once), f: func() { cut.Store(fs.CrashClone(vfs.CrashCloneCfg{})) }}
	b = yearly(t, brokertest.Options{Clock: c, FS: fs, Log: slog.New(h)}, "orders", "filler")
	for i := range 20 {
		send(t, b, "orders", fmt.Sprintf("late-%03d", i), "TIMER_DELAY_SEC\x0131536000\x02")
	}
	for i := range 20 {
		send(t, b, "orders", fmt.Sprintf("soon-%03d", i), "TIMER_DELAY_SEC\x01288000\x02") // 80 hours
	}
	fill(t, b)
	brokertest.Until(t, "a checkpoint", func() bool { return b.Store.Checkpointed() >= b.Store.LogEnd() })
	later(c, 80*time.Hour)
	if err := b.Store.DeleteExpired(); err != nil {
		t.Fatal(err)
	}
	if cut.Load() == nil {
		t.Fatal("no log file went")
	}
	after := yearly(t, brokertest.Options{Clock: c, FS: cut.Load()})
	later(c, year)
	after.Dispatched()
	if got := bodies(t, after, "orders"); len(got) != 40 {
		t.Errorf("delivered %d of 40: %v, %v wait", len(got), got, after.Wheel.Counts())
	}
}

// A disk that can't be read for a while drops nothing: the log file stays, what is due is
// delivered later.
func TestUnreadableTimersAreTriedAgain(t *testing.T) {
	t.Parallel()
	c := clock.New()
	var broken atomic.Bool
	o := brokertest.Options{Clock: c, Wrap: func(fs *vfs.MemFS) vfs.FS {
		return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "commitlog") && broken.Load() {
				return errorfs.ErrInjected
			}
			return nil
		}))
	}}
	b := yearly(t, o, "orders", "filler")
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("late-%03d", i))
		send(t, b, "orders", want[i], "TIMER_DELAY_SEC\x0131536000\x02")
	}
	fill(t, b)
	b = b.Restart() // nothing of it is in memory
	broken.Store(true)
	if err := b.Wheel.Move(t.Context(), 1<<20); !errors.Is(err, errorfs.ErrInjected) {
		t.Errorf("moved: %v", err)
	}
	later(c, year)
	if got := b.Wheel.Counts(); got["orders"] != 20 {
		t.Fatalf("%v wait while nothing can be read", got)
	}
	broken.Store(false)
	c.Advance(2 * time.Second)
	b.Dispatched()
	if got := bodies(t, b, "orders"); !slices.Equal(got, want) {
		t.Fatalf("delivered %v, %v wait", got, b.Wheel.Counts())
	}
}

// A stop does not wait until a whole log file of timers has been moved: the file stays, and
// the rest is moved the next time.
func TestMoveEndsEarly(t *testing.T) {
	t.Parallel()
	b := yearly(t, brokertest.Options{Clock: clock.New()}, "orders")
	for i := range 320 {
		send(t, b, "orders", fmt.Sprintf("late-%03d", i), "TIMER_DELAY_SEC\x0131536000\x02")
	}
	b.Dispatched()
	end := b.Store.LogEnd()
	stopping, stop := context.WithCancel(t.Context())
	stop()
	if err := b.Wheel.Move(stopping, end); err == nil {
		t.Error("moved, though the server stops")
	}
	if moved := b.Store.LogEnd() - end; moved > end/3 { // a window of it is a fifth
		t.Errorf("%d of %d bytes were moved, though the server stops", moved, end)
	}
	b.Dispatched()
	if err := b.Wheel.Move(t.Context(), end); err != nil {
		t.Error(err)
	}
	if got := b.Wheel.Counts(); got["orders"] != 320 {
		t.Errorf("%v wait", got)
	}
}

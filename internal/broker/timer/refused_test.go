package timer_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/clock"
)

// refusals counts the lines of a log that say that something is tried again.
type refusals struct{ atomic.Int64 }

func (r *refusals) Write(line []byte) (int, error) {
	if bytes.Contains(line, []byte("tried again")) {
		r.Add(1)
	}
	return len(line), nil
}

// While the log takes nothing, all that is due is tried again each second, whatever becomes due
// meanwhile, and one line says so, not one for each message: they would fill the disk that has to
// get room.
func TestRefusedTimersSaySoOnce(t *testing.T) {
	t.Parallel()
	c := clock.New()
	var broken atomic.Bool
	var told refusals
	b := yearly(t, brokertest.Options{Clock: c, Log: slog.New(slog.NewTextHandler(&told, nil)), Wrap: func(fs *vfs.MemFS) vfs.FS {
		return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWriteAt && strings.Contains(op.Path, "commitlog") && broken.Load() {
				return errorfs.ErrInjected
			}
			return nil
		}))
	}}, "orders")
	const each = 1000
	for i := range each {
		send(t, b, "orders", fmt.Sprintf("timer-%d", i), "TIMER_DELAY_SEC\x0160\x02")
		send(t, b, "orders", fmt.Sprintf("level-%d", i), "DELAY\x015\x02") // a minute
		c.Advance(2 * time.Millisecond)
	}
	b.Dispatched()
	broken.Store(true)
	c.Advance(65 * time.Second)
	if n := told.Load(); n == 0 || n > 30 {
		t.Errorf("%d lines in seven seconds", n)
	}
	broken.Store(false)
	brokertest.Until(t, "all that was due", func() bool {
		c.Advance(time.Second)
		return b.Store.MaxOffset("orders", 0) == 2*each
	})
}

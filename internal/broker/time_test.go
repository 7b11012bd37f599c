package broker_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/clock"
)

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// with are the lines that hold a text.
func (l *lines) with(text string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.b.String()) {
		if strings.Contains(line, text) {
			list = append(list, line)
		}
	}
	return list
}

// That the machine's clock was set back is said once, at the start or when it happens: by how
// much, how long it is made up for, and what helps where that is long.
func TestAClockSetBackIsTold(t *testing.T) {
	log := &lines{}
	told := func(n int, want ...string) {
		t.Helper()
		const line = "the machine's clock was set back"
		brokertest.Until(t, "the line", func() bool { return len(log.with(line)) >= n })
		list := log.with(line)
		if len(list) != n {
			t.Fatalf("%d lines, want %d: %q", len(list), n, list)
		}
		for _, w := range want {
			if !strings.Contains(list[n-1], w) {
				t.Errorf("%q does not say %s", list[n-1], w)
			}
		}
	}
	first, second := clock.New(), clock.New()
	first.Step(2 * time.Hour)
	second.Step(time.Hour)
	b := brokertest.Open(t, brokertest.Options{Clock: first, Log: slog.New(slog.NewTextHandler(log, nil))})
	makeTopic(t, b)
	publish(t, b, "m", "")
	b.Dispatched()
	b = b.RestartAt(second)
	told(1, "ahead=59m59", "for=15h59m", "none is needed")
	second.Step(-25 * time.Hour)
	told(2, "ahead=25h59m", "for=415h5", "restart the broker")
}

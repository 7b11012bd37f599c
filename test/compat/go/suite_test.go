// Package compat runs the official Go clients against a server that is given by addresses
// alone, so that the same suite runs against Apache RocketMQ and against Bolide:
//
//	COMPAT_NAMESRV  HOST:PORT of the name server
//	COMPAT_BROKER   HOST:PORT of the broker
//	COMPAT_GRPC     HOST:PORT of the gRPC endpoint
//	COMPAT_COUNT    messages per case, 10,000 when empty
//	COMPAT_APACHE   not empty: it is Apache's server
//
// Without the first three every case is skipped. `go run ./test/compat` sets them.
package compat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type server struct {
	namesrv, broker, grpc string
	apache                bool // where docs/differences.md has a word on what a case wants
}

// target is the server under test; the case is skipped when none is given.
func target(t *testing.T) server {
	t.Helper()
	s := server{os.Getenv("COMPAT_NAMESRV"), os.Getenv("COMPAT_BROKER"), os.Getenv("COMPAT_GRPC"), os.Getenv("COMPAT_APACHE") != ""}
	if s.namesrv == "" || s.broker == "" || s.grpc == "" {
		t.Skip("no server given: set COMPAT_NAMESRV, COMPAT_BROKER and COMPAT_GRPC, or use `go run ./test/compat`")
	}
	return s
}

func messageCount() int {
	if n, err := strconv.Atoi(os.Getenv("COMPAT_COUNT")); err == nil && n > 0 {
		return n
	}
	return 10_000
}

// fresh names a topic or group that no earlier run has used.
func fresh(t *testing.T, kind string) string {
	name := strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())
	return fmt.Sprintf("%s-%s-%x", kind, name, rand.Uint32())
}

// sample is one message as it is sent: what must come out byte for byte.
type sample struct {
	seq        int
	body       []byte
	key, tag   string
	properties map[string]string
}

// newSample makes the message with this number. Sizes vary; every hundredth is over 4 KiB and
// compressible, which classic clients then compress. Bodies hold every byte value.
func newSample(seq int) sample {
	size := 8 + (seq*7919)%1500
	if seq%100 == 99 {
		size = 6000
	}
	body := make([]byte, size)
	binary.BigEndian.PutUint64(body, uint64(seq))
	random := rand.NewPCG(uint64(seq), 42)
	for i := 8; i < len(body); i++ {
		if seq%100 == 99 {
			body[i] = byte(i / 64)
		} else {
			body[i] = byte(random.Uint64())
		}
	}
	return sample{
		seq:  seq,
		body: body,
		key:  fmt.Sprintf("key-%d", seq),
		tag:  fmt.Sprintf("tag%d", seq%3),
		properties: map[string]string{
			"number": strconv.Itoa(seq),
			"text":   fmt.Sprintf("größe 消息 %d / \"quoted\" {a:1} = ; , 🚀", seq),
			"spaces": " a  b ",
		},
	}
}

// ledger counts what comes out against what went in.
type ledger struct {
	t        *testing.T
	expected int
	repeated atomic.Int64 // sends that were tried again, each of which may have made a duplicate

	mu         sync.Mutex
	seen       []int32
	left       int
	duplicates int
	wrong      int
	complete   chan struct{}
}

func newLedger(t *testing.T, expected int) *ledger {
	return &ledger{t: t, expected: expected, seen: make([]int32, expected), left: expected, complete: make(chan struct{})}
}

// received checks one delivery. properties may hold more than the sender's own.
func (l *ledger) received(body []byte, key, tag string, properties map[string]string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(body) < 8 {
		l.fail("a body of %d bytes", len(body))
		return
	}
	seq := int(binary.BigEndian.Uint64(body))
	if seq < 0 || seq >= l.expected {
		l.fail("a message numbered %d, of %d", seq, l.expected)
		return
	}
	want := newSample(seq)
	if !bytes.Equal(body, want.body) {
		l.fail("message %d: its body of %d bytes came back as %d other bytes", seq, len(want.body), len(body))
	}
	if key != want.key || tag != want.tag {
		l.fail("message %d: key %q and tag %q came back as %q and %q", seq, want.key, want.tag, key, tag)
	}
	for name, value := range want.properties {
		if properties[name] != value {
			l.fail("message %d: property %s %q came back as %q", seq, name, value, properties[name])
		}
	}
	l.seen[seq]++
	if l.seen[seq] > 1 {
		l.duplicates++
		return
	}
	if l.left--; l.left == 0 {
		close(l.complete)
	}
}

// fail reports a wrong message, but not ten thousand of them.
func (l *ledger) fail(format string, args ...any) {
	if l.wrong++; l.wrong <= 5 {
		l.t.Errorf(format, args...)
	}
}

// wait returns when every message has come at least once, and reports what is missing.
func (l *ledger) wait(limit time.Duration) {
	l.t.Helper()
	select {
	case <-l.complete:
	case <-time.After(limit):
	}
}

// check reports losses and duplicates.
func (l *ledger) check() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing []int
	for seq, n := range l.seen {
		if n == 0 {
			missing = append(missing, seq)
		}
	}
	if len(missing) > 0 {
		l.t.Errorf("%d of %d messages lost, the first: %v", len(missing), l.expected, missing[:min(5, len(missing))])
	}
	if l.duplicates > int(l.repeated.Load()) {
		l.t.Errorf("%d duplicates with %d repeated sends", l.duplicates, l.repeated.Load())
	}
	if l.wrong > 5 {
		l.t.Errorf("%d faults in all", l.wrong)
	}
	l.t.Logf("%d messages, %d duplicates, %d repeated sends", l.expected, l.duplicates, l.repeated.Load())
}

// each calls do for every number below n from a few goroutines.
func each(n, workers int, do func(i int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				do(i)
			}
		})
	}
	all.Wait()
}

// sendAll sends all samples.
func (l *ledger) sendAll(workers int, send func(sample) error) {
	each(l.expected, workers, func(i int) {
		s := newSample(i)
		l.again(i, func() error { return send(s) })
	})
}

// again sends one message until it is stored. A refused send ("broker busy" on a loaded
// machine) is tried again, and counted: the refusal may have come after it was stored.
func (l *ledger) again(seq int, send func() error) { l.againMany(seq, 1, send) }

// againMany does it for a batch of n.
func (l *ledger) againMany(seq, n int, send func() error) {
	var err error
	for range 20 {
		if err = send(); err == nil {
			return
		}
		l.repeated.Add(int64(n))
		time.Sleep(100 * time.Millisecond)
	}
	l.t.Errorf("message %d could not be sent: %v", seq, err)
}

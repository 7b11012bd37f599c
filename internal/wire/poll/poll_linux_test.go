package poll_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bolidemq/bolide/internal/wire/poll"
	"github.com/bolidemq/bolide/internal/wire/poll/polltest"
)

// limit is how long a test waits for what must happen.
const limit = 30 * time.Second

// start runs a poller for the time of a test, which must have closed its connections by
// the end, and holds that nothing is left of it.
func start(t *testing.T) *poll.Poller {
	t.Helper()
	others := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, others) })
	return polltest.Start(t)
}

// connect returns the two ends of a connection.
func connect(t testing.TB) (nc, peer *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_ = dialed.SetDeadline(time.Now().Add(limit))
	return accepted.(*net.TCPConn), dialed.(*net.TCPConn)
}

// pair is a connection that p has taken over, and its peer.
func pair(t testing.TB, p *poll.Poller) (*poll.Conn, *net.TCPConn) {
	t.Helper()
	nc, peer := connect(t)
	c, ok := p.Take(nc).(*poll.Conn)
	if !ok {
		t.Fatal("the connection was not taken over")
	}
	if c.RemoteAddr().String() != peer.LocalAddr().String() || c.LocalAddr().String() != peer.RemoteAddr().String() {
		t.Errorf("%v to %v", c.RemoteAddr(), c.LocalAddr())
	}
	return c, peer
}

// served calls each for what is read, and returns a channel with the error that ended it.
func served(c *poll.Conn, each func([]byte)) <-chan error {
	ended := make(chan error, 1)
	buf := make([]byte, 4<<10)
	c.Serve(func() bool {
		for {
			n, err := c.Read(buf)
			if n > 0 {
				each(buf[:n])
			}
			switch {
			case err == poll.ErrAgain:
				return true
			case err != nil:
				c.Close()
				ended <- err
				return false
			}
		}
	})
	return ended
}

func echo(t *testing.T, c *poll.Conn) <-chan error {
	return served(c, func(b []byte) {
		if _, err := c.Write(b); err != nil {
			t.Errorf("write: %v", err)
		}
	})
}

func wait[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(limit):
		buf := make([]byte, 1<<20)
		t.Fatalf("%s did not happen\n%s", what, buf[:runtime.Stack(buf, true)])
	}
	return v
}

// Each byte comes back, in order, whatever the sizes, on many connections at once.
func TestEcho(t *testing.T) {
	p := start(t)
	var all sync.WaitGroup
	for i := range 60 {
		c, peer := pair(t, p)
		ended := echo(t, c)
		all.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 40 {
				sent := make([]byte, 1+r.IntN([]int{20, 2000, 200_000}[r.IntN(3)]))
				for j := range sent {
					sent[j] = byte(j * (i + 1))
				}
				go peer.Write(sent)
				got := make([]byte, len(sent))
				if _, err := io.ReadFull(peer, got); err != nil || !bytes.Equal(got, sent) {
					t.Errorf("connection %d: %v", i, err)
					break
				}
			}
			peer.Close()
			if err := wait(t, "the end", ended); err != io.EOF {
				t.Errorf("connection %d ended with %v", i, err)
			}
		})
	}
	all.Wait()
}

// ask sends one byte and waits for it to come back.
func ask(t *testing.T, peer net.Conn) {
	t.Helper()
	b := []byte{7}
	if _, err := peer.Write(b); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(peer, b); err != nil {
		t.Error(err)
	}
}

// Between bursts that are far apart the leader dozes, and hears of each of them; the end of the
// poller finds it dozing.
func TestFarApart(t *testing.T) {
	p := start(t)
	one, peer := pair(t, p)
	two, other := pair(t, p)
	ends := []<-chan error{echo(t, one), echo(t, two)}
	apart := time.NewTicker(15 * time.Millisecond)
	defer apart.Stop()
	for range 20 {
		<-apart.C
		ask(t, peer)
		ask(t, other)
		ask(t, peer)
	}
	peer.Close()
	other.Close()
	for _, ended := range ends {
		if err := wait(t, "the end", ended); err != io.EOF {
			t.Error(err)
		}
	}
	<-apart.C
}

// However many connections are held up by what serves them, the others are served.
func TestHeldUp(t *testing.T) {
	p := start(t)
	free := make(chan struct{})
	var ends []<-chan error
	var peers []*net.TCPConn
	for range 30 {
		c, peer := pair(t, p)
		entered := make(chan struct{}, 1)
		ends = append(ends, served(c, func([]byte) { entered <- struct{}{}; <-free }))
		peers = append(peers, peer)
		if _, err := peer.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		wait(t, "the call", entered)
		c, other := pair(t, p)
		ends, peers = append(ends, echo(t, c)), append(peers, other)
		for range 3 {
			ask(t, other)
		}
	}
	close(free)
	for _, peer := range peers {
		peer.Close()
	}
	for _, ended := range ends {
		wait(t, "the end", ended)
	}
}

// After any silence the next request is served.
func TestAfterSilence(t *testing.T) {
	p := start(t)
	c, peer := pair(t, p)
	ended := echo(t, c)
	for _, silence := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond} {
		<-time.After(silence) // the watch rests meanwhile: what is tested is the time
		ask(t, peer)
	}
	peer.Close()
	wait(t, "the end", ended)
}

// What a peer says last is heard, with the end right behind it or a reset.
func TestLastWords(t *testing.T) {
	p := start(t)
	for i := range 300 {
		c, peer := pair(t, p)
		var got atomic.Int64
		ended := served(c, func(b []byte) { got.Add(int64(len(b))) })
		size := 1 + i*37
		if _, err := peer.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		reset := i%3 == 0
		if reset {
			_ = peer.SetLinger(0)
		}
		peer.Close()
		err := wait(t, "the end", ended)
		if !reset && (err != io.EOF || got.Load() != int64(size)) {
			t.Fatalf("%d bytes of %d, then %v", got.Load(), size, err)
		}
	}
}

// A write waits for a peer that reads late, and ends at its deadline or with the connection.
func TestWritesWait(t *testing.T) {
	p := start(t)
	big := make([]byte, 24<<20)
	for i := range big {
		big[i] = byte(i >> 8)
	}
	for name, write := range map[string]func(*poll.Conn) error{
		"one buffer": func(c *poll.Conn) error { _, err := c.Write(big); return err },
		"many buffers": func(c *poll.Conn) error {
			var b net.Buffers
			for rest := big; len(rest) > 0; {
				n := min(len(rest), 10_007)
				b, rest = append(b, rest[:n]), rest[n:]
			}
			return c.WriteBuffers(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, peer := pair(t, p)
			ended := served(c, func([]byte) {})
			wrote := make(chan error, 1)
			go func() { wrote <- write(c) }()
			got, err := io.ReadAll(io.LimitReader(peer, int64(len(big))))
			if err != nil || !bytes.Equal(got, big) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if err := wait(t, "the write", wrote); err != nil {
				t.Error(err)
			}
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			if err := write(c); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("at the deadline: %v", err)
			}
			_ = c.SetWriteDeadline(time.Time{})
			go func() { wrote <- write(c) }()
			for c.TryWrite([]byte{1}) > 0 { // until there is no room any more
				runtime.Gosched()
			}
			_ = c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)) // while it waits, or before
			if err := wait(t, "the deadline", wrote); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("at a deadline that was set meanwhile: %v", err)
			}
			_ = c.SetWriteDeadline(time.Time{})
			go func() { wrote <- write(c) }()
			c.Close()
			if err := wait(t, "the write", wrote); !errors.Is(err, net.ErrClosed) {
				t.Errorf("a write to a closed connection: %v", err)
			}
			if err := wait(t, "the end", ended); !errors.Is(err, net.ErrClosed) && err != io.EOF {
				t.Errorf("ended with %v", err)
			}
			if n := c.TryWrite([]byte{1}); n != 0 {
				t.Error("wrote to a closed connection")
			}
			peer.Close()
		})
	}
}

// Closing is told once to whoever serves the connection, and what was written arrives.
func TestClose(t *testing.T) {
	p := start(t)
	c, peer := pair(t, p)
	ended := echo(t, c)
	ask(t, peer) // by now the poller has all that it needs itself
	peer.Close()
	wait(t, "the end", ended)
	before := descriptors(t)
	for range 200 {
		c, peer := pair(t, p)
		ended := served(c, func([]byte) {})
		if n := c.TryWrite([]byte("bye")); n != 3 {
			t.Fatalf("wrote %d", n)
		}
		var first atomic.Int32
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if c.Close() == nil {
					first.Add(1)
				}
			})
		}
		if got, err := io.ReadAll(peer); string(got) != "bye" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		all.Wait()
		if first.Load() != 1 {
			t.Errorf("%d closed it", first.Load())
		}
		wait(t, "the end", ended)
		peer.Close()
	}
	deadline := time.Now().Add(limit)
	for descriptors(t) > before {
		if time.Now().After(deadline) {
			t.Fatalf("%d descriptors, %d before", descriptors(t), before)
		}
		runtime.Gosched()
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the descriptors of a process are read from /proc; runs where that is mounted:", err)
	}
	return len(all)
}

// Connections that come and go reuse each other's descriptors; none hears of another's.
func TestDescriptorsComeAgain(t *testing.T) {
	p := start(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 150 {
				c, peer := pair(t, p)
				mark := byte(i*64 + j%64)
				ended := served(c, func(b []byte) {
					for _, x := range b {
						if x != mark {
							t.Errorf("connection of %d read %d", mark, x)
						}
					}
					_, _ = c.Write(b)
				})
				b := []byte{mark}
				_, _ = peer.Write(b)
				if _, err := io.ReadFull(peer, b); err != nil {
					t.Error(err)
				}
				if j%2 == 0 {
					peer.Close()
				} else {
					c.Close()
				}
				wait(t, "the end", ended)
				peer.Close()
			}
		})
	}
	all.Wait()
}

// A panic of what serves a connection ends the poller with its reason.
func TestPanic(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	if procs := runtime.GOMAXPROCS(0); procs < 2 {
		runtime.GOMAXPROCS(2)
		defer runtime.GOMAXPROCS(procs)
	}
	p, err := poll.New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- p.Run(t.Context()) }()
	c, peer := pair(t, p)
	other, otherPeer := pair(t, p)
	ended := served(other, func([]byte) {})
	served(c, func([]byte) { panic("too much") })
	if _, err := peer.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, "the end of the poller", ran); err == nil || !strings.Contains(err.Error(), "too much") {
		t.Errorf("ended with %v", err)
	}
	other.Close() // as a server does that stops
	wait(t, "the end of the other", ended)
	peer.Close()
	otherPeer.Close()
}

// Where there is no poller a connection stays as it is.
func TestNoPoller(t *testing.T) {
	var none *poll.Poller
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if none.Take(a) != a {
		t.Error("another connection")
	}
	if start(t).Take(a) != a {
		t.Error("something was taken over that is no socket")
	}
}

// What was looked at before the connection was taken over is read first.
func TestHead(t *testing.T) {
	p := start(t)
	nc, peer := connect(t)
	if _, err := peer.Write([]byte(" world")); err != nil {
		t.Fatal(err)
	}
	c := p.Take(&looked{TCPConn: nc, head: []byte("hello")}).(*poll.Conn)
	var got []byte
	ended := served(c, func(b []byte) { got = append(got, b...) })
	peer.Close()
	if err := wait(t, "the end", ended); err != io.EOF || string(got) != "hello world" {
		t.Errorf("%q, %v", got, err)
	}
}

type looked struct {
	*net.TCPConn
	head []byte
}

func (l *looked) TCP() *net.TCPConn { return l.TCPConn }
func (l *looked) Head() []byte      { return l.head }

// BenchmarkLone is a request at a time, as a quiet server gets them.
func BenchmarkLone(b *testing.B) {
	c, peer := pair(b, polltest.Start(b))
	ended := served(c, func(x []byte) { c.TryWrite(x) })
	x := []byte{1}
	for b.Loop() {
		_, _ = peer.Write(x)
		_, _ = io.ReadFull(peer, x)
	}
	peer.Close()
	<-ended
}

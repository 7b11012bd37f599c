package poll

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func startPoller(t *testing.T) (*Poller, func()) {
	t.Helper()
	if procs := runtime.GOMAXPROCS(0); procs < 2 {
		runtime.GOMAXPROCS(2)
		t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	}
	p, err := New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { p.Run(ctx); close(ended) }()
	return p, func() { cancel(); <-ended }
}

func pair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return
}

// echoes serves c as an echo until it ends.
func echoes(c *Conn, ended chan<- error) func() bool {
	var b [4096]byte
	return func() bool {
		for {
			n, err := c.Read(b[:])
			if n > 0 {
				if _, err := c.Write(b[:n]); err != nil {
					c.Close()
					ended <- err
					return false
				}
			}
			if err == ErrAgain {
				return true
			}
			if err != nil {
				c.Close()
				ended <- err
				return false
			}
		}
	}
}

type headed struct {
	*net.TCPConn
	head []byte
}

func (h *headed) TCP() *net.TCPConn { return h.TCPConn }
func (h *headed) Head() []byte      { b := h.head; h.head = nil; return b }
func (h *headed) Read(b []byte) (int, error) {
	if len(h.head) > 0 {
		n := copy(b, h.head)
		h.head = h.head[n:]
		return n, nil
	}
	return h.TCPConn.Read(b)
}

// A connection that is handed over after the poller has ended goes on without it, and must
// not lose what was looked at.
func TestHeadStaysWhenRefused(t *testing.T) {
	p, stop := startPoller(t)
	stop()
	s, c := pair(t)
	got := p.Take(&headed{s.(*net.TCPConn), []byte("first")})
	if _, polled := got.(*Conn); polled {
		t.Fatal("taken")
	}
	go func() { c.Write([]byte(" then")); c.(*net.TCPConn).CloseWrite() }()
	b, _ := io.ReadAll(got)
	if string(b) != "first then" {
		t.Errorf("read %q", b)
	}
}

// Close between Take and Serve: Serve must not touch the descriptor, whose number may be
// another connection's by then.
func TestServeAfterClose(t *testing.T) {
	p, stop := startPoller(t)
	defer stop()
	s, _ := pair(t)
	a := p.Take(s).(*Conn)
	a.Close() // the server shuts down, say; the descriptor is closed
	// Another one gets the number.
	s2, client2 := pair(t)
	var b *Conn
	for range 50 {
		b = p.Take(s2).(*Conn)
		if b.fd == a.fd {
			break
		}
		s2, client2 = pair(t)
	}
	if b.fd != a.fd {
		t.Skip("the system did not give the number again; runs where it does")
	}
	gone := make(chan error, 1)
	a.Serve(func() bool { var x [1]byte; _, err := a.Read(x[:]); gone <- err; return false })
	if err := <-gone; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	ended := make(chan error, 1)
	b.Serve(echoes(b, ended))
	client2.SetDeadline(time.Now().Add(30 * time.Second))
	client2.Write([]byte("hello"))
	var x [5]byte
	if _, err := io.ReadFull(client2, x[:]); err != nil {
		t.Errorf("the connection that got the number is dead: %v", err)
	}
}

// Serve and Close at the same time: what open and Shutdown do.
func TestServeCloseRace(t *testing.T) {
	p, stop := startPoller(t)
	defer stop()
	for range 200 {
		s, _ := pair(t)
		c := p.Take(s).(*Conn)
		ended := make(chan error, 1)
		var wg sync.WaitGroup
		wg.Go(func() { c.Close() })
		c.Serve(echoes(c, ended))
		wg.Wait()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("its end was not told")
		}
	}
}

// A close is told while the poller ends, and after that.
func TestCloseWhileRunEnds(t *testing.T) {
	for range 100 {
		p, stop := startPoller(t)
		s, _ := pair(t)
		c := p.Take(s).(*Conn)
		ended := make(chan error, 1)
		c.Serve(echoes(c, ended))
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		c.Close()
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			t.Fatal("its end was not told")
		}
		<-stopped
	}
}

// Echo with all sizes on connections that end in every way: each is served by one at a time,
// and its end is told.
func TestComeAndGo(t *testing.T) {
	p, stop := startPoller(t)
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	var open sync.WaitGroup
	var ends atomic.Int64
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			c := p.Take(nc).(*Conn)
			open.Add(1)
			e := make(chan error, 4)
			serve := echoes(c, e)
			busy := new(atomic.Int32)
			c.Serve(func() bool {
				if busy.Add(1) != 1 {
					t.Error("two serve")
				}
				more := serve()
				busy.Add(-1)
				if !more {
					ends.Add(1)
					open.Done()
				}
				return more
			})
		}
	}()
	var clients sync.WaitGroup
	var rounds atomic.Int64
	for k := range 24 {
		clients.Go(func() {
			for i := range 6 {
				c, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Error(err)
					return
				}
				c.SetDeadline(time.Now().Add(60 * time.Second))
				for j := range 20 {
					size := 1 + (k*7919+i*104729+j*1299709)%(20<<10)
					if (k+j)%11 == 0 {
						size *= 60
					}
					data := []byte(strings.Repeat("x", size))
					go c.Write(data)
					if _, err := io.ReadFull(c, make([]byte, size)); err != nil {
						t.Errorf("echo of %d: %v", size, err)
						c.Close()
						return
					}
					rounds.Add(1)
				}
				switch i % 3 {
				case 0:
					c.(*net.TCPConn).SetLinger(0)
					c.Write([]byte("x"))
				case 1:
					c.Write([]byte("last"))
					c.(*net.TCPConn).CloseWrite()
					io.ReadAll(c)
				}
				c.Close()
			}
		})
	}
	clients.Wait()
	l.Close()
	done := make(chan struct{})
	go func() { open.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Error("connections that have ended were not told")
	}
	t.Log(rounds.Load(), "echoes", ends.Load(), "ends")
	stop()
}

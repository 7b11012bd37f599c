package transport

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestInABubble runs a server and a client in simulated time: two minutes of idleness and
// a call that waits for an hour pass at once.
func TestInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewPipeNetwork()
		l, err := network.Listen("10.0.0.1:10911")
		if err != nil {
			t.Fatal(err)
		}
		s := NewServer(Options{Handler: func(r *Request) {
			answer := r.Responder()
			time.AfterFunc(time.Minute, func() { answer.Reply(0, "", nil, nil) })
		}})
		go s.Serve(t.Context(), l)
		c := NewClient(ClientOptions{Dial: network.Dial})
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		start := time.Now()
		if _, err := c.Call(ctx, "10.0.0.1:10911", 11, nil, nil); err != nil || time.Since(start) != time.Minute {
			t.Error(err, time.Since(start))
		}
		if _, err := c.Call(context.Background(), "10.0.0.1:10911", 11, nil, nil); !errors.Is(err, ErrTimeout) {
			t.Error(err)
		}
		conn, _ := c.Conn(ctx, "10.0.0.1:10911")
		if got := conn.RemoteAddr().String(); got != "10.0.0.1:10911" {
			t.Error(got)
		}
		time.Sleep(5 * time.Minute)
		if !conn.Closed() {
			t.Error("an idle connection is open")
		}
		if _, err := c.Call(ctx, "10.0.0.1:10911", remoting.ReqPullMessage, nil, nil); err != nil {
			t.Error(err)
		}
		c.Close()
		s.Shutdown(ctx)
	})
}

func TestPipeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewPipeNetwork()
		l, _ := network.Listen("127.0.0.1:0")
		go l.Accept()
		c, err := network.Dial(context.Background(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		start := time.Now()
		if _, err := c.Read(make([]byte, 1)); err == nil || time.Since(start) != time.Second {
			t.Error(err, time.Since(start))
		}
		c.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := c.Write(make([]byte, 1<<20)); err == nil || n != pipeBuffer {
			t.Error(n, err)
		}
		c.Close()
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("read of a closed pipe")
		}
		l.Close()
		if _, err := network.Dial(context.Background(), l.Addr().String()); err == nil {
			t.Error("dialled a closed listener")
		}
	})
}

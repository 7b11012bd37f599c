package bolidetest_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/bolidemq/bolide/bolidetest"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// greeted is a connection that gRPC is spoken on: the server has taken it in.
func greeted(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// wantCut reads what is left and fails if the connection is still open in the end.
func wantCut(t *testing.T, conn net.Conn) {
	t.Helper()
	for buf := make([]byte, 4096); ; {
		_, err := conn.Read(buf)
		if e, ok := err.(net.Error); ok && e.Timeout() {
			t.Fatal("the connection is still open")
		}
		if err != nil {
			return
		}
	}
}

// waiting is what comes of a request that waits for a message of a topic that has none.
func (c *client) waiting(topic string) <-chan error {
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	go func() {
		defer cancel()
		_, err := c.c.Call(ctx, c.addr, remoting.ReqPopMessage, &remoting.PopMessageRequest{
			ConsumerGroup: "g", Topic: topic, QueueID: -1, MaxMsgNums: 1, InvisibleTime: 60_000,
			PollTime: 30_000, BornTime: time.Now().UnixMilli(), ExpType: "TAG", Exp: "*",
		}, nil)
		ended <- err
	}()
	return ended
}

func TestDisconnect(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c, conn := connect(t, srv.Broker()), greeted(t, srv.GRPC())
	ended := c.waiting("orders")
	for {
		srv.Disconnect() // until the request was there
		select {
		case err := <-ended:
			if err == nil {
				t.Error("a request was answered over a connection that is cut")
			}
		case <-time.After(10 * time.Millisecond):
			continue
		}
		break
	}
	wantCut(t, conn)
	greeted(t, srv.GRPC())
	c.send("orders", "after")
}

func TestFillDisk(t *testing.T) {
	t.Parallel()
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	srv.CreateGroup("g", 3) // a new one would have to be stored
	connect(t, srv.Broker()).send("orders", "before")
	for _, between := range []func(){func() {}, srv.Restart, srv.Restart} {
		srv.FillDisk()
		between()
		c := connect(t, srv.Broker())
		for range 2 {
			if a := c.trySend("orders", "while full"); a.Code != remoting.ResServiceNotAvailable {
				t.Errorf("on a full disk: %s: %s", remoting.ResponseName(a.Code), a.Remark)
			}
		}
		if got := c.pop("orders", time.Minute, 10*time.Second); len(got) != 1 {
			t.Errorf("received on a full disk: %v", got)
		}
		srv.FreeDisk()
		c.send("orders", "after")
	}
	srv.FillDisk() // and it ends well
}

// What an application goes through that must lose nothing.
func Example_faults() {
	var t *testing.T // of the test
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")

	// Start the application with srv.GRPC() as its endpoint, have it send.

	srv.Disconnect() // it connects again and goes on

	srv.Restart() // it waits until the server is there again

	srv.FillDisk() // its sends fail, and it says so
	srv.FreeDisk()

	// All that it was told is stored is there.
}

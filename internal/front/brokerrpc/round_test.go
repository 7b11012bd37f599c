package brokerrpc

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// A command that waits for a commit, behind a quick request in the same read, is not served
// within the round that the quick one has opened: what it waits for would be held back until
// that ends.
func TestCommandBehindQuickRequest(t *testing.T) {
	n := newNode(t)
	n.topic("T", 2)
	n.send("T", 0, "x", "")
	n.Groups.GetOrCreate("g")
	front := New(Options{Broker: n.Broker, Log: slog.New(slog.DiscardHandler)})
	server := transport.NewServer(transport.Options{Handler: front.Handle, Round: n.Broker, OnClose: front.Closed})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(context.Background(), l) }()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(30 * time.Second))
	b := remoting.AppendRequest(nil, remoting.ReqSendMessageV2, 1, 0, sendHeader("T", 0, ""), []byte("y"))
	b = remoting.AppendRequest(b, remoting.ReqInvokeBrokerToResetOffset, 2, 0, &remoting.InvokeBrokerToResetOffsetRequest{Group: "g", Topic: "T", Timestamp: 1, IsForce: true}, nil)
	c.Write(b)
	for range 2 {
		var head [4]byte
		if _, err := io.ReadFull(c, head[:]); err != nil {
			t.Error(err)
			break
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		io.ReadFull(c, frame)
		var r remoting.Command
		if err := r.Parse(frame); err != nil || r.Code != remoting.ResSuccess {
			t.Error(err, r.Code, r.Remark)
		}
	}
	c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	server.Shutdown(ctx)
	<-ended
}

//go:build unix

package brokerrpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// benchServer is a whole broker on the disk and on TCP, as in production.
func benchServer(b *testing.B) (addr string, br *broker.Broker) {
	b.Helper()
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	br, err := broker.Open(broker.Options{FS: vfs.Default, Dir: b.TempDir(), Broker: config.NewLive(bc), StoreConfig: config.NewLive(sc),
		StoreHost: netip.MustParseAddrPort("127.0.0.1:10911")})
	if err != nil {
		b.Fatal(err)
	}
	front := New(Options{Broker: br})
	group := lifecycle.New(slog.New(slog.DiscardHandler))
	for _, l := range br.Loops() {
		group.Go(l.Name, l.Run)
	}
	server := transport.NewServer(transport.Options{Handler: front.Handle, OnClose: front.Closed})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	group.Go("serve", func(ctx context.Context) error { return server.Serve(ctx, l) })
	b.Cleanup(func() {
		br.Quiesce()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		server.Shutdown(ctx)
		group.Stop()
		br.Close()
	})
	if err := br.Topics.Put(&topic.Config{Name: "T", ReadQueues: 8, WriteQueues: 8, Perm: 6, FilterType: topic.SingleTag}); err != nil {
		b.Fatal(err)
	}
	return l.Addr().String(), br
}

// frames is a peer that writes ready-made frames and counts answers: it costs little, so
// the process's CPU time is nearly the server's.
type frames struct {
	net.Conn
	buf  []byte
	have int
}

// answers reads n whole answers and returns how many bytes they had.
func (f *frames) answers(b *testing.B, n int) (bytes int) {
	for n > 0 {
		for f.have >= 4 {
			size := int(binary.BigEndian.Uint32(f.buf)) + 4
			if f.have < size {
				break
			}
			copy(f.buf, f.buf[size:f.have])
			f.have -= size
			bytes += size
			if n--; n == 0 {
				return bytes
			}
		}
		if f.have == len(f.buf) {
			f.buf = append(f.buf, make([]byte, len(f.buf)+1<<20)...)
		}
		m, err := f.Read(f.buf[f.have:])
		if err != nil && err != io.EOF {
			b.Fatal(err)
		}
		f.have += m
	}
	return bytes
}

func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func sendFrames(n int, body []byte) []byte {
	var out []byte
	for i := range n {
		h := sendHeader("T", int32(i%8), fmt.Sprintf("UNIQ_KEY\x017F000001000%05d2A139A55690EE7C8%04d\x02WAIT\x01true\x02TAGS\x01TagA\x02", i, i))
		out = remoting.AppendRequest(out, remoting.ReqSendMessageV2, int32(i), 0, h, body)
	}
	return out
}

// BenchmarkSend is one connection with 32 sends in flight, 1 KiB each.
func BenchmarkSend(b *testing.B) {
	addr, _ := benchServer(b)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	peer := &frames{Conn: nc, buf: make([]byte, 64<<10)}
	const batch = 32
	out := sendFrames(batch, make([]byte, 1024))
	began := cpu()
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; i += batch {
		if _, err := nc.Write(out); err != nil {
			b.Fatal(err)
		}
		peer.answers(b, batch)
	}
	b.StopTimer()
	b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// BenchmarkPull reads a backlog from all queues in turn, 32 messages of 1 KiB an answer; an operation is one
// message.
func BenchmarkPull(b *testing.B) {
	addr, br := benchServer(b)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	peer := &frames{Conn: nc, buf: make([]byte, 64<<10)}
	const backlog = 20000
	out := sendFrames(32, make([]byte, 1024))
	for range backlog / 32 {
		if _, err := nc.Write(out); err != nil {
			b.Fatal(err)
		}
		peer.answers(b, 32)
	}
	for br.Store.MaxOffset("T", 0) < backlog/8 {
		time.Sleep(time.Millisecond)
	}
	began := cpu()
	b.ReportAllocs()
	b.ResetTimer()
	offset, queue := int64(0), int32(0)
	var ask []byte
	for i := 0; i < b.N; i += 32 {
		ask = remoting.AppendRequest(ask[:0], remoting.ReqPullMessage, int32(i), 0, pullHeader("g", "T", queue, offset), nil)
		if _, err := nc.Write(ask); err != nil {
			b.Fatal(err)
		}
		peer.answers(b, 1)
		if queue++; queue == 8 {
			queue = 0
			if offset += 32; offset+32 > backlog/8 {
				offset = 0
			}
		}
	}
	b.StopTimer()
	b.ReportMetric(float64((cpu()-began).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

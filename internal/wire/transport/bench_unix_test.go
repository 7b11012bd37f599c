//go:build unix

package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// The benchmark's server is a process of its own (this test binary again), so that its
// CPU time can be told from the peer's. It answers code 28 with the CPU time it has used.

const (
	benchServer = "TRANSPORT_BENCH_SERVER"
	benchCPU    = "cpu-ns/op"

	// benchProfile names a file for the server's CPU profile.
	benchProfile = "TRANSPORT_BENCH_PROFILE"
)

func init() {
	if mode := os.Getenv(benchServer); mode != "" {
		serveBench(mode)
		os.Exit(0)
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// serveBench answers sends as a broker would: at once on the reader ("inline"), or from
// another goroutine in batches, as the log's writer does ("batches"); or it answers with
// 32 KiB of records ("records").
func serveBench(mode string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	answer := &remoting.SendMessageResponse{MsgID: "C0A8000100002A9F000000000000ABCD", QueueID: 3, QueueOffset: 123456,
		TransactionID: "C0A8000100002A9F3B1C2D3E4F500001", Region: "DefaultRegion", TraceOn: "true"}
	var mu sync.Mutex
	var waiting []Responder
	wake := make(chan bool, 1)
	go func() {
		var batch []Responder
		for range wake {
			mu.Lock()
			batch, waiting = waiting, batch[:0]
			mu.Unlock()
			for _, r := range batch {
				r.Reply(0, "", answer, nil)
			}
		}
	}()
	store := make([]byte, 32<<10)
	header := &remoting.PullMessageResponse{NextBeginOffset: 32, MaxOffset: 200000}
	h := sync.Pool{New: func() any { return &remoting.SendMessageRequest{V2: true} }}
	s := NewServer(Options{Handler: func(r *Request) {
		if r.Code == remoting.ReqGetBrokerRuntimeInfo {
			r.Responder().Reply(0, strconv.FormatInt(int64(cpuTime()), 10), nil, nil)
			return
		}
		send := h.Get().(*remoting.SendMessageRequest)
		if err := r.Decode(send); err != nil {
			panic(err)
		}
		h.Put(send)
		switch mode {
		case "inline":
			r.Responder().Reply(0, "", answer, nil)
		case "records":
			r.Responder().ReplyRecords(0, "FOUND", header, [][]byte{store}, nil)
		default:
			mu.Lock()
			waiting = append(waiting, r.Responder())
			mu.Unlock()
			select {
			case wake <- true:
			default:
			}
		}
	}})
	if f, err := os.Create(os.Getenv(benchProfile)); err == nil {
		pprof.StartCPUProfile(f)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		pprof.StopCPUProfile()
		os.Exit(0)
	}()
	fmt.Println(l.Addr())
	s.Serve(context.Background(), l)
}

// benchPeer keeps inFlight requests on a connection with as little work of its own as
// possible: it reads lengths only and answers n responses with n requests in one write.
type benchPeer struct {
	c net.Conn
	r *bufio.Reader
}

func (p *benchPeer) cpu(b *testing.B) time.Duration {
	p.c.Write(remoting.AppendRequest(nil, remoting.ReqGetBrokerRuntimeInfo, 1, 0, nil, nil))
	var head [4]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		b.Fatal(err)
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	io.ReadFull(p.r, frame)
	var c remoting.Command
	if err := c.Parse(frame); err != nil {
		b.Fatal(err)
	}
	n, _ := strconv.ParseInt(c.Remark, 10, 64)
	return time.Duration(n)
}

func (p *benchPeer) run(n, inFlight int, frames []byte, size int) error {
	sent := min(n, inFlight)
	if _, err := p.c.Write(frames[:sent*size]); err != nil {
		return err
	}
	for got := 0; got < n; {
		batch := 0
		for batch == 0 || p.buffered() {
			head, err := p.r.Peek(4)
			if err != nil {
				return err
			}
			if _, err := p.r.Discard(4 + int(binary.BigEndian.Uint32(head))); err != nil {
				return err
			}
			batch++
		}
		got += batch
		if batch = min(batch, n-sent); batch > 0 {
			sent += batch
			if _, err := p.c.Write(frames[:batch*size]); err != nil {
				return err
			}
		}
	}
	return nil
}

// buffered reports whether a whole frame is in the buffer.
func (p *benchPeer) buffered() bool {
	have := p.r.Buffered()
	if have < 4 {
		return false
	}
	head, _ := p.r.Peek(4)
	return have >= 4+int(binary.BigEndian.Uint32(head))
}

func BenchmarkServer(b *testing.B) {
	for _, mode := range []string{"inline", "batches", "records"} {
		for _, inFlight := range []int{1, 32} {
			b.Run(fmt.Sprintf("%s/2x%d", mode, inFlight), func(b *testing.B) { benchServerMode(b, mode, inFlight) })
		}
	}
}

func benchServerMode(b *testing.B, mode string, inFlight int) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchServer+"="+mode)
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer cmd.Wait()
	defer in.Close()
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	h := &remoting.SendMessageRequest{V2: true, ProducerGroup: "bench-producer", Topic: "BenchTopic", DefaultTopic: "TBW102",
		DefaultTopicQueueNums: 4, QueueID: 3, BornTimestamp: 1764400000000,
		Properties: "UNIQ_KEY\x01C0A8000100002A9F3B1C2D3E4F500001\x02WAIT\x01true\x02TAGS\x01tag\x02KEYS\x01key-17\x02", BrokerName: "broker-a"}
	frame := remoting.AppendRequest(nil, remoting.ReqSendMessageV2, 12345, 0, h, []byte(strings.Repeat("x", 1024)))
	frames := []byte(strings.Repeat(string(frame), inFlight))
	var peers []*benchPeer
	for range 2 {
		c, err := net.Dial("tcp", strings.TrimSpace(addr))
		if err != nil {
			b.Fatal(err)
		}
		defer c.Close()
		peers = append(peers, &benchPeer{c, bufio.NewReaderSize(c, 64<<10)})
	}
	before := peers[0].cpu(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, p := range peers {
		wg.Go(func() {
			if err := p.run(b.N/2+b.N%2*i, inFlight, frames, len(frame)); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(peers[0].cpu(b)-before)/float64(b.N), benchCPU)
}

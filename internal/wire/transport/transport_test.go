package transport

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"go.uber.org/goleak"

	"github.com/bolidemq/bolide/internal/wire/poll/polltest"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(polltest.Twice{M: m}) }

const patience = 20 * time.Second

// serve runs a server on a free port of the loopback interface until the test ends.
func serve(t testing.TB, o Options) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Poller = polltest.Poller(t)
	s := NewServer(o)
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		s.Shutdown(ctx)
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func dialer(t testing.TB, o ClientOptions) *Client {
	c := NewClient(o)
	t.Cleanup(c.Close)
	return c
}

// echo answers with the request's fields and body.
func echo(r *Request) {
	var p remoting.Pairs
	if err := r.Decode(&p); err != nil {
		panic(err)
	}
	r.Responder().Reply(remoting.ResSuccess, "", &p, r.Body)
}

func TestCall(t *testing.T) {
	_, addr := serve(t, Options{Handler: echo})
	c := dialer(t, ClientOptions{})
	ctx := context.Background()
	for i := range 3 {
		body := []byte(strings.Repeat("x", i*100000))
		r, err := c.Call(ctx, addr, 10, &remoting.Pairs{{Name: "a", Value: "b"}}, body)
		if err != nil {
			t.Fatal(err)
		}
		if a, _ := r.Ext.Get("a"); r.Code != 0 || a != "b" || string(r.Body) != string(body) {
			t.Fatalf("%d, %q, %d bytes", r.Code, a, len(r.Body))
		}
	}
}

// TestCallsShareAConnection sends many calls at once; each gets its own answer, though
// they come in another order.
func TestCallsShareAConnection(t *testing.T) {
	var opened atomic.Int32
	var held []Responder
	var mu sync.Mutex
	const n = 500
	_, addr := serve(t, Options{OnOpen: func(*Conn) { opened.Add(1) }, Handler: func(r *Request) {
		mu.Lock()
		defer mu.Unlock()
		if held = append(held, r.Responder()); len(held) < n {
			return
		}
		all := held
		go func() {
			for i := len(all) - 1; i >= 0; i-- {
				all[i].Reply(int32(i), "", nil, nil)
			}
		}()
	}})
	c := dialer(t, ClientOptions{Options: Options{Limits: Limits{CallTimeout: patience}}})
	var wg sync.WaitGroup
	var codes sync.Map
	for range n {
		wg.Go(func() {
			r, err := c.Call(context.Background(), addr, 1, nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			codes.Store(r.Code, true)
		})
	}
	wg.Wait()
	count := 0
	codes.Range(func(any, any) bool { count++; return true })
	if count != n || opened.Load() != 1 {
		t.Errorf("%d answers over %d connections", count, opened.Load())
	}
}

func TestReplyRecords(t *testing.T) {
	for _, size := range []int{10, 3000, 200000, 3000000} {
		store := make([]byte, 7*size)
		for i := range store {
			store[i] = byte(i * 7)
		}
		released := make(chan bool, 10)
		_, addr := serve(t, Options{Handler: func(r *Request) {
			bodies := [][]byte{store[:size], store[size : 2*size], nil, store[3*size : 4*size : 4*size], store[4*size : 5*size]}
			r.Responder().ReplyRecords(0, "", nil, bodies, func() { released <- true })
		}})
		c := dialer(t, ClientOptions{})
		r, err := c.Call(context.Background(), addr, 11, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		want := string(store[:2*size]) + string(store[3*size:5*size])
		if string(r.Body) != want {
			t.Errorf("size %d: body of %d bytes is not what was sent", size, len(r.Body))
		}
		<-released
		if r, err = c.Call(context.Background(), addr, 11, nil, nil); err != nil || string(r.Body) != want {
			t.Errorf("size %d: second answer: %v", size, err)
		}
	}
}

func TestServerCallsClient(t *testing.T) {
	back := make(chan string, 1)
	_, addr := serve(t, Options{Handler: func(r *Request) {
		conn, answer := r.Conn, r.Responder()
		err := conn.CallAsync(220, nil, []byte("ping"), 0, func(c *remoting.Command, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			answer.Reply(0, "", nil, c.Body)
		})
		if err != nil {
			t.Error(err)
		}
		if err := conn.Oneway(40, nil, []byte("told")); err != nil {
			t.Error(err)
		}
	}})
	c := dialer(t, ClientOptions{Options: Options{Handler: func(r *Request) {
		if r.IsOneway() {
			back <- string(r.Body)
			return
		}
		r.Responder().Reply(0, "", nil, append([]byte("pong "), r.Body...))
	}}})
	r, err := c.Call(context.Background(), addr, 1, nil, nil)
	if err != nil || string(r.Body) != "pong ping" {
		t.Fatal(r, err)
	}
	if got := <-back; got != "told" {
		t.Error(got)
	}
}

func TestCallDeadlines(t *testing.T) {
	_, addr := serve(t, Options{Handler: func(*Request) {}})
	c := dialer(t, ClientOptions{Options: Options{Limits: Limits{CallTimeout: 30 * time.Millisecond}}})
	if _, err := c.Call(context.Background(), addr, 1, nil, nil); !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	if _, err := c.Call(ctx, addr, 1, nil, nil); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	ctx2, cancel2 := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel2)
	if _, err := c.Call(ctx2, addr, 1, nil, nil); !errors.Is(err, context.Canceled) && !errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
	conn, _ := c.Conn(context.Background(), addr)
	if n := len(conn.mu.calls); n != 0 {
		t.Errorf("%d calls still wait", n)
	}
}

func TestClientReconnects(t *testing.T) {
	s, addr := serve(t, Options{Handler: echo})
	c := dialer(t, ClientOptions{})
	ctx := context.Background()
	if _, err := c.Call(ctx, addr, 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	conn, _ := c.Conn(ctx, addr)
	closed := make(chan bool)
	conn.OnClose(func() { close(closed) })
	s.Conns()[0].Close()
	<-closed
	if _, err := c.Call(ctx, addr, 1, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(ctx, "127.0.0.1:1", 1, nil, nil); err == nil {
		t.Error("a call to nobody succeeded")
	}
}

// TestClosingFailsCalls holds that calls in flight end when the connection does.
func TestClosingFailsCalls(t *testing.T) {
	_, addr := serve(t, Options{Handler: func(r *Request) { r.Conn.Close() }})
	c := dialer(t, ClientOptions{Options: Options{Limits: Limits{CallTimeout: patience}}})
	if _, err := c.Call(context.Background(), addr, 1, nil, nil); err == nil || errors.Is(err, ErrTimeout) {
		t.Error(err)
	}
}

func TestUnknownRequestsAreRefused(t *testing.T) {
	_, addr := serve(t, Options{})
	r, err := dialer(t, ClientOptions{}).Call(context.Background(), addr, 3442, nil, nil)
	if err != nil || r.Code != remoting.ResRequestCodeNotSupported || r.Remark != " request type 3442 not supported" {
		t.Error(r, err)
	}
}

// peer is a raw connection that says what a test wants it to say.
type peer struct {
	net.Conn
	r *bufio.Reader
	t *testing.T
}

func dialPeer(t *testing.T, addr string) *peer {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(patience))
	return &peer{c, bufio.NewReader(c), t}
}

func (p *peer) send(b []byte) {
	p.t.Helper()
	if _, err := p.Write(b); err != nil {
		p.t.Fatal(err)
	}
}

// next reads a frame; nil when the connection ended.
func (p *peer) next() *remoting.Command {
	p.t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(p.r, head[:]); err != nil {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			p.t.Fatal("nothing came and nothing ended")
		}
		return nil
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(p.r, frame); err != nil {
		p.t.Fatal(err)
	}
	c := new(remoting.Command)
	if err := c.Parse(frame); err != nil {
		p.t.Fatal(err)
	}
	return c
}

func request(opaque int32, body string) []byte {
	return remoting.AppendRequest(nil, 10, opaque, 0, nil, []byte(body))
}

// TestHostilePeers holds that bytes that are no frames end their connection and nothing else.
func TestHostilePeers(t *testing.T) {
	_, addr := serve(t, Options{Handler: echo})
	other := dialPeer(t, addr)
	for name, bytes := range map[string]string{
		"HTTP":              "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"TLS":               "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		"negative length":   "\xff\xff\xff\xff\x00\x00\x00\x00",
		"length 0":          "\x00\x00\x00\x00",
		"length 3":          "\x00\x00\x00\x03\x00\x00\x00",
		"17 MiB":            "\x01\x10\x00\x00\x00",
		"header too long":   "\x00\x00\x00\x06\x00\x00\x00\x10{}",
		"unknown encoding":  "\x00\x00\x00\x06\x07\x00\x00\x02{}",
		"no JSON":           "\x00\x00\x00\x06\x00\x00\x00\x02xx",
		"short binary":      "\x00\x00\x00\x06\x01\x00\x00\x02xx",
		"code of 40 digits": "\x00\x00\x00\x34\x00\x00\x00\x30{\"code\":1000000000000000000000000000000000000000}",
	} {
		p := dialPeer(t, addr)
		p.send(request(1, "before"))
		p.send([]byte(bytes))
		if c := p.next(); c == nil || string(c.Body) != "before" {
			// The answer may be lost with the connection, nothing else may come.
			if c != nil {
				t.Errorf("%s: %v", name, c)
			}
			continue
		}
		if c := p.next(); c != nil {
			t.Errorf("%s: answered %v", name, c)
		}
	}
	other.send(request(2, "still here"))
	if c := other.next(); c == nil || string(c.Body) != "still here" {
		t.Error("another connection noticed")
	}
}

// TestFramesInPieces sends frames byte by byte and many at once.
func TestFramesInPieces(t *testing.T) {
	_, addr := serve(t, Options{Handler: echo})
	p := dialPeer(t, addr)
	for _, b := range request(1, "slow") {
		p.send([]byte{b})
	}
	if c := p.next(); c.Opaque != 1 || string(c.Body) != "slow" {
		t.Error(c)
	}
	var many []byte
	for i := range 300 {
		many = append(many, request(int32(i), strings.Repeat("y", i*i%5000))...)
	}
	go p.Write(many)
	for i := range 300 {
		if c := p.next(); c.Opaque != int32(i) || len(c.Body) != i*i%5000 {
			t.Fatalf("%d: %d, %d bytes", i, c.Opaque, len(c.Body))
		}
	}
}

// TestSlowReader holds that a peer that sends and never reads is first no longer read,
// with bounded memory, and then cut, while others go on.
func TestSlowReader(t *testing.T) {
	var served atomic.Int32
	answer := make([]byte, 256<<10)
	_, addr := serve(t, Options{
		Limits: Limits{Stall: 300 * time.Millisecond, UnsentPause: 1 << 20},
		Handler: func(r *Request) {
			served.Add(1)
			r.Responder().ReplyRecords(0, "", nil, [][]byte{answer}, nil)
		}})
	p := dialPeer(t, addr)
	go func() {
		for i := range int32(1 << 20) {
			if _, err := p.Write(request(i, "")); err != nil {
				return
			}
		}
	}()
	c := dialer(t, ClientOptions{})
	if _, err := c.Call(context.Background(), addr, 10, nil, nil); err != nil {
		t.Error(err)
	}
	// The peer reads nothing until it is cut; its read then ends in what was on the way.
	deadline := time.Now().Add(patience)
	for {
		p.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := p.Write([]byte{0}); err != nil && !strings.Contains(err.Error(), "timeout") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("never cut")
		}
	}
	// Sockets hold some MiB; what we hold beyond is the bound.
	if n := served.Load(); n > 200 {
		t.Errorf("%d requests of a peer that does not read were served", n)
	}
}

// TestUnsentIsBounded pushes to a peer that does not read.
func TestUnsentIsBounded(t *testing.T) {
	s, addr := serve(t, Options{Limits: Limits{Unsent: 1 << 20, Stall: patience}})
	dialPeer(t, addr)
	var conn *Conn
	for conn == nil {
		if all := s.Conns(); len(all) == 1 {
			conn = all[0]
		}
	}
	body := make([]byte, 64<<10)
	for i := range 10000 {
		if err := conn.Oneway(40, nil, body); err != nil {
			if !errors.Is(err, ErrUnsent) || i < 16 {
				t.Errorf("push %d: %v", i, err)
			}
			return
		}
	}
	t.Error("never cut")
}

// A peer may ask at once for more than may be unsent, as a consumer of many queues does: what it
// has asked waits for it to take the first answers.
func TestManyLargeAnswers(t *testing.T) {
	body := make([]byte, 1<<20)
	_, addr := serve(t, Options{Limits: Limits{UnsentPause: 1 << 20, Unsent: 8 << 20}, Handler: func(r *Request) {
		r.Responder().Reply(0, "", nil, body)
	}})
	p := dialPeer(t, addr)
	const n = 100
	var all []byte
	for i := range int32(n) {
		all = append(all, request(i, "")...)
	}
	p.send(all)
	for i := range int32(n) {
		if c := p.next(); c == nil || c.Opaque != i || len(c.Body) != len(body) {
			t.Fatalf("answer %d of %d: %v", i, n, c != nil)
		}
	}
}

func TestIdleConnectionsAreClosed(t *testing.T) {
	_, addr := serve(t, Options{Limits: Limits{Idle: 50 * time.Millisecond}})
	if c := dialPeer(t, addr).next(); c != nil {
		t.Error(c)
	}
}

func TestPanicEndsTheConnection(t *testing.T) {
	_, addr := serve(t, Options{Handler: func(r *Request) {
		if r.Opaque == 1 {
			panic("boom")
		}
		echo(r)
	}})
	p := dialPeer(t, addr)
	p.send(request(1, ""))
	if c := p.next(); c != nil {
		t.Error(c)
	}
	p = dialPeer(t, addr)
	p.send(request(2, ""))
	if c := p.next(); c == nil {
		t.Error("the server is gone")
	}
}

// TestShutdown holds the order: what was asked is answered, what comes later is told to
// go elsewhere, and then the connection ends.
func TestShutdown(t *testing.T) {
	asked := make(chan Responder, 1)
	s, addr := serve(t, Options{Handler: func(r *Request) { asked <- r.Responder() }})
	idle := dialPeer(t, addr)
	p := dialPeer(t, addr)
	p.send(request(1, ""))
	held := <-asked
	down := make(chan error)
	go func() { down <- s.Shutdown(context.Background()) }()
	if c := idle.next(); c != nil {
		t.Error(c)
	}
	p.send(request(2, ""))
	if c := p.next(); c.Opaque != 2 || c.Code != remoting.ResServiceNotAvailable {
		t.Error(c)
	}
	newJava := remoting.AppendRequest(nil, 10, 3, 0, nil, nil)
	newJava = []byte(strings.Replace(string(newJava), `"GO"`, `"JAVA"`, 1))
	binary.BigEndian.PutUint32(newJava, uint32(len(newJava)-4))
	binary.BigEndian.PutUint32(newJava[4:], uint32(len(newJava)-8))
	p.send(newJava)
	if c := p.next(); c.Opaque != 3 || c.Code != remoting.ResGoAway {
		t.Error(c)
	}
	held.Reply(0, "", nil, []byte("done"))
	if c := p.next(); c.Opaque != 1 || string(c.Body) != "done" {
		t.Error(c)
	}
	if c := p.next(); c != nil {
		t.Error(c)
	}
	if err := <-down; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", addr); err == nil {
		t.Error("still listening")
	}
}

// TestShutdownCuts holds that a request that is never answered does not hold it up.
func TestShutdownCuts(t *testing.T) {
	asked := make(chan bool)
	s, addr := serve(t, Options{Handler: func(r *Request) { asked <- true }})
	p := dialPeer(t, addr)
	p.send(request(1, ""))
	<-asked
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if c := p.next(); c != nil {
		t.Error(c)
	}
}

// TestReleaseOnce closes connections with answers in every state and counts.
func TestReleaseOnce(t *testing.T) {
	var given, released atomic.Int32
	body := make([]byte, 100<<10)
	s, addr := serve(t, Options{Handler: func(r *Request) {
		given.Add(1)
		var once atomic.Bool
		r.Responder().ReplyRecords(0, "", nil, [][]byte{body}, func() {
			if once.Swap(true) {
				t.Error("released twice")
			}
			released.Add(1)
		})
	}})
	for i := range 30 {
		p := dialPeer(t, addr)
		for j := range int32(50) {
			p.send(request(j, ""))
		}
		for range i {
			p.next()
		}
		p.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s.Shutdown(ctx) // nothing is being written when it returns
	if given.Load() != released.Load() {
		t.Errorf("%d given, %d released", given.Load(), released.Load())
	}
}

// TestManyIdleConnections keeps a thousand connections, or as many as IDLE_CONNECTIONS
// says (10000 is what a server has to bear), and measures what one costs.
func TestManyIdleConnections(t *testing.T) {
	n := 1000
	if more, err := strconv.Atoi(os.Getenv("IDLE_CONNECTIONS")); err == nil {
		n = more
	}
	network := NewPipeNetwork()
	l, err := network.Listen("127.0.0.1:10911")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer(Options{Handler: echo})
	served := make(chan error)
	go func() { served <- s.Serve(context.Background(), l) }()
	before := heap()
	conns := make([]net.Conn, n)
	for i := range conns {
		if conns[i], err = network.Dial(context.Background(), "127.0.0.1:10911"); err != nil {
			t.Fatal(err)
		}
		conns[i].Write(request(int32(i), "hello"))
		c := (&peer{conns[i], bufio.NewReader(conns[i]), t}).next()
		if c == nil || string(c.Body) != "hello" {
			t.Fatal(c)
		}
	}
	each := (int(heap()) - int(before)) / n
	t.Logf("%d bytes for an idle connection, both ends of the pipe included", each)
	if each > 20<<10 {
		t.Errorf("an idle connection costs %d bytes", each)
	}
	s.Shutdown(context.Background())
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func ExampleResponder() {
	network := NewPipeNetwork()
	l, _ := network.Listen("127.0.0.1:0")
	s := NewServer(Options{Handler: func(r *Request) {
		answer := r.Responder()
		go answer.Reply(remoting.ResSuccess, "later", nil, nil)
	}})
	go s.Serve(context.Background(), l)
	c := NewClient(ClientOptions{Dial: network.Dial})
	r, err := c.Call(context.Background(), l.Addr().String(), remoting.ReqHeartBeat, nil, nil)
	fmt.Println(r.Code, r.Remark, err)
	c.Close()
	s.Shutdown(context.Background())
	// Output: 0 later <nil>
}

// TestQuietConnectionKeepsNoLargeFrame: a connection that once brought a large frame must
// not keep its memory until the next one comes.
func TestQuietConnectionKeepsNoLargeFrame(t *testing.T) {
	bodies := make(chan weak.Pointer[byte], 1)
	_, addr := serve(t, Options{Handler: func(r *Request) {
		bodies <- weak.Make(unsafe.SliceData(r.Body))
		r.Responder().Reply(0, "", nil, nil)
	}})
	p := dialPeer(t, addr)
	p.send(request(1, strings.Repeat("x", 5<<20)))
	if p.next() == nil {
		t.Fatal("no answer")
	}
	body := <-bodies
	for deadline := time.Now().Add(patience); body.Value() != nil; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the frame is still in memory")
		}
	}
}

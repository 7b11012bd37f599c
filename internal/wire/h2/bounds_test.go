package h2

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/bolidemq/bolide/internal/wire/listen"
	"github.com/bolidemq/bolide/internal/wire/sock"
)

const telemetryPath = v2.MessagingService_Telemetry_FullMethodName

// held is a service whose stream handlers tell when they begin and end.
type held struct {
	v2.UnimplementedMessagingServiceServer
	begun chan struct{}
	early atomic.Bool // they end at once
	ended chan error
}

func (h *held) Telemetry(stream grpc.BidiStreamingServer[v2.TelemetryCommand, v2.TelemetryCommand]) error {
	h.begun <- struct{}{}
	if h.early.Load() {
		return nil
	}
	_, err := stream.Recv()
	h.ended <- err
	return err
}

func newHeld(t *testing.T) (*fixture, *held) {
	h := &held{begun: make(chan struct{}, 1000), ended: make(chan error, 1000)}
	return newFixture(t, Limits{}, func(s *Server) { v2.RegisterMessagingServiceServer(s, h) }), h
}

// eventually waits for what no event tells.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

func (r *raw) begin(id uint32) {
	r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.headers(callHeaders(telemetryPath)...), EndHeaders: true})
}

// ping waits until all that was sent is handled, and returns what was granted to the
// stream meanwhile.
func (r *raw) ping(stream uint32) (granted uint32) {
	r.t.Helper()
	r.fr.WritePing(false, [8]byte{1})
	for {
		f, err := r.fr.ReadFrame()
		if err != nil {
			r.t.Fatal(err)
		}
		switch f := f.(type) {
		case *http2.WindowUpdateFrame:
			if f.StreamID == stream {
				granted += f.Increment
			}
		case *http2.PingFrame:
			return granted
		}
	}
}

// partOf begins a large message of a stream and sends 80 KiB of it.
func (r *raw) partOf(id uint32) {
	r.begin(id)
	r.fr.WriteData(id, false, prefixed(make([]byte, 1<<20))[:10<<10])
	for range 7 {
		r.fr.WriteData(id, false, make([]byte, 10<<10))
	}
}

// TestUnfinishedMessageOfAnEndedStream: a handler that ends within a message, and one whose
// client gives up, leave nothing counted.
func TestUnfinishedMessageOfAnEndedStream(t *testing.T) {
	f, h := newHeld(t)
	r := f.raw(t)
	r.partOf(1)
	r.ping(1)
	if n := f.server.partial.Load(); n != 80<<10 {
		t.Errorf("%d bytes are counted", n)
	}
	r.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	r.ping(1)
	if n := f.server.partial.Load(); n != 0 {
		t.Errorf("%d bytes of a stream that was reset are counted", n)
	}
	h.early.Store(true)
	for id := uint32(3); id < 203; id += 2 {
		r.partOf(id)
		for !r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame).StreamEnded() {
		}
	}
	r.ping(1)
	if n := f.server.partial.Load(); n != 0 {
		t.Errorf("%d bytes of streams that have ended are counted", n)
	}
}

// TestRefusedMessageEndsTheHandler: a stream that is refused because of what its client
// sends ends for its handler, too.
func TestRefusedMessageEndsTheHandler(t *testing.T) {
	f, h := newHeld(t)
	r := f.raw(t)
	for i, data := range [][]byte{{1, 0, 0, 0, 0}, {0, 0xff, 0, 0, 0}} {
		id := uint32(2*i + 1)
		r.begin(id)
		r.fr.WriteData(id, false, data)
		select {
		case err := <-h.ended:
			if status.Code(err) != codes.Canceled {
				t.Errorf("%v: the handler was told %v", data, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%v: the handler goes on", data)
		}
	}
}

// TestEmptyMessagesAreBounded: messages of no bytes that the handler does not take use up
// what the client may send as others do.
func TestEmptyMessagesAreBounded(t *testing.T) {
	block := make(chan struct{})
	f := newFixture(t, Limits{}, func(s *Server) { v2.RegisterMessagingServiceServer(s, &deaf{until: block}) })
	defer close(block)
	r := f.raw(t)
	r.begin(1)
	for range 60 {
		r.fr.WriteData(1, false, make([]byte, 15_000))
	}
	if n := r.ping(1); n > 2*keepQueued {
		t.Errorf("%d bytes were granted to a stream whose handler takes nothing", n)
	}
}

// deaf does not receive.
type deaf struct {
	v2.UnimplementedMessagingServiceServer
	until chan struct{}
}

func (d *deaf) Telemetry(grpc.BidiStreamingServer[v2.TelemetryCommand, v2.TelemetryCommand]) error {
	<-d.until
	return nil
}

// TestSmallPartsAreBounded: many requests that are small but never complete are refused as
// large ones are.
func TestSmallPartsAreBounded(t *testing.T) {
	f := newFixture(t, Limits{})
	r := f.raw(t)
	r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.headers(callHeaders(receivePath)...), EndHeaders: true})
	r.fr.WriteData(1, false, prefixed(make([]byte, 100))[:50])
	r.ping(1)
	if n := f.server.partial.Load(); n != 50 {
		t.Errorf("%d bytes are counted", n)
	}
	f.server.partial.Add(2 * maxPartial)
	defer f.server.partial.Add(-2 * maxPartial)
	r.fr.WriteData(1, false, make([]byte, 10))
	if h := r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame); !h.StreamEnded() {
		t.Error("a request that will never be complete is kept")
	}
	if n := f.server.partial.Load(); n != 2*maxPartial {
		t.Errorf("%d bytes are still counted", n-2*maxPartial)
	}
	wire, _ := proto.Marshal(receiveOf("orders", 0, 0))
	r.call(3, receivePath, wire) // in one piece: nothing to count
	if h := r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame); h.StreamEnded() {
		t.Error("a complete request is refused")
	}
}

// TestHeadersOfAllCallsAreBounded: calls that wait keep their headers; those that have no room
// for theirs are refused, for the client to try again, until others have ended.
func TestHeadersOfAllCallsAreBounded(t *testing.T) {
	f, _ := newHeld(t)
	r := f.raw(t)
	large := r.headers(append(callHeaders(telemetryPath), "a", strings.Repeat("x", 50<<10))...)
	begin := func(id uint32) {
		for rest, first := large, true; len(rest) > 0; first = false {
			part := rest[:min(len(rest), maxFrame)]
			rest = rest[len(part):]
			if first {
				r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: part, EndHeaders: len(rest) == 0})
			} else {
				r.fr.WriteContinuation(id, len(rest) == 0, part)
			}
		}
	}
	held := func() (bytes, calls int) {
		for _, c := range f.server.conns.All() {
			c.mu.Lock()
			bytes, calls = bytes+c.mu.held, calls+len(c.mu.calls)
			c.mu.Unlock()
		}
		return bytes, calls
	}
	const many = 400 // of which 16 MiB take some 320
	id := uint32(1)
	for range many {
		begin(id)
		id += 2
	}
	if reset := r.until(http2.FrameRSTStream).(*http2.RSTStreamFrame); reset.ErrCode != http2.ErrCodeRefusedStream || reset.StreamID < 600 {
		t.Errorf("call %d was refused with %v", reset.StreamID/2, reset.ErrCode)
	}
	r.ping(0)
	bytes, calls := held()
	if bytes > 16<<20 || calls < 300 || calls > 330 {
		t.Errorf("%d calls keep %d bytes of headers", calls, bytes)
	}
	r.fr.WriteRSTStream(1, http2.ErrCodeCancel)
	begin(id)
	r.ping(0)
	if _, n := held(); n != calls {
		t.Errorf("%d calls when one had made room for another, %d before", n, calls)
	}
	for ended := uint32(3); ended <= id; ended += 2 {
		r.fr.WriteRSTStream(ended, http2.ErrCodeCancel)
	}
	r.ping(0)
	if bytes, calls = held(); bytes != 0 || calls != 0 {
		t.Errorf("at the end %d calls keep %d bytes of headers", calls, bytes)
	}
}

// TestLastWordsWrittenByAnother: the reader that waits until its last frame is written does
// so whoever writes it.
func TestLastWordsWrittenByAnother(t *testing.T) {
	f := newFixture(t, Limits{})
	f.raw(t)
	var c *Conn
	eventually(t, "no connection", func() bool {
		for _, c = range f.server.conns.All() {
		}
		return c != nil
	})
	c.mu.Lock()
	before := len(c.outLocked().B)
	c.mu.out.B = appendGoAway(c.mu.out.B, 0, protocolError, "bye")
	c.mu.unsent += len(c.mu.out.B) - before
	c.mu.Unlock()
	flushed := make(chan struct{})
	go func() {
		c.flush()
		close(flushed)
	}()
	eventually(t, "not waiting", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return c.mu.paused })
	c.now = sock.NewWriter(c.nc) // quiet
	c.mu.Lock()
	c.queuedLocked(0)
	select {
	case <-flushed:
	case <-time.After(20 * time.Second):
		t.Error("the reader still waits")
		c.closeWith(ErrClosed)
		<-flushed
	}
}

// TestStopWithPeersThatDoNotRead: a stop waits a moment for those who take nothing, in plain
// text and under TLS, and not for each of them.
func TestStopWithPeersThatDoNotRead(t *testing.T) {
	f := newFixture(t, Limits{})
	certificate, key, err := listen.SelfSigned([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- f.server.Serve(context.Background(), l) }()
	wire, _ := proto.Marshal(receiveOf("orders", 2000, 10<<10))
	ask := func(nc net.Conn) {
		r := f.over(t, nc)
		r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
		r.fr.WriteWindowUpdate(0, maxWindow-defaultWindow)
		r.call(1, receivePath, wire)
	}
	for range 4 {
		f.raw(t) // says nothing, and nothing is said to it
		plain, err := net.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		ask(plain)
		secret, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // signed by itself
		if err != nil {
			t.Fatal(err)
		}
		ask(secret)
	}
	eventually(t, "the answers are not on their way", func() bool {
		stuck := 0
		for _, c := range f.server.conns.All() {
			if c.writeSince.Load() != 0 {
				stuck++
			}
		}
		return stuck == 8
	})
	began := time.Now()
	f.stop()
	if took := time.Since(began); took > 4*lastWords {
		t.Errorf("the stop took %v", took)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	for range 8 {
		if <-f.sent {
			t.Error("an answer that nobody took is told as sent")
		}
	}
}

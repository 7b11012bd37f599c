package h2

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// raw is a client that writes frames by itself.
type raw struct {
	t   *testing.T
	nc  net.Conn
	fr  *http2.Framer
	enc *hpack.Encoder
	buf bytes.Buffer
}

func (f *fixture) raw(t *testing.T) *raw {
	nc, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	return f.over(t, nc)
}

func (f *fixture) over(t *testing.T, nc net.Conn) *raw {
	t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(30 * time.Second))
	r := &raw{t: t, nc: nc, fr: http2.NewFramer(nc, nc)}
	r.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	r.enc = hpack.NewEncoder(&r.buf)
	r.write([]byte(http2.ClientPreface))
	return r
}

func (r *raw) write(b []byte) {
	if _, err := r.nc.Write(b); err != nil {
		r.t.Log("write:", err) // the server may have closed by then
	}
}

func (r *raw) headers(fields ...string) []byte {
	r.buf.Reset()
	for i := 0; i < len(fields); i += 2 {
		r.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(r.buf.Bytes())
}

func callHeaders(path string, more ...string) []string {
	return append([]string{":method", "POST", ":scheme", "http", ":path", path, ":authority", "x", "content-type", "application/grpc", "te", "trailers"}, more...)
}

const receivePath = v2.MessagingService_ReceiveMessage_FullMethodName

func (r *raw) call(id uint32, path string, message []byte) {
	r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.headers(callHeaders(path)...), EndHeaders: true})
	r.fr.WriteData(id, true, prefixed(message))
}

func prefixed(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// until reads frames until one of the kind comes.
func (r *raw) until(kind http2.FrameType) http2.Frame {
	r.t.Helper()
	for {
		f, err := r.fr.ReadFrame()
		if err != nil {
			r.t.Fatalf("no %v: %v", kind, err)
		}
		if f.Header().Type == kind {
			return f
		}
	}
}

func (r *raw) goAway(code http2.ErrCode) {
	r.t.Helper()
	if g := r.until(http2.FrameGoAway).(*http2.GoAwayFrame); g.ErrCode != code {
		r.t.Errorf("GOAWAY %v (%s), want %v", g.ErrCode, g.DebugData(), code)
	}
}

// TestBrokenFrames: what breaks the protocol ends the connection with the code that the
// protocol has for it, and no other connection notices.
func TestBrokenFrames(t *testing.T) {
	f := newFixture(t, Limits{})
	for _, c := range []struct {
		name string
		code http2.ErrCode
		send func(r *raw)
	}{
		{"a frame that is too long", http2.ErrCodeFrameSize, func(r *raw) { r.write([]byte{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1}) }},
		{"DATA without a stream", http2.ErrCodeProtocol, func(r *raw) { r.write(appendFrameHeader(nil, 0, typeData, 0, 0)) }},
		{"DATA of a stream that is not open", http2.ErrCodeProtocol, func(r *raw) { r.write(appendFrameHeader(nil, 0, typeData, 0, 7)) }},
		{"HEADERS of an even stream", http2.ErrCodeProtocol, func(r *raw) { r.write(appendFrameHeader(nil, 0, typeHeaders, flagEndHeaders, 2)) }},
		{"CONTINUATION of nothing", http2.ErrCodeProtocol, func(r *raw) { r.write(appendFrameHeader(nil, 0, typeContinuation, 0, 1)) }},
		{"a header block that is interrupted", http2.ErrCodeProtocol, func(r *raw) {
			r.write(appendFrameHeader(nil, 0, typeHeaders, 0, 1))
			r.write(appendFrameHeader(nil, 8, typePing, 0, 0))
			r.write(make([]byte, 8))
		}},
		{"a header block that is no HPACK", http2.ErrCodeCompression, func(r *raw) {
			r.write(append(appendFrameHeader(nil, 2, typeHeaders, flagEndHeaders, 1), 0xff, 0xff))
		}},
		{"a header block without end", http2.ErrCodeEnhanceYourCalm, func(r *raw) {
			r.write(appendFrameHeader(nil, 0, typeHeaders, 0, 1))
			for range 10_000 {
				if _, err := r.nc.Write(appendFrameHeader(nil, 0, typeContinuation, 0, 1)); err != nil {
					break
				}
			}
		}},
		{"more padding than frame", http2.ErrCodeProtocol, func(r *raw) {
			r.write(append(appendFrameHeader(nil, 2, typeHeaders, flagEndHeaders|flagPadded, 1), 200, 0))
		}},
		{"PING of 7 bytes", http2.ErrCodeFrameSize, func(r *raw) { r.write(append(appendFrameHeader(nil, 7, typePing, 0, 0), 1, 2, 3, 4, 5, 6, 7)) }},
		{"SETTINGS of 5 bytes", http2.ErrCodeFrameSize, func(r *raw) { r.write(append(appendFrameHeader(nil, 5, typeSettings, 0, 0), 1, 2, 3, 4, 5)) }},
		{"a window above 2^31-1", http2.ErrCodeFlowControl, func(r *raw) { r.write(appendSettings(nil, settingInitialWindowSize, 1<<31)) }},
		{"a window update by 0", http2.ErrCodeProtocol, func(r *raw) { r.write(appendWindowUpdate(nil, 0, 0)) }},
		{"window updates without end", http2.ErrCodeFlowControl, func(r *raw) {
			r.write(appendWindowUpdate(appendWindowUpdate(nil, 0, maxWindow), 0, maxWindow))
		}},
		{"PUSH_PROMISE", http2.ErrCodeProtocol, func(r *raw) { r.write(appendFrameHeader(nil, 0, typePushPromise, 0, 1)) }},
		{"RST_STREAM of a stream that is not open", http2.ErrCodeProtocol, func(r *raw) { r.write(appendReset(nil, 9, 8)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := f.raw(t)
			c.send(r)
			r.goAway(c.code)
		})
	}
	if got, err := f.route(f.context(), "orders"); err != nil || got != "orders" {
		t.Errorf("another connection: %q, %v", got, err)
	}
}

// TestBrokenCalls: what breaks one call ends that one.
func TestBrokenCalls(t *testing.T) {
	f := newFixture(t, Limits{Headers: 4 << 10})
	r := f.raw(t)
	r.fr.WriteSettings()
	id := uint32(1)
	begin := func(fields []string, end bool) {
		r.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: r.headers(fields...), EndHeaders: true, EndStream: end})
	}
	header := func(name string) string {
		t.Helper()
		for {
			h := r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame)
			for _, f := range h.Fields {
				if f.Name == name {
					return f.Value
				}
			}
			if h.StreamEnded() {
				return ""
			}
		}
	}
	for _, c := range []struct {
		name   string
		fields []string
		data   []byte
		want   string // field: value
	}{
		{"GET", []string{":method", "GET", ":path", "/", ":scheme", "http"}, nil, ":status: 405"},
		{"no gRPC", []string{":method", "POST", ":path", "/", ":scheme", "http", "content-type", "text/html"}, nil, ":status: 415"},
		{"a broken timeout", callHeaders(receivePath, "grpc-timeout", "1x"), nil, ":status: 400"},
		{"huge headers", callHeaders(receivePath, "a", strings.Repeat("b", 3<<10), "c", strings.Repeat("d", 3<<10)), nil, ":status: 431"},
		{"an unknown method", callHeaders("/a/b"), prefixed(nil), "grpc-status: 12"},
		{"no message", callHeaders(receivePath), []byte{}, "grpc-status: 13"},
		{"half a prefix", callHeaders(receivePath), []byte{0, 0}, "grpc-status: 13"},
		{"half a message", callHeaders(receivePath), prefixed(make([]byte, 10))[:10], "grpc-status: 13"},
		{"two messages", callHeaders(receivePath), append(prefixed(nil), prefixed(nil)...), "grpc-status: 13"},
		{"a compressed message", callHeaders(receivePath), []byte{1, 0, 0, 0, 0}, "grpc-status: 12"},
		{"a length beyond the limit", callHeaders(receivePath), []byte{0, 0xff, 0xff, 0xff, 0xff}, "grpc-status: 8"},
		{"no protobuf", callHeaders(receivePath), prefixed([]byte{0xff}), "grpc-status: 13"},
	} {
		begin(c.fields, false)
		if c.data != nil {
			r.fr.WriteData(id, true, c.data)
		}
		name, want, _ := strings.Cut(c.want, ": ")
		if got := header(name); got != want {
			t.Errorf("%s: %s %q, want %q", c.name, name, got, want)
		}
		id += 2
	}
	begin([]string{":method", "POST", ":scheme", "http", "a", "b", ":path", "/"}, true)
	if rst := r.until(http2.FrameRSTStream).(*http2.RSTStreamFrame); rst.ErrCode != http2.ErrCodeProtocol || rst.StreamID != id {
		t.Errorf("a pseudo header behind a header: %v", rst)
	}
	id += 2
	begin(callHeaders(receivePath), false)
	r.fr.WriteWindowUpdate(id, 1<<31-1)
	if rst := r.until(http2.FrameRSTStream).(*http2.RSTStreamFrame); rst.ErrCode != http2.ErrCodeFlowControl {
		t.Errorf("a window above 2^31-1: %v", rst)
	}
	id += 2
	begin(callHeaders(receivePath), false)
	r.write(appendWindowUpdate(nil, id, 0))
	if rst := r.until(http2.FrameRSTStream).(*http2.RSTStreamFrame); rst.ErrCode != http2.ErrCodeProtocol {
		t.Errorf("a window update by 0: %v", rst)
	}
	id += 2
	// The connection is as good as before.
	r.call(id, v2.MessagingService_QueryRoute_FullMethodName, nil)
	if got := header("grpc-status"); got != "0" {
		t.Errorf("grpc-status %q", got)
	}
}

// TestSmallWindows gives an answer room by the byte: nothing is sent beyond it, and calls
// of other streams are not held up.
func TestSmallWindows(t *testing.T) {
	f := newFixture(t, Limits{})
	r := f.raw(t)
	r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
	wire, _ := proto.Marshal(receiveOf("orders", 3, 100))
	r.call(1, receivePath, wire)
	r.call(3, v2.MessagingService_QueryRoute_FullMethodName, nil)
	var got []byte
	granted := 0
	read := func(until func() bool) {
		t.Helper()
		for !until() {
			fr, err := r.fr.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if d, is := fr.(*http2.DataFrame); is && d.StreamID == 1 {
				got = append(got, d.Data()...)
			}
			if rst, is := fr.(*http2.RSTStreamFrame); is {
				t.Fatalf("reset %v", rst)
			}
			if len(got) > granted {
				t.Fatalf("%d bytes for a window of %d", len(got), granted)
			}
		}
	}
	for len(got) < 200 { // of some 340
		n := 1 + len(got)/3
		granted += n
		r.fr.WriteWindowUpdate(1, uint32(n))
		read(func() bool { return len(got) == granted })
	}
	if len(f.sent) != 0 {
		t.Error("told as complete too early")
	}
	r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1000})
	granted += 1000
	for !<-f.sent {
		t.Error("told as not complete")
	}
	r.fr.WriteWindowUpdate(3, 1000)
}

// TestPeerThatDoesNotRead is cut, and holds no more memory than it may.
func TestPeerThatDoesNotRead(t *testing.T) {
	f := newFixture(t, Limits{Stall: 300 * time.Millisecond, Unsent: 64 << 10})
	r := f.raw(t)
	r.fr.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxWindow})
	r.fr.WriteWindowUpdate(0, maxWindow-defaultWindow)
	wire, _ := proto.Marshal(receiveOf("orders", 2000, 10<<10))
	r.call(1, receivePath, wire)
	if <-f.sent {
		t.Error("20 MB that nobody read are told as sent")
	}
}

// TestSilentPeer is asked, and cut when it does not answer.
func TestSilentPeer(t *testing.T) {
	f := newFixture(t, Limits{Ping: 100 * time.Millisecond, PingTimeout: 100 * time.Millisecond})
	r := f.raw(t)
	ping := r.until(http2.FramePing).(*http2.PingFrame)
	r.fr.WritePing(true, ping.Data)
	r.until(http2.FramePing)
	for {
		if _, err := r.fr.ReadFrame(); err != nil {
			break // cut
		}
	}
	if got, err := f.route(f.context(), "orders"); err != nil || got != "orders" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestRefusedStreams(t *testing.T) {
	f := newFixture(t, Limits{Streams: 2})
	r := f.raw(t)
	wire, _ := proto.Marshal(receiveOf("later", 1, 1))
	for id := uint32(1); id <= 5; id += 2 {
		r.call(id, receivePath, wire)
	}
	if rst := r.until(http2.FrameRSTStream).(*http2.RSTStreamFrame); rst.ErrCode != http2.ErrCodeRefusedStream || rst.StreamID != 5 {
		t.Errorf("%v", rst)
	}
	(<-f.waiting)()
	r.until(http2.FrameHeaders)
}

func TestPercentEncoding(t *testing.T) {
	for in, want := range map[string]string{"": "", "plain text": "plain text", "100%": "100%25", "ü\n": "%C3%BC%0A"} {
		if got := percentEncode(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if n := len(percentEncode(strings.Repeat("a", 1<<20))); n > maxStatusText {
		t.Errorf("%d bytes of text", n)
	}
}

func TestTimeouts(t *testing.T) {
	for in, want := range map[string]time.Duration{"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "4m": 4 * time.Millisecond,
		"5u": 5 * time.Microsecond, "6n": 6, "99999999H": 1<<63 - 1} {
		if got, ok := parseTimeout(in); !ok || got != want {
			t.Errorf("%s: %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{"", "H", "1", "1x", "-1S", "123456789S", "1.5S"} {
		if got, ok := parseTimeout(in); ok {
			t.Errorf("%q is read as %v", in, got)
		}
	}
}

// TestAnswerHeaders checks the blocks against a decoder with the peer's table.
func TestAnswerHeaders(t *testing.T) {
	for _, shrinkAt := range []int{-1, 0, 1, 2, 3, 5} {
		var h responseHeaders
		d := hpack.NewDecoder(4096, nil)
		for step := range 8 {
			if step == shrinkAt {
				h.tableShrunk()
			}
			for _, c := range []struct {
				block []byte
				want  string
			}{
				{h.open(nil), "[:status=200 content-type=application/grpc]"},
				{h.failed(nil, step%2 == 0, 5, "no ü"), map[bool]string{true: "[:status=200 content-type=application/grpc grpc-status=5 grpc-message=no %C3%BC]",
					false: "[grpc-status=5 grpc-message=no %C3%BC]"}[step%2 == 0]},
				{h.good(nil), "[grpc-status=0]"},
				{h.httpStatus(nil, 415), "[:status=415]"},
			} {
				fields, err := d.DecodeFull(c.block)
				if err != nil {
					t.Fatalf("step %d: %v", step, err)
				}
				var got []string
				for _, f := range fields {
					got = append(got, f.Name+"="+f.Value)
				}
				if fmt.Sprint(got) != c.want {
					t.Errorf("step %d: %v, want %s", step, got, c.want)
				}
			}
		}
	}
}

// FuzzFrames: whatever a peer sends, the server stops, each answer is told once how it
// ended, and nothing of a request is still counted.
func FuzzFrames(f *testing.F) {
	r := &raw{}
	r.enc = hpack.NewEncoder(&r.buf)
	wire, _ := proto.Marshal(receiveOf("orders", 2, 10))
	block := r.headers(callHeaders(receivePath)...)
	good := append(appendSettings(nil), appendFrameHeader(nil, len(block), typeHeaders, flagEndHeaders, 1)...)
	good = append(good, block...)
	good = append(good, appendFrameHeader(nil, len(wire)+5, typeData, flagEndStream, 1)...)
	good = append(good, prefixed(wire)...)
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(appendWindowUpdate(appendReset(good, 1, 8), 0, 5))
	f.Add(append(appendSettings(nil, settingInitialWindowSize, 3), good...))
	block = r.headers(callHeaders(telemetryPath)...)
	stream := append(appendFrameHeader(nil, len(block), typeHeaders, flagEndHeaders, 1), block...)
	message := prefixed([]byte{0x0a, 2, 0x12, 0})
	stream = append(appendFrameHeader(stream, len(message), typeData, 0, 1), message...)
	stream = append(appendFrameHeader(stream, len(message)-1, typeData, 0, 1), message[1:]...)
	f.Add(stream)
	f.Add(append(stream, appendFrameHeader(nil, 0, typeData, flagEndStream, 1)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var answers, told atomic.Int64
		s := NewServer(Options{})
		v2.RegisterMessagingServiceServer(s, &service{handled: make(chan context.Context, 1000)})
		s.Direct(receivePath, 1<<20, func(k *Call) {
			answers.Add(1)
			answer := NewBuffer()
			answer.B = append(answer.B, prefixed(k.Message())...)
			sent := func(bool) { told.Add(1) }
			if len(k.Message())%2 == 0 {
				k.Answer(answer, sent)
				return
			}
			s.conns.Running.Add(1)
			go func() {
				defer s.conns.Running.Done()
				k.Answer(answer, sent)
			}()
		})
		client, server := net.Pipe()
		c, err := s.open(server)
		if err != nil {
			t.Fatal(err)
		}
		go s.run(c)
		go func() {
			var sink [4096]byte
			for {
				if _, err := client.Read(sink[:]); err != nil {
					return
				}
			}
		}()
		client.SetDeadline(time.Now().Add(5 * time.Second))
		client.Write([]byte(preface))
		client.Write(b)
		client.Close()
		s.Stop(context.Background())
		if answers.Load() != told.Load() {
			t.Errorf("%d answers, %d were told how they ended", answers.Load(), told.Load())
		}
		if n := s.partial.Load(); n != 0 {
			t.Errorf("%d bytes are still counted", n)
		}
	})
}

// TestByteByByte sends a call in the smallest pieces that the protocol has: the header block
// in fragments of one byte, padded DATA of one byte, and an end in trailers; all of it as
// single bytes.
func TestByteByByte(t *testing.T) {
	f := newFixture(t, Limits{})
	r := f.raw(t)
	wire, _ := proto.Marshal(receiveOf("orders", 2, 10))
	var b []byte
	b = appendSettings(b, settingInitialWindowSize, 10)
	kind, flags := byte(typeHeaders), byte(0)
	block := r.headers(callHeaders(receivePath)...)
	for i := range block {
		if i == len(block)-1 {
			flags = flagEndHeaders
		}
		b = append(appendFrameHeader(b, 1, kind, flags, 1), block[i])
		kind = typeContinuation
	}
	for _, c := range prefixed(wire) {
		b = append(appendFrameHeader(b, 5, typeData, flagPadded, 1), 3, c, 0, 0, 0)
		b = appendFrameHeader(b, 0, typeData, 0, 1)
	}
	trailers := r.headers("x-end", "1")
	b = append(appendFrameHeader(b, len(trailers), typeHeaders, flagEndHeaders|flagEndStream, 1), trailers...)
	b = appendSettings(b, settingInitialWindowSize, 0) // below zero by then
	b = appendWindowUpdate(b, 1, 5)
	for i := range b {
		r.write(b[i : i+1])
	}
	r.ping(1)
	if len(f.sent) != 0 {
		t.Error("more was sent than there was a window for")
	}
	r.fr.WriteWindowUpdate(1, 1<<20)
	if h := r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame); !h.StreamEnded() || h.Fields[0].Value != "0" {
		t.Errorf("%v", h.Fields)
	}
	if !<-f.sent {
		t.Error("told as not complete")
	}
}

// TestLargeHeader: a header that is too large fails its call, not the connection.
func TestLargeHeader(t *testing.T) {
	f := newFixture(t, Limits{})
	r := f.raw(t)
	block := r.headers(callHeaders(receivePath, "x-large", strings.Repeat("\x01", 100<<10))...)
	kind, flags := byte(typeHeaders), byte(flagEndStream)
	for len(block) > 0 {
		n := min(len(block), maxFrame)
		if n == len(block) {
			flags |= flagEndHeaders
		}
		r.write(append(appendFrameHeader(nil, n, kind, flags, 1), block[:n]...))
		block = block[n:]
		kind, flags = typeContinuation, 0
	}
	if h := r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame); h.PseudoValue("status") != "431" {
		t.Errorf("%v", h.Fields)
	}
	r.call(3, v2.MessagingService_QueryRoute_FullMethodName, nil)
	if h := r.until(http2.FrameHeaders).(*http2.MetaHeadersFrame); h.PseudoValue("status") != "200" {
		t.Errorf("%v", h.Fields)
	}
}

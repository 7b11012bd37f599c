package listen

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func certificates(t testing.TB, hosts ...string) Source {
	cert, key, err := SelfSigned(hosts)
	if err != nil {
		t.Fatal(err)
	}
	return Source{Name: "test", Read: func() ([]byte, []byte, error) { return cert, key, nil }}
}

// split runs a splitter whose two sides answer with their name, the client's address and
// the first line that they read.
func split(t *testing.T, config *tls.Config, patience time.Duration) string {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(inner, config)
	s.Patience = patience
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 3)
	go func() { done <- s.Run(ctx) }()
	say := func(name string, l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				done <- nil
				return
			}
			go func() {
				defer c.Close()
				line, err := bufio.NewReader(c).ReadString('!')
				if err == nil {
					io.WriteString(c, name+" "+c.RemoteAddr().String()+" "+c.LocalAddr().String()+" "+line)
				}
			}()
		}
	}
	go say("grpc", s.GRPC())
	go say("remoting", s.Remoting())
	t.Cleanup(func() {
		cancel()
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return inner.Addr().String()
}

func proxy2Header(from, to string, fromPort, toPort uint16) string {
	ip := func(s string) []byte {
		a := net.ParseIP(s)
		if v4 := a.To4(); v4 != nil {
			return v4
		}
		return a
	}
	family := byte(0x11)
	if len(ip(from)) == 16 {
		family = 0x21
	}
	body := append(append([]byte{}, ip(from)...), ip(to)...)
	body = binary.BigEndian.AppendUint16(body, fromPort)
	body = binary.BigEndian.AppendUint16(body, toPort)
	body = append(body, 3, 0, 4, 1, 2, 3, 4) // something more that we do not know
	return proxy2 + "\x21" + string(family) + string(binary.BigEndian.AppendUint16(nil, uint16(len(body)))) + string(body)
}

const (
	remotingBytes = "\x00\x00\x00\x10frame!"
	http2Bytes    = http2Preface + "settings!"
)

// TestEveryMix goes through PROXY header, TLS and plain text for both protocols.
func TestEveryMix(t *testing.T) { // R047
	certs, err := NewCertificates([]Source{certificates(t, "localhost")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	addr := split(t, certs.Config(), patience)
	for _, protocol := range []struct{ name, says, bytes string }{{"remoting", "remoting", remotingBytes}, {"grpc", "grpc", http2Bytes}} {
		for _, proxy := range []struct{ name, header, addrs string }{
			{"no header", "", ""},
			{"v1", "PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n", "192.0.2.1:5000 192.0.2.2:443"},
			{"v1 IPv6", "PROXY TCP6 2001:db8::1 2001:db8::2 5000 443\r\n", "[2001:db8::1]:5000 [2001:db8::2]:443"},
			{"v1 unknown", "PROXY UNKNOWN\r\n", ""},
			{"v2", proxy2Header("192.0.2.1", "192.0.2.2", 5000, 443), "192.0.2.1:5000 192.0.2.2:443"},
			{"v2 IPv6", proxy2Header("2001:db8::1", "2001:db8::2", 5000, 443), "[2001:db8::1]:5000 [2001:db8::2]:443"},
			{"v2 local", proxy2 + "\x20\x00\x00\x00", ""},
			{"v2 unix", proxy2 + "\x21\x31\x00\x02xx", ""},
			{"v1 from here", "PROXY TCP4 127.0.0.1 127.0.0.1 5000 443\r\n", "127.0.0.1:5000 127.0.0.1:443"},
		} {
			for _, encrypted := range []bool{false, true} {
				for _, piecewise := range []bool{false, true} {
					c, err := net.Dial("tcp", addr)
					if err != nil {
						t.Fatal(err)
					}
					c.SetDeadline(time.Now().Add(patience))
					write := func(c net.Conn, s string) {
						if !piecewise {
							io.WriteString(c, s)
							return
						}
						for i := range len(s) {
							c.Write([]byte{s[i]})
						}
					}
					write(c, proxy.header)
					talk := c
					if encrypted {
						config := &tls.Config{InsecureSkipVerify: true}
						if protocol.name == "grpc" && !piecewise { // else it is seen by the bytes within
							config.NextProtos = []string{"h2"}
						}
						talk = tls.Client(c, config)
					}
					write(talk, protocol.bytes)
					got, _ := io.ReadAll(talk)
					addrs := proxy.addrs
					if addrs == "" {
						addrs = c.LocalAddr().String() + " " + c.RemoteAddr().String()
					}
					if want := protocol.says + " " + addrs + " " + protocol.bytes; string(got) != want {
						t.Errorf("%s, %s, TLS %v, byte by byte %v:\n got %q\nwant %q", protocol.name, proxy.name, encrypted, piecewise, got, want)
					}
					c.Close()
				}
			}
		}
	}
}

// TestRefusals holds that what cannot be sorted is closed, and what is no protocol of
// ours goes to Remoting, which refuses it.
func TestRefusals(t *testing.T) {
	addr := split(t, nil, patience)
	for name, bytes := range map[string]string{
		"TLS, switched off":      "\x16\x03\x01\x02\x00!",
		"endless v1 header":      "PROXY " + strings.Repeat("x", 200) + "!",
		"v1 without addresses":   "PROXY TCP4 a b c d\r\n!",
		"v1 of another kind":     "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n!",
		"v2 of version 3":        proxy2 + "\x31\x11\x00\x00!",
		"v2 too long":            proxy2 + "\x21\x11\xff\xff!",
		"v2 without addresses":   proxy2 + "\x21\x11\x00\x02xx!",
		"cut in the first bytes": "PRI * HT",
		"nothing":                "",
	} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, bytes)
		c.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(c)
		var timeout net.Error
		if len(got) > 0 || (errors.As(err, &timeout) && timeout.Timeout()) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		c.Close()
	}
	for _, bytes := range []string{"GET / HTTP/1.1\r\n!", "\xff\xff\xff\xff!", "PROXX!", proxy2Header("192.0.2.1", "192.0.2.2", 1, 2) + "PROXY TCP4 !"} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, bytes)
		if got, _ := io.ReadAll(c); !strings.HasPrefix(string(got), "remoting ") {
			t.Errorf("%q: %q", bytes, got)
		}
		c.Close()
	}
}

// Connections leave descriptors to files: from the limit on they are closed, until others have gone.
// Files leave them to connections: those that are open already do not count as some.
func TestConnectionsLeaveDescriptors(t *testing.T) {
	for range 60 { // more than room
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(inner, nil)
	const room = 40 // of both ends
	s.most = room
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	var taken []net.Conn
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for _, c := range taken {
			c.Close()
		}
	}()
	// dial reports whether a connection is taken.
	dial := func() bool {
		c, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, c)
		if _, err := c.Write([]byte("\x00\x00\x00\x10 a frame")); err != nil {
			return false
		}
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			_, _ = c.Read(make([]byte, 1)) // until it is closed
		}()
		select {
		case ours := <-s.remoting.conns:
			taken = append(taken, ours)
			return true
		case <-gone:
			return false
		}
	}
	n := 0
	for n < room && dial() {
		n++
	}
	if n == 0 || n >= room {
		t.Fatalf("%d connections were taken", n)
	}
	for _, c := range taken {
		c.Close()
	}
	if !dial() {
		t.Error("none is taken when the others have gone")
	}
}

// TestSilenceIsCut holds that a connection that says nothing, or not enough, goes.
func TestSilenceIsCut(t *testing.T) {
	addr := split(t, nil, 50*time.Millisecond)
	for _, bytes := range []string{"", "P", "PROXY TCP4", proxy2[:5]} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, bytes)
		c.SetDeadline(time.Now().Add(patience))
		if got, err := io.ReadAll(c); len(got) > 0 || (err != nil && strings.Contains(err.Error(), "timeout")) {
			t.Errorf("%q: %q, %v", bytes, got, err)
		}
		c.Close()
	}
}

// TestClaimsOfLoopback holds that a header cannot make a stranger a local user.
func TestClaimsOfLoopback(t *testing.T) {
	for _, tt := range []struct {
		peer string
		ok   bool
	}{{"192.0.2.9:1", false}, {"127.0.0.1:1", true}} {
		us, them := net.Pipe()
		go func() {
			io.WriteString(them, "PROXY TCP4 127.0.0.1 192.0.2.2 5000 443\r\n")
			io.Copy(io.Discard, them)
		}()
		c := &Conn{Conn: addressed{us, tt.peer}, raw: us}
		if err := c.more(); err != nil {
			t.Fatal(err)
		}
		if err := c.readProxy(); (err == nil) != tt.ok {
			t.Errorf("from %s: %v", tt.peer, err)
		}
		us.Close()
		them.Close()
	}
}

type addressed struct {
	net.Conn
	from string
}

func (a addressed) RemoteAddr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", a.from)
	return addr
}

// TestRenewal replaces a certificate under a running port.
func TestRenewal(t *testing.T) { // R052
	certA, keyA, _ := SelfSigned([]string{"a.test"})
	certB, keyB, _ := SelfSigned([]string{"b.test"})
	type files struct{ cert, key []byte }
	var now atomic.Pointer[files]
	now.Store(&files{certA, keyA})
	c, err := NewCertificates([]Source{
		{"changing", func() ([]byte, []byte, error) { f := now.Load(); return f.cert, f.key, nil }},
		certificates(t, "other.test"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := func(server string) string {
		us, them := net.Pipe()
		defer us.Close()
		defer them.Close()
		go tls.Server(them, c.Config()).Handshake()
		var name string
		tls.Client(us, &tls.Config{ServerName: server, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
			name = s.PeerCertificates[0].DNSNames[0]
			return s.PeerCertificates[0].VerifyHostname(name)
		}}).Handshake()
		return name
	}
	old := func() { c.mu.Lock(); c.mu.looked = time.Time{}; c.mu.Unlock() }
	if got := shown("a.test"); got != "a.test" {
		t.Error(got)
	}
	if got := shown("other.test"); got != "other.test" {
		t.Error("by name:", got)
	}
	now.Store(&files{certB, keyA}) // half written
	old()
	if got := shown("a.test"); got != "a.test" {
		t.Error(got)
	}
	now.Store(&files{certB, keyB})
	if got := shown("a.test"); got != "a.test" {
		t.Error("looked again at once:", got)
	}
	old()
	if got := shown("b.test"); got != "b.test" {
		t.Error(got)
	}
	if _, err := NewCertificates([]Source{{"bad", func() ([]byte, []byte, error) { return certA, keyB, nil }}}, nil); err == nil {
		t.Error("a pair that does not fit was taken")
	}
}

func TestSelfSignedNames(t *testing.T) {
	certPEM, key, err := SelfSigned([]string{"localhost", "127.0.0.1", "::1"})
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certPEM, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"localhost", "127.0.0.1", "::1"} {
		if err := cert.VerifyHostname(h); err != nil {
			t.Error(err)
		}
	}
}

func FuzzFirstBytes(f *testing.F) {
	for _, s := range []string{remotingBytes, http2Bytes, proxy2Header("192.0.2.1", "192.0.2.2", 1, 2) + http2Bytes, "PROXY TCP4 192.0.2.1 192.0.2.2 5000 443\r\n" + remotingBytes, "PROXY UNKNOWN\r\n", "\x16"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		us, them := net.Pipe()
		go func() {
			them.Write(b)
			them.Close()
		}()
		s := New(dummy{}, nil)
		c, _, err := s.decide(t.Context(), us)
		if err == nil {
			rest, _ := io.ReadAll(c)
			if !strings.HasSuffix(string(b), string(rest)) {
				t.Errorf("%q became %q", b, rest)
			}
		}
		us.Close()
		them.Close()
	})
}

type dummy struct{ net.Listener }

func (dummy) Addr() net.Addr { return &net.TCPAddr{} }

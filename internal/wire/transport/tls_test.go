package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/listen"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestBehindASplitter serves one port in plain text and under TLS, with large bodies that
// are passed through, and looks at the addresses.
func TestBehindASplitter(t *testing.T) {
	cert, key, err := listen.SelfSigned([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	certs, err := listen.NewCertificates([]listen.Source{{Name: "test", Read: func() ([]byte, []byte, error) { return cert, key, nil }}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	split := listen.New(l, certs.Config())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	s := NewServer(Options{Handler: func(r *Request) {
		part := bytes.Clone(r.Body)
		r.Responder().ReplyRecords(0, r.Conn.RemoteAddr().String(), nil, [][]byte{part, part}, nil)
	}})
	go func() { done <- split.Run(ctx) }()
	go func() { done <- s.Serve(ctx, split.Remoting()) }()
	for _, config := range []*tls.Config{nil, {InsecureSkipVerify: true}} {
		c := NewClient(ClientOptions{TLS: config})
		for _, size := range []int{10, 5000, 100000, 6000000} {
			r, err := c.Call(context.Background(), l.Addr().String(), remoting.ReqPullMessage, nil, []byte(strings.Repeat("r", size)))
			if err != nil {
				t.Fatal(err)
			}
			conn, _ := c.Conn(context.Background(), l.Addr().String())
			if len(r.Body) != 2*size || r.Remark != conn.LocalAddr().String() {
				t.Errorf("TLS %v, size %d: %d bytes, from %s", config != nil, size, len(r.Body), r.Remark)
			}
		}
		c.Close()
	}
	cancel()
	s.Shutdown(context.Background())
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// FuzzStream sends bytes as they come, in two writes, to a server that echoes.
func FuzzStream(f *testing.F) {
	one := request(1, "body")
	f.Add(one, one[:7])
	f.Add(one[:9], one[9:])
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), []byte{})
	f.Add(append(bytes.Clone(one), 0xff, 0xff, 0xff, 0xff), one)
	f.Fuzz(func(t *testing.T, a, b []byte) {
		network := NewPipeNetwork()
		l, _ := network.Listen("127.0.0.1:0")
		s := NewServer(Options{Handler: func(r *Request) { r.Responder().Reply(0, "", nil, r.Body) }})
		done := make(chan error, 1)
		go func() {
			nc, err := l.Accept()
			if err == nil {
				err = s.ServeConn(context.Background(), nc)
			}
			done <- err
		}()
		c, err := network.Dial(context.Background(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write(a)
		c.Write(b)
		c.Close()
		<-done
		l.Close()
		s.Shutdown(context.Background())
	})
}

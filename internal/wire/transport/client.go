package transport

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// ClientOptions are the options of a Client.
type ClientOptions struct {
	Options
	Dial        func(ctx context.Context, addr string) (net.Conn, error) // nil: TCP
	TLS         *tls.Config                                              // nil: plain text
	DialTimeout time.Duration                                            // 0: 3 s
}

// Client calls servers by address: one connection to each, made when it is first needed
// and again after it was lost. Many calls share a connection at once.
type Client struct {
	endpoint
	dial        func(ctx context.Context, addr string) (net.Conn, error)
	tls         *tls.Config
	dialTimeout time.Duration
	pool        struct {
		sync.Mutex
		slots  map[string]*slot
		closed bool
	}
	ctx    context.Context // ends with Close: what dialling hangs on
	cancel context.CancelFunc
}

// slot is the connection to one address, or the attempt to make it.
type slot struct {
	ready chan struct{} // closed when conn or err is set
	conn  *Conn
	err   error
}

// NewClient returns a client; it connects to nothing yet.
func NewClient(o ClientOptions) *Client {
	c := &Client{dial: o.Dial, tls: o.TLS, dialTimeout: o.DialTimeout}
	c.init(o.Options, false)
	c.pool.slots = map[string]*slot{}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if c.dial == nil {
		c.dial = func(ctx context.Context, addr string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}
	}
	if c.dialTimeout == 0 {
		c.dialTimeout = 3 * time.Second
	}
	return c
}

// Conn returns the open connection to addr, making it if there is none.
func (c *Client) Conn(ctx context.Context, addr string) (*Conn, error) {
	for {
		c.pool.Lock()
		if c.pool.closed {
			c.pool.Unlock()
			return nil, ErrClosed
		}
		s := c.pool.slots[addr]
		if s == nil {
			s = &slot{ready: make(chan struct{})}
			c.pool.slots[addr] = s
			c.conns.Running.Add(1)
			go c.connect(addr, s)
		}
		c.pool.Unlock()
		select {
		case <-s.ready:
		default:
			select {
			case <-s.ready:
			case <-ctx.Done():
				return nil, fmt.Errorf("connect to %s: %w", addr, ctx.Err())
			}
		}
		if s.err != nil {
			return nil, fmt.Errorf("connect to %s: %w", addr, s.err)
		}
		if !s.conn.Closed() {
			return s.conn, nil
		}
		c.forget(addr, s)
	}
}

// connect fills a slot. It does not depend on the caller who asked first, as others wait
// for it too.
func (c *Client) connect(addr string, s *slot) {
	defer c.conns.Running.Done()
	defer close(s.ready)
	ctx, cancel := context.WithTimeout(c.ctx, c.dialTimeout)
	defer cancel()
	nc, err := c.dial(ctx, addr)
	if err == nil && c.tls != nil {
		t := tls.Client(nc, c.tlsFor(addr))
		if err = t.HandshakeContext(ctx); err != nil {
			nc.Close()
		}
		nc = t
	}
	if err == nil {
		s.conn, err = c.open(nc)
	}
	if err != nil {
		s.err = err
		c.forget(addr, s) // the next caller tries again
		return
	}
	conn := s.conn
	go func() {
		c.run(conn)
		c.forget(addr, s)
	}()
}

func (c *Client) tlsFor(addr string) *tls.Config {
	if c.tls.ServerName != "" || c.tls.InsecureSkipVerify {
		return c.tls
	}
	t := c.tls.Clone()
	if host, _, err := net.SplitHostPort(addr); err == nil {
		t.ServerName = host
	}
	return t
}

func (c *Client) forget(addr string, s *slot) {
	c.pool.Lock()
	if c.pool.slots[addr] == s {
		delete(c.pool.slots, addr)
	}
	c.pool.Unlock()
}

// Call sends a request to addr and waits for the answer.
func (c *Client) Call(ctx context.Context, addr string, code int32, h remoting.Header, body []byte) (*remoting.Command, error) {
	conn, err := c.Conn(ctx, addr)
	if err != nil {
		return nil, err
	}
	return conn.Call(ctx, code, h, body)
}

// Oneway sends a request to addr that is not answered.
func (c *Client) Oneway(ctx context.Context, addr string, code int32, h remoting.Header, body []byte) error {
	conn, err := c.Conn(ctx, addr)
	if err != nil {
		return err
	}
	return conn.Oneway(code, h, body)
}

// Close cuts all connections and returns when they have ended.
func (c *Client) Close() {
	c.pool.Lock()
	c.pool.closed = true
	c.pool.Unlock()
	c.conns.Close()
	c.cancel()
	for _, conn := range c.conns.All() {
		conn.Close()
	}
	c.conns.Running.Wait()
}

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// conn is one Remoting connection of the generator, used by one goroutine: it reads an answer,
// the workload appends the requests that follow from it, and they are written when no whole
// answer is left in the read buffer.
type conn struct {
	net net.Conn
	in  *bufio.Reader
	out []byte

	frame  []byte
	answer remoting.Command
}

func dial(ctx context.Context, addr string) (*conn, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return &conn{net: c, in: bufio.NewReaderSize(c, 256<<10)}, nil
}

func (c *conn) request(code, opaque int32, h remoting.Header, body []byte) {
	c.out = remoting.AppendRequest(c.out, code, opaque, 0, h, body)
}

// oneway appends a request that is not answered.
func (c *conn) oneway(code int32, h remoting.Header) {
	c.out = remoting.AppendRequest(c.out, code, 0, remoting.FlagOneway, h, nil)
}

func (c *conn) flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.net.Write(c.out)
	c.out = c.out[:0]
	return err
}

// next returns the next answer, valid until the next call. Requests are written before it waits.
func (c *conn) next() (*remoting.Command, error) {
	if c.in.Buffered() < remoting.LengthSize {
		if err := c.flush(); err != nil {
			return nil, err
		}
	}
	length, err := c.in.Peek(remoting.LengthSize)
	if err != nil {
		return nil, err
	}
	size, err := remoting.FrameSize(length)
	if err != nil {
		return nil, err
	}
	if c.in.Buffered() < remoting.LengthSize+size {
		if err := c.flush(); err != nil {
			return nil, err
		}
	}
	c.in.Discard(remoting.LengthSize)
	if cap(c.frame) < size {
		c.frame = make([]byte, size+size/2)
	}
	c.frame = c.frame[:size]
	if _, err := io.ReadFull(c.in, c.frame); err != nil {
		return nil, err
	}
	if err := c.answer.Parse(c.frame); err != nil {
		return nil, err
	}
	return &c.answer, nil
}

// loop gives every answer to handle until done is closed or handle is finished.
func (c *conn) loop(ctx context.Context, done <-chan struct{}, handle func(*remoting.Command) (finished bool, err error)) error {
	stop := context.AfterFunc(ctx, func() { c.net.Close() })
	defer stop()
	// What closes done also ends a connection that waits for an answer, which may be a long poll.
	ended := make(chan struct{})
	defer close(ended)
	waiting := newLoops()
	waiting.start(func() error {
		select {
		case <-done:
			c.net.SetReadDeadline(time.Unix(1, 0))
		case <-ended:
		}
		return nil
	})
	for {
		a, err := c.next()
		if err != nil {
			select {
			case <-done:
				return nil
			default:
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection")
			}
			return err
		}
		finished, err := handle(a)
		if finished || err != nil {
			return err
		}
	}
}

func refusal(a *remoting.Command, what string) error {
	return fmt.Errorf("%s is answered with %d: %s", what, a.Code, strings.TrimSpace(a.Remark))
}

// busy reports whether an answer asks to send again later. Apache's timers do so with a code
// that means any error.
func busy(a *remoting.Command) bool {
	switch a.Code {
	case remoting.ResSystemBusy, remoting.ResFlowControl:
		return true
	case remoting.ResSystemError:
		return strings.Contains(a.Remark, "flow control")
	}
	return false
}

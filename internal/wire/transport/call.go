package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// call waits for an answer of the peer.
type call struct {
	done     func(*remoting.Command, error)
	deadline time.Time
}

type result struct {
	answer *remoting.Command
	err    error
}

// Call sends a request to the peer and waits for its answer, which is the caller's to
// keep. A context without a deadline gets Limits.CallTimeout.
func (c *Conn) Call(ctx context.Context, code int32, h remoting.Header, body []byte) (*remoting.Command, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(c.owner.limits.CallTimeout)
	}
	ch := make(chan result, 1)
	opaque, err := c.start(code, h, body, deadline, func(answer *remoting.Command, err error) {
		if answer != nil {
			answer = answer.Clone()
		}
		ch <- result{answer, err}
	})
	if err != nil {
		return nil, err
	}
	var r result
	select {
	case r = <-ch:
	case <-ctx.Done():
		if c.take(opaque) == nil {
			r = <-ch // its answer, or its failure, is on the way
		} else {
			r.err = ctx.Err()
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("%s to %s: %w", remoting.CodeName(code), c.remote, r.err)
	}
	return r.answer, nil
}

// CallAsync sends a request to the peer; done is called once, with the answer or an
// error. It runs on the connection's reader: it must not wait, and the answer is valid
// until it returns. If CallAsync itself returns an error, done is not called. A timeout
// of 0 means Limits.CallTimeout.
func (c *Conn) CallAsync(code int32, h remoting.Header, body []byte, timeout time.Duration, done func(*remoting.Command, error)) error {
	if timeout == 0 {
		timeout = c.owner.limits.CallTimeout
	}
	_, err := c.start(code, h, body, time.Now().Add(timeout), done)
	return err
}

// Oneway sends a request that the peer does not answer.
func (c *Conn) Oneway(code int32, h remoting.Header, body []byte) error {
	if len(body) > maxBody {
		return ErrFrameTooLong
	}
	c.mu.Lock()
	if err := c.mu.closed; err != nil {
		c.mu.Unlock()
		return err
	}
	c.sendLocked(code, c.nextOpaqueLocked(), remoting.FlagOneway, h, body)
	return nil
}

func (c *Conn) start(code int32, h remoting.Header, body []byte, deadline time.Time, done func(*remoting.Command, error)) (int32, error) {
	if len(body) > maxBody {
		return 0, ErrFrameTooLong
	}
	c.mu.Lock()
	if err := c.mu.closed; err != nil {
		c.mu.Unlock()
		return 0, err
	}
	if len(c.mu.calls) >= c.owner.limits.Calls {
		c.mu.Unlock()
		return 0, ErrTooManyCalls
	}
	opaque := c.nextOpaqueLocked()
	if c.mu.calls == nil {
		c.mu.calls = map[int32]*call{}
	}
	c.mu.calls[opaque] = &call{done: done, deadline: deadline}
	c.mu.expiry.watch(c, deadline)
	c.sendLocked(code, opaque, 0, h, body)
	return opaque, nil
}

func (c *Conn) nextOpaqueLocked() int32 {
	for {
		c.mu.lastOpaque++
		if c.mu.lastOpaque < 0 {
			c.mu.lastOpaque = 0
		}
		if _, taken := c.mu.calls[c.mu.lastOpaque]; !taken {
			return c.mu.lastOpaque
		}
	}
}

// sendLocked queues a request and unlocks.
func (c *Conn) sendLocked(code, opaque, flag int32, h remoting.Header, body []byte) {
	out := c.outLocked()
	before := len(out.b)
	out.b = remoting.AppendRequest(out.b, code, opaque, flag, h, body)
	c.queuedLocked(len(out.b) - before)
}

// take removes a call; nil when it is no longer waiting.
func (c *Conn) take(opaque int32) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := c.mu.calls[opaque]
	delete(c.mu.calls, opaque)
	return k
}

// answer gives a response to the call that waits for it. One that nobody waits for any
// more is dropped.
func (c *Conn) answer(r *remoting.Command) {
	if k := c.take(r.Opaque); k != nil {
		k.done(r, nil)
	}
}

// expiry ends calls at their deadlines: one timer for all calls of a connection, set to
// the earliest deadline it has been told of. Calls that are answered leave it alone, so
// with many short calls it fires once per timeout, not once per call.
type expiry struct {
	timer *time.Timer
	at    time.Time // zero when the timer is not set
}

func (e *expiry) watch(c *Conn, deadline time.Time) {
	if !e.at.IsZero() && !deadline.Before(e.at) {
		return
	}
	e.at = deadline
	if e.timer == nil {
		e.timer = time.AfterFunc(time.Until(deadline), c.expire)
	} else {
		e.timer.Reset(time.Until(deadline))
	}
}

func (e *expiry) stop() {
	if e.timer != nil {
		e.timer.Stop()
	}
}

func (c *Conn) expire() {
	now := time.Now()
	var late []*call
	c.mu.Lock()
	c.mu.expiry.at = time.Time{}
	var next time.Time
	for opaque, k := range c.mu.calls {
		switch {
		case !k.deadline.After(now):
			late = append(late, k)
			delete(c.mu.calls, opaque)
		case next.IsZero() || k.deadline.Before(next):
			next = k.deadline
		}
	}
	if !next.IsZero() {
		c.mu.expiry.watch(c, next)
	}
	c.mu.Unlock()
	for _, k := range late {
		k.done(nil, ErrTimeout)
	}
}

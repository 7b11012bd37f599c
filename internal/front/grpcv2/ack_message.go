package grpcv2

import (
	"context"
	"sync"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// ackCall is one AckMessage: its request, its work and its answer. Like a sendCall it is
// pooled, decodes and encodes itself, and its strings alias the request's buffer until the
// answer is encoded.
type ackCall struct {
	buf          mem.Buffer
	group, topic string
	entries      []ackEntry
	tooMany      bool // more than maxEntries: the rest was not read
	handles      []receipt.Handle
	index        []int // of the entry that a handle is from

	completed chan []error
	complete  func([]error)

	code v2.Code
	text string
}

// maxEntries bounds what is kept of a request: an empty entry is two bytes on the wire.
const maxEntries = 10_000

// ackEntry is one entry of the request, and of the answer.
type ackEntry struct {
	id, handle string
	err        error
	code       v2.Code
	text       string
}

var ackCalls = sync.Pool{New: func() any {
	c := &ackCall{completed: make(chan []error, 1)}
	c.complete = func(errs []error) { c.completed <- errs }
	return c
}}

func (c *ackCall) release() {
	if c.buf != nil {
		c.buf.Free()
		c.buf = nil
	}
	if cap(c.entries) > 1024 {
		return // an exceptional call's memory is not kept
	}
	clear(c.entries)
	c.entries, c.handles, c.index = c.entries[:0], c.handles[:0], c.index[:0]
	c.group, c.topic, c.text, c.tooMany = "", "", "", false
	ackCalls.Put(c)
}

// ackMessageHandler stands in for the generated handler, as sendMessageHandler does.
func ackMessageHandler(srv any, ctx context.Context, dec func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
	c := ackCalls.Get().(*ackCall)
	if err := dec(c); err != nil {
		c.release()
		return nil, err
	}
	s := srv.(*Service)
	if interceptor == nil {
		s.ackMessage(ctx, c)
		return c, nil
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: v2.MessagingService_AckMessage_FullMethodName}
	return interceptor(ctx, c, info, func(ctx context.Context, req any) (any, error) {
		s.ackMessage(ctx, req.(*ackCall))
		return req, nil
	})
}

// ackMessage acknowledges the entries, all in one call to the broker, which commits them
// together.
func (s *Service) ackMessage(ctx context.Context, c *ackCall) {
	s.calls.begin()
	defer s.calls.end()
	if err := s.tryAck(ctx, c); err != nil {
		c.code, c.text = s.codeOf("AckMessage", err)
		c.entries = c.entries[:0]
		return
	}
	s.settleAck(c)
}

// settleAck writes the statuses of the answer: one per entry, and theirs overall where
// they agree.
func (s *Service) settleAck(c *ackCall) {
	c.code, c.text = v2.Code_INTERNAL_SERVER_ERROR, "ack message result is empty"
	for i := range c.entries {
		e := &c.entries[i]
		e.code, e.text = s.codeOf("AckMessage", e.err)
		switch {
		case i == 0:
			c.code, c.text = e.code, e.text
		case e.code != c.code:
			c.code, c.text = v2.Code_MULTIPLE_RESULTS, v2.Code_MULTIPLE_RESULTS.String()
		}
	}
}

func (s *Service) tryAck(ctx context.Context, c *ackCall) error {
	if _, err := clientID(ctx); err != nil {
		return err
	}
	if err := checkTopic(c.topic); err != nil {
		return err
	}
	if err := checkGroup(c.group); err != nil {
		return err
	}
	if c.tooMany {
		return refuse(v2.Code_BAD_REQUEST, "a request has at most %d entries", maxEntries)
	}
	for i := range c.entries {
		h, err := parseHandle(c.entries[i].handle)
		if err != nil {
			c.entries[i].err = err
			continue
		}
		c.handles, c.index = append(c.handles, h), append(c.index, i)
	}
	if len(c.handles) == 0 {
		return nil
	}
	s.proxy.Ack(c.group, c.topic, c.handles, c.complete)
	// The broker answers when the acks are as durable as they should be. They count
	// whether the caller still waits or not, and their names lie in the request's buffer.
	for k, err := range <-c.completed {
		c.entries[c.index[k]].err = err
	}
	return nil
}

// parseHandle reads a receipt handle; whatever is no handle has the status of one that is
// not valid any more, so that no client tries it again.
func parseHandle(text string) (receipt.Handle, error) {
	h, err := receipt.Parse(text)
	if err != nil {
		return h, refuse(v2.Code_INVALID_RECEIPT_HANDLE, "%s", err)
	}
	return h, nil
}

// readWire implements wireReader: an AckMessageRequest.
func (c *ackCall) readWire(buf mem.Buffer) (err error) {
	c.buf = buf
	b := buf.ReadOnlyData()
	for len(b) > 0 {
		var num protowire.Number
		var v []byte
		if num, v, _, b, err = nextField(b); err != nil {
			return err
		}
		if v == nil {
			continue
		}
		switch num {
		case 1:
			_, c.group, err = readResource(v, c.group)
		case 2:
			_, c.topic, err = readResource(v, c.topic)
		case 3:
			if len(c.entries) == maxEntries {
				c.tooMany = true
				continue
			}
			c.entries = append(c.entries, ackEntry{})
			err = c.entries[len(c.entries)-1].read(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *ackEntry) read(b []byte) (err error) {
	for len(b) > 0 {
		var num protowire.Number
		var v []byte
		if num, v, _, b, err = nextField(b); err != nil {
			return err
		}
		if v == nil {
			continue
		}
		switch num {
		case 1:
			e.id, err = text(v)
		case 2:
			e.handle, err = text(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// appendWire implements wireWriter: it encodes the AckMessageResponse and releases the
// call.
func (c *ackCall) appendWire() (mem.BufferSlice, error) {
	size := statusFieldSize(1, c.code, c.text)
	for i := range c.entries {
		size += protowire.SizeTag(2) + protowire.SizeBytes(c.entries[i].size())
	}
	pool := mem.DefaultBufferPool()
	buf := pool.Get(size)
	b := appendStatusField((*buf)[:0], 1, c.code, c.text)
	for i := range c.entries {
		e := &c.entries[i]
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(e.size()))
		b = appendString(b, 1, e.id)
		b = appendString(b, 2, e.handle)
		b = appendStatusField(b, 3, e.code, e.text)
	}
	*buf = b
	c.release()
	return mem.BufferSlice{mem.NewBuffer(buf, pool)}, nil
}

func (e *ackEntry) size() int {
	return stringSize(1, e.id) + stringSize(2, e.handle) + statusFieldSize(3, e.code, e.text)
}

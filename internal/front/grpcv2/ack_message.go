package grpcv2

import (
	"cmp"
	"sync"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bolidemq/bolide/internal/wire/h2"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// ackCall is one AckMessage: its request, its work and its answer. Like a sendCall it is
// pooled, decodes and encodes itself, and its strings alias the request's bytes until the
// call is answered.
type ackCall struct {
	s            *Service
	call         *h2.Call
	group, topic string
	entries      []ackEntry
	tooMany      bool // more than maxEntries: the rest was not read
	handles      []receipt.Handle
	index        []int // of the entry that a handle is from

	complete func([]error) // is finish

	code v2.Code
	text string
}

// maxEntries bounds what is kept of a request: an empty entry is two bytes on the wire.
const maxEntries = 10_000

// ackEntry is one entry of the request, and of the answer.
type ackEntry struct {
	id, handle string
	lite       string // topic
	err        error
	code       v2.Code
	text       string
}

var ackCalls sync.Pool

func newAckCall() *ackCall {
	c, _ := ackCalls.Get().(*ackCall)
	if c == nil {
		c = &ackCall{}
		c.complete = c.finish
	}
	return c
}

func (c *ackCall) release() {
	c.s, c.call = nil, nil
	if cap(c.entries) > 1024 {
		return // an exceptional call's memory is not kept
	}
	clear(c.entries)
	c.entries, c.handles, c.index = c.entries[:0], c.handles[:0], c.index[:0]
	c.group, c.topic, c.text, c.tooMany = "", "", "", false
	ackCalls.Put(c)
}

// ackMessage serves the RPC: it acknowledges the entries, all in one call to the broker,
// which commits them together.
func (s *Service) ackMessage(call *h2.Call) {
	c := newAckCall()
	if err := c.read(call.Message()); err != nil {
		c.release()
		call.Fail(codes.Internal, "the request can't be read: "+err.Error())
		s.calls.end()
		return
	}
	c.s, c.call = s, call
	if err := s.tryAck(c); err != nil {
		c.code, c.text = s.codeOf("AckMessage", err)
		c.entries = c.entries[:0]
		c.answer()
	}
}

// finish takes what became of the handles.
func (c *ackCall) finish(errs []error) {
	for k, err := range errs {
		c.entries[c.index[k]].err = err
	}
	c.settle()
	c.answer()
}

func (c *ackCall) answer() {
	s, call := c.s, c.call
	b := h2.NewBuffer()
	at := b.Begin()
	b.B = c.appendAnswer(b.B)
	b.End(at)
	c.release()
	call.Answer(b, nil)
	s.calls.end()
}

// settle writes the statuses of the answer: one per entry, and theirs overall where they
// agree.
func (c *ackCall) settle() {
	c.code, c.text = v2.Code_INTERNAL_SERVER_ERROR, "ack message result is empty"
	for i := range c.entries {
		e := &c.entries[i]
		e.code, e.text = c.s.codeOf("AckMessage", e.err)
		switch {
		case i == 0:
			c.code, c.text = e.code, e.text
		case e.code != c.code:
			c.code, c.text = v2.Code_MULTIPLE_RESULTS, v2.Code_MULTIPLE_RESULTS.String()
		}
	}
}

// tryAck hands the acknowledgements on, or says why none of them is; then it is not
// completed.
func (s *Service) tryAck(c *ackCall) error {
	if _, err := clientID(c.call); err != nil {
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
		h.Lite = cmp.Or(h.Lite, c.entries[i].lite)
		c.handles, c.index = append(c.handles, h), append(c.index, i)
	}
	if len(c.handles) == 0 {
		c.finish(nil)
		return nil
	}
	// The broker answers when the acks are as durable as they should be. They count
	// whether the caller still waits or not.
	s.proxy.Ack(c.group, c.topic, c.handles, c.complete)
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

// read reads an AckMessageRequest, which must stay what it is for as long as c is used.
func (c *ackCall) read(b []byte) error {
	return eachPart(b, func(num protowire.Number, v []byte) (err error) {
		switch num {
		case 1:
			_, c.group, err = readResource(v, c.group)
		case 2:
			_, c.topic, err = readResource(v, c.topic)
		case 3:
			if len(c.entries) == maxEntries {
				c.tooMany = true
				return nil
			}
			c.entries = append(c.entries, ackEntry{})
			err = c.entries[len(c.entries)-1].read(v)
		}
		return err
	})
}

func (e *ackEntry) read(b []byte) error {
	return eachPart(b, func(num protowire.Number, v []byte) (err error) {
		switch num {
		case 1:
			e.id, err = text(v)
		case 2:
			e.handle, err = text(v)
		case 3:
			e.lite, err = text(v)
		}
		return err
	})
}

// appendAnswer encodes the AckMessageResponse.
func (c *ackCall) appendAnswer(b []byte) []byte {
	b = appendStatusField(b, 1, c.code, c.text)
	for i := range c.entries {
		e := &c.entries[i]
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(e.size()))
		b = appendString(b, 1, e.id)
		b = appendString(b, 2, e.handle)
		b = appendStatusField(b, 3, e.code, e.text)
	}
	return b
}

func (e *ackEntry) size() int {
	return stringSize(1, e.id) + stringSize(2, e.handle) + statusFieldSize(3, e.code, e.text)
}

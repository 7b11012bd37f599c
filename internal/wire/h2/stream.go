package h2

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// stream is a call whose handler is a goroutine: what grpc-go's generated code expects, a
// grpc.ServerStream.
type stream struct {
	k      *Call
	ctx    context.Context
	cancel context.CancelFunc
	ready  chan struct{} // something has arrived

	// Under conn.mu: what has arrived of a call whose client streams.
	messages [][]byte
	queued   int // their bytes, and what they cost besides
	withheld int // bytes that are granted when the handler has caught up
	ended    bool
}

// keepQueued is how much of a client's stream waits for the handler before the client is
// granted no more.
const keepQueued = 256 << 10

// messageCost is what a message counts beside its bytes: there may be many without any.
const messageCost = 64

// serve runs the handler as a goroutine.
func (k *Call) serve() {
	c := k.conn
	s := &stream{k: k, ready: make(chan struct{}, 1)}
	ctx := metadata.NewIncomingContext(c.ctx, k.metadata())
	if k.deadline.IsZero() {
		s.ctx, s.cancel = context.WithCancel(ctx)
	} else {
		s.ctx, s.cancel = context.WithDeadline(ctx, k.deadline)
	}
	c.mu.Lock()
	k.stream = s
	s.ended = k.ended
	c.mu.running++
	c.mu.Unlock()
	c.server.conns.Running.Add(1)
	go s.serve()
}

func (s *stream) serve() {
	k := s.k
	defer k.conn.server.conns.Running.Done()
	defer func() {
		s.cancel()
		k.conn.mu.Lock()
		k.conn.mu.running--
		k.conn.mu.Unlock()
	}()
	defer func() {
		if p := recover(); p != nil {
			k.conn.server.log.Error("handler panicked", "method", k.method.path, "remote", k.conn.remote, "panic", p, "stack", string(debug.Stack()))
			k.Fail(codes.Internal, "the handler failed")
		}
	}()
	b, err := s.handle()
	if err != nil {
		code, text := s.statusOf(err)
		k.Fail(code, text)
		return
	}
	k.Answer(b, nil)
}

// handle calls the generated code.
func (s *stream) handle() (*Buffer, error) {
	m := s.k.method
	if m.unary == nil {
		return nil, m.stream.Handler(m.impl, s)
	}
	reply, err := m.unary.Handler(m.impl, s.ctx, s.request, nil)
	if err != nil {
		return nil, err
	}
	return encode(reply)
}

// request decodes the one message of a call.
func (s *stream) request(m any) error { return decode(s.k.Message(), m) }

func decode(b []byte, m any) error {
	p, ok := m.(proto.Message)
	if !ok {
		return status.Error(codes.Internal, fmt.Sprintf("%T is no message", m))
	}
	if err := proto.Unmarshal(b, p); err != nil {
		return status.Error(codes.Internal, "the request can't be read: "+err.Error())
	}
	return nil
}

func encode(m any) (*Buffer, error) {
	p, ok := m.(proto.Message)
	if !ok {
		return nil, status.Error(codes.Internal, fmt.Sprintf("%T is no message", m))
	}
	b := NewBuffer()
	at := b.Begin()
	var err error
	if b.B, err = (proto.MarshalOptions{}).MarshalAppend(b.B, p); err != nil {
		b.Free()
		return nil, status.Error(codes.Internal, "the answer can't be written: "+err.Error())
	}
	b.End(at)
	return b, nil
}

func (s *stream) statusOf(err error) (codes.Code, string) {
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	if st.Code() == codes.Canceled && s.k.conn.server.conns.Closed() {
		return codes.Unavailable, ErrShutdown.Error()
	}
	return st.Code(), st.Message()
}

// metadata is what handlers see of the headers.
func (k *Call) metadata() metadata.MD {
	md := make(metadata.MD, len(k.fields))
	for _, f := range k.fields {
		switch f.Name {
		case "te", "grpc-timeout", "grpc-encoding", "grpc-accept-encoding":
			continue
		}
		v := f.Value
		if strings.HasSuffix(f.Name, "-bin") {
			raw, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(v, "="))
			if err != nil {
				continue
			}
			v = string(raw)
		}
		md[f.Name] = append(md[f.Name], v)
	}
	return md
}

// arrived takes the whole messages out of what has come. It runs on the reader.
func (s *stream) arrived(size int) error {
	k := s.k
	var whole [][]byte
	cost, at := 0, 0
	for {
		n, ok := messageSize(k.in.B[at:])
		if ok && n > k.method.most {
			k.refuse(codes.ResourceExhausted, fmt.Sprintf("the message has %d bytes, the most is %d", n, k.method.most))
			return nil
		}
		if !ok || len(k.in.B)-at < messagePrefix+n {
			break
		}
		if k.in.B[at] != 0 {
			k.refuse(codes.Unimplemented, "the message is compressed; no compression is served")
			return nil
		}
		m := make([]byte, n)
		copy(m, k.in.B[at+messagePrefix:])
		whole, cost, at = append(whole, m), cost+n+messageCost, at+messagePrefix+n
	}
	k.in.B = append(k.in.B[:0], k.in.B[at:]...)
	if len(k.in.B) == 0 { // most of the time: a stream is idle most of the time
		k.in.Free()
		k.in = nil
	}
	c := k.conn
	c.mu.Lock()
	if at > 0 {
		k.uncountLocked()
	}
	s.messages = append(s.messages, whole...)
	s.queued += cost
	s.ended = k.ended
	if s.queued > keepQueued {
		s.withheld += size
		size = 0
	}
	c.mu.Unlock()
	k.grant(size)
	s.wake()
	return nil
}

func (s *stream) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// RecvMsg implements grpc.ServerStream.
func (s *stream) RecvMsg(m any) error {
	if !s.k.method.streams() {
		if s.k.in == nil {
			return io.EOF
		}
		err := s.request(m)
		s.k.freeRequest()
		return err
	}
	c := s.k.conn
	for {
		c.mu.Lock()
		if len(s.messages) > 0 {
			b := s.messages[0]
			s.messages = s.messages[1:]
			s.queued -= len(b) + messageCost
			grant := 0
			if s.queued <= keepQueued {
				grant, s.withheld = s.withheld, 0
			}
			c.mu.Unlock()
			s.k.grant(grant)
			return decode(b, m)
		}
		ended := s.ended
		c.mu.Unlock()
		if ended {
			return io.EOF
		}
		select {
		case <-s.ready:
		case <-s.ctx.Done():
			return status.FromContextError(s.ctx.Err()).Err()
		}
	}
}

// maxWaiting is how much a handler may send that its client does not take.
const maxWaiting = 1 << 20

var errNotTaken = errors.New("the client does not read what it is sent")

// SendMsg implements grpc.ServerStream. It never blocks: a client that does not read is
// told so little that its stream is given up instead.
func (s *stream) SendMsg(m any) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	k := s.k
	c := k.conn
	c.mu.Lock()
	switch {
	case k.gone || k.trailer != trailerNone || c.mu.closed != nil:
		c.mu.Unlock()
		b.Free()
		return status.Error(codes.Canceled, "the client has gone")
	case k.out != nil && len(k.out.B)-k.outAt > maxWaiting:
		c.mu.Unlock()
		b.Free()
		return status.Error(codes.ResourceExhausted, errNotTaken.Error())
	}
	k.addLocked(b)
	k.sendLocked() // unlocks
	return nil
}

// Context implements grpc.ServerStream.
func (s *stream) Context() context.Context { return s.ctx }

// SetHeader implements grpc.ServerStream; answers have no headers of their own.
func (s *stream) SetHeader(metadata.MD) error { return errHeaders }

// SendHeader implements grpc.ServerStream; answers have no headers of their own.
func (s *stream) SendHeader(metadata.MD) error { return errHeaders }

// SetTrailer implements grpc.ServerStream; answers have no trailers of their own.
func (s *stream) SetTrailer(metadata.MD) {}

var errHeaders = status.Error(codes.Internal, "answers have no headers of their own")

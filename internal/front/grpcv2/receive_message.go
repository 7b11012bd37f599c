package grpcv2

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"

	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Times of a long poll.
const (
	minPolling = 5 * time.Second
	maxPolling = 20 * time.Second
	// pollingGrace is how much of minPolling may be gone when the request arrives: a
	// client that asks for just minPolling has spent some of it on the way.
	pollingGrace = 500 * time.Millisecond
	// answerMargin is left before the caller's deadline, so that the answer of a poll
	// that ends empty, or finds something at the last moment, still gets there.
	answerMargin = 300 * time.Millisecond
	// autoRenewInvisible is the invisible time that the broker extends while the client
	// is there.
	autoRenewInvisible    = time.Minute
	defaultRequestTimeout = 3 * time.Second
)

// maxAnswering is how many bytes of messages may be on their way to clients before
// receives are refused. grpc-go writes what the client reads: one that does not read holds
// its answer in memory for as long as it stays connected.
const maxAnswering = 128 << 20

// ReceiveMessage implements v2.MessagingServiceServer.
func (s *Service) ReceiveMessage(req *v2.ReceiveMessageRequest, stream grpc.ServerStreamingServer[v2.ReceiveMessageResponse]) error {
	s.calls.begin()
	defer s.calls.end()
	ctx := stream.Context()
	w := receiveWriter{stream: stream, ctx: ctx, s: s, req: req, now: s.clock.NowMilli}
	q, route, err := s.popRequest(ctx, req)
	if err != nil {
		return w.refuse(err)
	}
	w.digest = digestFor(header(ctx, headerLanguage))
	wait := &receiveWait{answer: make(chan struct{}), giveBack: w.giveBack}
	withdraw := s.proxy.Receive(route, q, wait.done)
	select {
	case <-wait.answer:
	case <-ctx.Done():
		if wait.abandon() {
			withdraw()
			return ctx.Err()
		}
	case <-s.stopping:
		if wait.abandon() {
			withdraw()
			return w.refuse(errNoNew)
		}
	}
	if wait.err != nil {
		return w.refuse(wait.err)
	}
	return w.write(&wait.popped)
}

// popRequest checks the request and translates it. It needs no settings: what they would
// say, the group's configuration says too.
func (s *Service) popRequest(ctx context.Context, req *v2.ReceiveMessageRequest) (q proxy.PopRequest, route *proxy.Route, err error) {
	id, err := clientID(ctx)
	if err != nil {
		return q, nil, err
	}
	requestTimeout := defaultRequestTimeout
	if c := s.proxy.Client(id); c != nil && c.Settings.RequestTimeout > 0 {
		requestTimeout = c.Settings.RequestTimeout
	}
	var asked time.Duration
	if d := req.GetLongPollingTimeout(); d != nil {
		asked = d.AsDuration()
	}
	remaining := time.Duration(-1)
	if deadline, is := ctx.Deadline(); is {
		remaining = max(0, time.Until(deadline))
	}
	if s.answering.Load() > maxAnswering {
		return q, nil, refuse(v2.Code_TOO_MANY_REQUESTS, "%d MiB of messages wait for clients that do not read them", maxAnswering>>20)
	}
	if q.PollTime, err = pollTime(asked, remaining, requestTimeout, header(ctx, headerVersion)); err != nil {
		return q, nil, err
	}
	q.Topic, q.Group, err = topicAndGroup(req.GetMessageQueue().GetTopic(), req.GetGroup())
	if err != nil {
		return q, nil, err
	}
	q.AutoRenew = req.GetAutoRenew()
	if q.InvisibleTime = autoRenewInvisible; !q.AutoRenew {
		q.InvisibleTime = req.GetInvisibleDuration().AsDuration()
		if err = checkInvisible(q.InvisibleTime, minInvisible); err != nil {
			return q, nil, err
		}
	}
	if q.Filter, err = s.compileFilter(req.GetFilterExpression()); err != nil {
		return q, nil, err
	}
	if route, err = s.proxy.Route(ctx, q.Topic); err != nil {
		return q, nil, err
	}
	group, err := s.proxy.Group(ctx, q.Group)
	if err != nil {
		return q, nil, err
	}
	q.Order = group.FIFO
	q.Broker = req.GetMessageQueue().GetBroker().GetName()
	q.QueueID = -1
	q.Max = min(max(int(req.GetBatchSize()), 1), maxBatch)
	q.AttemptID = req.GetAttemptId()
	q.Holder = id
	q.OnePerGroup = true
	return q, route, nil
}

// pollTime is how long a receive waits for its first message: what the client asked for,
// else what its deadline leaves, but never past the deadline. remaining is negative
// without a deadline.
func pollTime(asked, remaining, requestTimeout time.Duration, version string) (time.Duration, error) {
	d := asked
	if d <= 0 {
		if d = maxPolling; remaining >= 0 {
			d = remaining - requestTimeout/2
		}
	}
	d = min(max(d, minPolling), maxPolling)
	if remaining < 0 {
		return d, nil
	}
	if d > remaining && remaining < minPolling-pollingGrace {
		code := v2.Code_ILLEGAL_POLLING_TIME
		if version < "5.0.3" { // older clients do not know that code
			code = v2.Code_BAD_REQUEST
		}
		return 0, refuse(code, "the deadline leaves %d ms, polling takes at least %d ms", remaining.Milliseconds(), minPolling.Milliseconds())
	}
	return min(d, remaining-answerMargin), nil
}

func (s *Service) compileFilter(e *v2.FilterExpression) (*filter.Expression, error) {
	kind := filter.KindTag
	if e.GetType() == v2.FilterType_SQL {
		kind = filter.KindSQL92
	}
	x, err := s.filters.Compile(kind, e.GetExpression())
	if err != nil {
		return nil, refuse(v2.Code_ILLEGAL_FILTER_EXPRESSION, "%s", err)
	}
	return x, nil
}

// receiveWait is the meeting of a pop's completion and the call that waits for it. When
// the call has gone first, messages that come nevertheless are given back.
type receiveWait struct {
	state    atomic.Int32 // 0 waiting, 1 answered, 2 abandoned
	answer   chan struct{}
	popped   proxy.Popped
	err      error
	giveBack func(p *proxy.Popped)
}

func (w *receiveWait) done(p proxy.Popped, err error) {
	w.popped, w.err = p, err
	if w.state.CompareAndSwap(0, 1) {
		close(w.answer)
		return
	}
	if err == nil {
		w.giveBack(&p)
		release(&p)
	}
}

// abandon reports whether no answer will be used any more; else the answer has come just
// now and is to be used.
func (w *receiveWait) abandon() bool { return w.state.CompareAndSwap(0, 2) }

func release(p *proxy.Popped) {
	if p.Release != nil {
		p.Release()
	}
}

var errNoNew = refuse(v2.Code_MESSAGE_NOT_FOUND, "no new message")

// receiveWriter writes the answer of one receive: status, messages, delivery timestamp.
type receiveWriter struct {
	stream grpc.ServerStream
	ctx    context.Context
	s      *Service
	req    *v2.ReceiveMessageRequest
	digest digestKind
	now    func() int64
}

func (w *receiveWriter) refuse(err error) error {
	f := statusFrame(w.s.status("ReceiveMessage", err))
	if err := w.stream.SendMsg(&f); err != nil {
		return err
	}
	return w.end()
}

func (w *receiveWriter) end() error {
	f := timestampFrame(w.now())
	return w.stream.SendMsg(&f)
}

func (w *receiveWriter) write(p *proxy.Popped) error {
	defer release(p)
	switch p.Status {
	case proxy.PopFound:
	case proxy.PopNoMatch:
		return w.refuse(refuse(v2.Code_MESSAGE_NOT_FOUND, "no match message"))
	case proxy.PopPollingFull:
		return w.refuse(refuse(v2.Code_TOO_MANY_REQUESTS, "polling full"))
	case proxy.PopThrottled:
		return w.refuse(refuse(v2.Code_TOO_MANY_REQUESTS, "%s", p.Reason))
	default:
		return w.refuse(errNoNew)
	}
	size := sizeOf(p)
	w.s.answering.Add(size)
	defer w.s.answering.Add(-size)
	err := w.messages(p)
	if err == nil {
		err = w.ctx.Err()
	}
	if err != nil {
		// The client went away while the answer was on its way. Clients use an answer only
		// when it is complete, so all of it is somebody else's now.
		w.giveBack(p)
	}
	return err
}

func sizeOf(p *proxy.Popped) (n int64) {
	for i := range p.Batches {
		for k := range p.Batches[i].Records {
			n += int64(len(p.Batches[i].Records[k].Bytes))
		}
	}
	return n
}

func (w *receiveWriter) messages(p *proxy.Popped) error {
	f := okFrame
	if err := w.stream.SendMsg(&f); err != nil {
		return err
	}
	enc := deliveryEncoder{topic: w.req.GetMessageQueue().GetTopic(), digest: w.digest, popped: p}
	for i := range p.Batches {
		b := &p.Batches[i]
		for k := range b.Records {
			if err := enc.set(b, k); err != nil {
				w.s.log.Error("a stored record can't be read", "topic", enc.topic.GetName(), "queue", b.QueueID,
					"offset", b.Records[k].QueueOffset, "err", err)
				continue
			}
			if err := w.stream.SendMsg(&enc); err != nil {
				return err
			}
		}
	}
	return w.end()
}

// giveBack makes the messages of p visible again at once, without counting an attempt.
func (w *receiveWriter) giveBack(p *proxy.Popped) {
	topic, group := w.req.GetMessageQueue().GetTopic().GetName(), w.req.GetGroup().GetName()
	for i := range p.Batches {
		b := &p.Batches[i]
		for k := range b.Records {
			w.s.proxy.ChangeInvisible(proxy.ChangeRequest{Group: group, Topic: topic,
				Handle: handleOf(p, b, k), Suspend: true}, w.givenBack)
		}
	}
}

// givenBack takes the outcome of one message of giveBack: one that is not given back now
// comes back when its invisible time lapses.
func (w *receiveWriter) givenBack(_ receipt.Handle, err error) {
	if err != nil && !errors.Is(err, proxy.ErrExpiredHandle) && !errors.Is(err, proxy.ErrStaleHandle) {
		w.s.log.Warn("a message that a client did not wait for could not be given back", "err", err)
	}
}

// handleOf names the delivery of the k-th record of b.
func handleOf(p *proxy.Popped, b *proxy.PopBatch, k int) receipt.Handle {
	r := &b.Records[k]
	return receipt.Handle{
		StartOffset:   b.StartOffset,
		PopTime:       p.PopTime,
		InvisibleTime: p.InvisibleTime,
		ReviveQueue:   p.ReviveQueue,
		RetryFlag:     b.RetryFlag,
		Broker:        p.Broker,
		QueueID:       b.QueueID,
		Offset:        r.QueueOffset,
		LogOffset:     r.PhysicalOffset,
	}
}

package grpcv2

import (
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/h2"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Times of a long poll.
const (
	// pollingGrace is how much of the shortest poll may be gone when the request arrives: a
	// client that asks for just that has spent some of it on the way.
	pollingGrace = 500 * time.Millisecond
	// answerMargin is left before the caller's deadline, so that the answer of a poll
	// that ends empty, or finds something at the last moment, still gets there.
	answerMargin          = 300 * time.Millisecond
	defaultRequestTimeout = 3 * time.Second
)

// maxAnswering is how many bytes of messages may be on their way to clients before
// receives are refused: one that does not read holds its answer in memory for as long as
// it stays connected.
const maxAnswering = 128 << 20

// ReceiveMessage implements v2.MessagingServiceServer; Register has the call served by
// receiveMessage instead.
func (s *Service) ReceiveMessage(*v2.ReceiveMessageRequest, grpc.ServerStreamingServer[v2.ReceiveMessageResponse]) error {
	return status.Error(codes.Unimplemented, "served directly")
}

// receiveMessage serves the RPC. While it waits for messages it is an entry in the
// broker's long polls and in s.receives, and no goroutine.
func (s *Service) receiveMessage(call *h2.Call) {
	r := &receive{s: s, call: call}
	var req v2.ReceiveMessageRequest
	if err := proto.Unmarshal(call.Message(), &req); err != nil {
		call.Fail(codes.Internal, "the request can't be read: "+err.Error())
		s.calls.end()
		return
	}
	q, route, err := s.popRequest(call, &req)
	if err != nil {
		r.refuse(err)
		return
	}
	r.topic, r.group = req.GetMessageQueue().GetTopic(), q.Group
	if !s.receives.add(r) {
		r.refuse(errNoNew)
		return
	}
	call.OnCancel(r.abandon)
	r.mayWithdraw(s.proxy.Receive(route, q, r.done))
}

// popRequest checks the request and translates it. It needs no settings: what they would
// say, the group's configuration says too.
func (s *Service) popRequest(call *h2.Call, req *v2.ReceiveMessageRequest) (q proxy.PopRequest, route *proxy.Route, err error) {
	id, err := clientID(call)
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
	if deadline, is := call.Deadline(); is {
		remaining = max(0, time.Until(deadline))
	}
	if s.answering.Load() > maxAnswering {
		return q, nil, refuse(v2.Code_TOO_MANY_REQUESTS, "%d MiB of messages wait for clients that do not read them", maxAnswering>>20)
	}
	if q.PollTime, err = s.polls().time(asked, remaining, requestTimeout, call.Header(headerVersion)); err != nil {
		return q, nil, err
	}
	q.Topic, q.Group, err = topicAndGroup(req.GetMessageQueue().GetTopic(), req.GetGroup())
	if err != nil {
		return q, nil, err
	}
	q.AutoRenew = req.GetAutoRenew()
	// The broker extends the default one while the client is there.
	if q.InvisibleTime = milliseconds(s.limits.DefaultInvisibleTimeMills); !q.AutoRenew {
		q.InvisibleTime = req.GetInvisibleDuration().AsDuration()
		if err = checkInvisible(q.InvisibleTime, milliseconds(s.limits.MinInvisibleTimeMillsOnRecv), milliseconds(s.limits.MaxInvisibleTimeMills)); err != nil {
			return q, nil, err
		}
	}
	if q.Filter, err = s.compileFilter(req.GetFilterExpression()); err != nil {
		return q, nil, err
	}
	if route, err = s.proxy.Route(call.Context(), q.Topic); err != nil {
		return q, nil, err
	}
	group, err := s.proxy.Group(call.Context(), q.Group)
	if err != nil {
		return q, nil, err
	}
	if err = checkMode(s.proxy.Client(id), &group); err != nil {
		return q, nil, err
	}
	q.Order, q.Lite = group.FIFO, group.LiteTopic != ""
	q.Broker = req.GetMessageQueue().GetBroker().GetName()
	q.QueueID = -1
	q.Max = min(max(int(req.GetBatchSize()), 1), maxBatch)
	q.AttemptID = req.GetAttemptId()
	q.Holder = id
	q.OnePerGroup = true
	return q, route, nil
}

// polls is how long a receive may wait.
type polls struct{ least, most time.Duration }

func (s *Service) polls() polls {
	return polls{milliseconds(s.limits.LongPollingMinTimeMillis), milliseconds(s.limits.LongPollingMaxTimeMillis)}
}

// time is how long a receive waits for its first message: what the client asked for,
// else what its deadline leaves, but never past the deadline. remaining is negative
// without a deadline.
func (p polls) time(asked, remaining, requestTimeout time.Duration, version string) (time.Duration, error) {
	d := asked
	if d <= 0 {
		if d = p.most; remaining >= 0 {
			d = remaining - requestTimeout/2
		}
	}
	d = min(max(d, p.least), p.most)
	if remaining < 0 {
		return d, nil
	}
	if d > remaining && remaining < p.least-pollingGrace {
		code := v2.Code_ILLEGAL_POLLING_TIME
		if version < "5.0.3" { // older clients do not know that code
			code = v2.Code_BAD_REQUEST
		}
		return 0, refuse(code, "the deadline leaves %d ms, polling takes at least %d ms", remaining.Milliseconds(), p.least.Milliseconds())
	}
	return max(0, min(d, remaining-answerMargin)), nil
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

var errNoNew = refuse(v2.Code_MESSAGE_NOT_FOUND, "no new message")

// receive is one ReceiveMessage: the meeting of a pop's completion and of whatever else
// may end the wait. Messages that come when the wait is over are given back.
type receive struct {
	s     *Service
	call  *h2.Call
	topic *v2.Resource
	group string

	mu       sync.Mutex
	over     bool // answered or abandoned
	gaveUp   bool // nobody wants the pop's messages
	withdraw func()
}

// end ends the wait; it reports whether it is the one that does.
func (r *receive) end(giveUp bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return false
	}
	r.over, r.gaveUp = true, giveUp
	return true
}

// mayWithdraw takes what tells the broker that nobody waits any more.
func (r *receive) mayWithdraw(withdraw func()) {
	r.mu.Lock()
	r.withdraw = withdraw
	gaveUp := r.gaveUp
	r.mu.Unlock()
	if gaveUp {
		withdraw()
	}
}

// giveUp ends the wait before the pop does; it reports whether it has.
func (r *receive) giveUp() bool {
	if !r.end(true) {
		return false
	}
	r.s.receives.remove(r)
	r.mu.Lock()
	withdraw := r.withdraw
	r.mu.Unlock()
	if withdraw != nil {
		withdraw()
	}
	return true
}

// abandon ends the wait of a client that has gone.
func (r *receive) abandon() {
	if r.giveUp() {
		r.s.calls.end()
	}
}

// stop answers a receive that waits when the server stops.
func (r *receive) stop() {
	if r.giveUp() {
		r.refuse(errNoNew)
	}
}

// done takes the pop's result.
func (r *receive) done(p proxy.Popped, err error) {
	if !r.end(false) {
		if err == nil {
			r.giveBack(&p)
			release(&p)
		}
		return
	}
	r.s.receives.remove(r)
	switch {
	case err != nil:
		r.refuse(err)
	case p.Status == proxy.PopFound:
		r.answer(&p)
	default:
		release(&p)
		r.refuse(refusalOf(&p))
	}
}

func refusalOf(p *proxy.Popped) error {
	switch p.Status {
	case proxy.PopNoMatch:
		return refuse(v2.Code_MESSAGE_NOT_FOUND, "no match message")
	case proxy.PopPollingFull:
		return refuse(v2.Code_TOO_MANY_REQUESTS, "polling full")
	case proxy.PopThrottled:
		return refuse(v2.Code_TOO_MANY_REQUESTS, "%s", p.Reason)
	default:
		return errNoNew
	}
}

func release(p *proxy.Popped) {
	if p.Release != nil {
		p.Release()
	}
}

// refuse answers without messages.
func (r *receive) refuse(err error) {
	st := r.s.status("ReceiveMessage", err)
	b := h2.NewBuffer()
	r.putStatus(b, st.GetCode(), st.GetMessage())
	r.putEnd(b)
	r.call.Answer(b, nil)
	r.s.calls.end()
}

// answer sends status, messages and delivery timestamp, each a message of the stream.
// Clients use an answer only when it is complete: of one that does not get through, all
// messages are somebody else's now.
func (r *receive) answer(p *proxy.Popped) {
	size := sizeOf(p)
	r.s.answering.Add(size)
	b := h2.NewBuffer()
	r.putStatus(b, v2.Code_OK, "OK")
	enc := deliveryEncoder{topic: r.topic, digest: digestFor(r.call.Header(headerLanguage)), popped: p}
	for i := range p.Batches {
		batch := &p.Batches[i]
		for k := range batch.Records {
			if err := enc.set(batch, k); err != nil {
				r.s.log.Error("a stored record can't be read", "topic", r.topic.GetName(), "queue", batch.QueueID,
					"offset", batch.Records[k].QueueOffset, "err", err)
				continue
			}
			at := b.Begin()
			b.B = enc.append(b.B)
			b.End(at)
		}
	}
	r.putEnd(b)
	r.call.Answer(b, func(complete bool) {
		r.s.answering.Add(-size)
		if !complete {
			r.giveBack(p)
		}
		release(p)
		r.s.calls.end()
	})
}

func (r *receive) putStatus(b *h2.Buffer, code v2.Code, text string) {
	at := b.Begin()
	b.B = appendStatusField(b.B, responseStatus, code, text)
	b.End(at)
}

func (r *receive) putEnd(b *h2.Buffer) {
	at := b.Begin()
	b.B = appendTime(b.B, responseTimestamp, r.s.clock.NowMilli())
	b.End(at)
}

func sizeOf(p *proxy.Popped) (n int64) {
	for i := range p.Batches {
		for k := range p.Batches[i].Records {
			n += int64(len(p.Batches[i].Records[k].Bytes))
		}
	}
	return n
}

// giveBack makes the messages of p visible again at once, without counting an attempt.
func (r *receive) giveBack(p *proxy.Popped) {
	for i := range p.Batches {
		b := &p.Batches[i]
		for k := range b.Records {
			r.s.proxy.ChangeInvisible(proxy.ChangeRequest{Group: r.group, Topic: r.topic.GetName(),
				Handle: handleOf(p, b, k), Suspend: true}, r.givenBack)
		}
	}
}

// givenBack takes the outcome of one message of giveBack: one that is not given back now
// comes back when its invisible time lapses.
func (r *receive) givenBack(_ receipt.Handle, err error) {
	if err != nil && !errors.Is(err, proxy.ErrExpiredHandle) && !errors.Is(err, proxy.ErrStaleHandle) {
		r.s.log.Warn("a message that a client did not wait for could not be given back", "err", err)
	}
}

// receives are those that wait, so that a stop can answer them.
type receives struct {
	mu      sync.Mutex
	stopped bool
	set     map[*receive]struct{}
}

// add reports whether r may wait.
func (rs *receives) add(r *receive) bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.stopped {
		return false
	}
	if rs.set == nil {
		rs.set = map[*receive]struct{}{}
	}
	rs.set[r] = struct{}{}
	return true
}

func (rs *receives) remove(r *receive) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.set, r)
}

// stop answers all, and lets none wait from now on.
func (rs *receives) stop() {
	rs.mu.Lock()
	rs.stopped = true
	all := slices.Collect(maps.Keys(rs.set))
	rs.mu.Unlock()
	for _, r := range all {
		r.stop()
	}
}

// handleOf names the delivery of the k-th record of b.
func handleOf(p *proxy.Popped, b *proxy.PopBatch, k int) receipt.Handle {
	r := &b.Records[k]
	popTime := p.PopTime
	if b.Lite != "" {
		popTime = b.PopTime
	}
	return receipt.Handle{
		Lite:          b.Lite,
		StartOffset:   b.StartOffset,
		PopTime:       popTime,
		InvisibleTime: p.InvisibleTime,
		ReviveQueue:   p.ReviveQueue,
		RetryFlag:     b.RetryFlag,
		Broker:        p.Broker,
		QueueID:       b.QueueID,
		Offset:        r.QueueOffset,
		LogOffset:     r.PhysicalOffset,
	}
}

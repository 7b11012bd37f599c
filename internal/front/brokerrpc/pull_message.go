package brokerrpc

import (
	"errors"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/pull"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) pullMessage(r *transport.Request) { s.pull(r, false) }

func (s *Server) pull(r *transport.Request, lite bool) {
	var h remoting.PullMessageRequest
	if !s.read(r, &h) {
		return
	}
	if h.LiteTopic != "" {
		h.Topic = names.Lite(h.Topic, h.LiteTopic)
	}
	q := pull.Request{
		Group: h.ConsumerGroup, Topic: h.Topic, QueueID: h.QueueID, Offset: h.QueueOffset, Lite: lite,
		MaxMessages: h.MaxMsgNums, MaxBytes: h.MaxMsgBytes.Or(0),
		Commit: h.SysFlag&remoting.PullCommitOffset != 0, CommitOffset: h.CommitOffset,
		Subscribed: h.SysFlag&remoting.PullSubscription != 0, Expression: h.Subscription, Kind: h.ExpressionType, SubVersion: h.SubVersion,
	}
	if h.SysFlag&remoting.PullSuspend != 0 {
		q.Suspend, q.Peer = suspension(h.SuspendTimeoutMillis), &channelOf(r.Conn).peer
	}
	responder := r.Responder()
	s.b.Pull.Pull(q, func(res pull.Result, err error) { s.answerPull(responder, res, err) })
}

// longestSuspension keeps a request from being kept for ever.
const longestSuspension = time.Hour

func suspension(millis int64) time.Duration {
	return min(time.Duration(max(0, min(millis, longestSuspension.Milliseconds())))*time.Millisecond, longestSuspension)
}

// pullCodes is the response code of each answer to a pull.
var pullCodes = [...]int32{
	pull.Found:    remoting.ResSuccess,
	pull.NotFound: remoting.ResPullNotFound,
	pull.Again:    remoting.ResPullRetryImmediately,
	pull.Moved:    remoting.ResPullOffsetMoved,
}

// pieces are the lists of record bodies of an answer; transport keeps none.
var pieces = sync.Pool{New: func() any { p := make([][]byte, 0, 64); return &p }}

func (s *Server) answerPull(r transport.Responder, res pull.Result, err error) {
	if err != nil {
		code, remark := s.translate(err)
		r.Reply(code, remark, refusedPull(err), nil)
		return
	}
	remark := res.Status.String()
	if res.Reset {
		remark = "OFFSET_RESET"
	}
	h := remoting.PullMessageResponse{NextBeginOffset: res.Next, MinOffset: res.Min, MaxOffset: res.Max}
	if res.Topic != nil {
		h.TopicSysFlag, h.GroupSysFlag = remoting.Some(res.Topic.SysFlag), remoting.Some(res.Group.SysFlag)
	}
	if res.Answer != pull.Found {
		r.Reply(pullCodes[res.Answer], remark, &h, nil)
		res.Read.Release()
		return
	}
	list := pieces.Get().(*[][]byte)
	for i := range res.Read.Records {
		*list = append(*list, res.Read.Records[i].Bytes)
	}
	r.ReplyRecords(remoting.ResSuccess, remark, &h, *list, res.Read.Release)
	clear(*list)
	*list = (*list)[:0]
	pieces.Put(list)
}

// refusedPull is the header of a refused pull: nothing but why, as a number.
func refusedPull(err error) *remoting.PullMessageResponse {
	h := &remoting.PullMessageResponse{}
	for _, f := range forbidden {
		if errors.Is(err, f.err) {
			h.ForbiddenType = remoting.Some(f.kind)
		}
	}
	return h
}

package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getLiteGroupInfo(r *transport.Request) {
	var h remoting.GetLiteGroupInfoRequest
	if !s.read(r, &h) {
		return
	}
	b := remoting.LiteGroupInfo{Group: h.Group, LiteTopic: h.LiteTopic, EarliestUnconsumedTimestamp: -1}
	var err error
	if h.LiteTopic != "" {
		err = s.oneLag(&b)
	} else {
		err = s.lags(&b, int(h.TopK))
	}
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&b))
}

// oneLag is for a question about one lite topic.
func (s *Server) oneLag(b *remoting.LiteGroupInfo) error {
	parent, l, err := s.b.Lite.LagOf(b.Group, b.LiteTopic)
	if err != nil {
		return err
	}
	b.ParentTopic = parent
	switch {
	case l.End == 0:
		b.TotalLagCount = -1
	case l.Known:
		b.TotalLagCount, b.EarliestUnconsumedTimestamp = l.Count(), l.Since
		b.Offset = &remoting.OffsetWrapper{BrokerOffset: l.End, ConsumerOffset: l.At, LastTimestamp: l.Consumed}
	}
	return nil
}

// lags is for one about all of them.
func (s *Server) lags(b *remoting.LiteGroupInfo, most int) error {
	parent, byCount, byAge, total, err := s.b.Lite.Lags(b.Group, most)
	if err != nil {
		return err
	}
	b.ParentTopic, b.TotalLagCount = parent, total
	b.LagCountTopK, b.LagTimestampTopK = lagsOf(byCount), lagsOf(byAge)
	if len(byAge) > 0 {
		b.EarliestUnconsumedTimestamp = byAge[0].Since
	}
	return nil
}

func lagsOf(list []lite.Lag) []remoting.LiteLag {
	out := make([]remoting.LiteLag, len(list))
	for i := range list {
		out[i] = remoting.LiteLag{LiteTopic: list[i].Lite, LagCount: list[i].Count(), EarliestUnconsumedTimestamp: list[i].Since}
	}
	return out
}

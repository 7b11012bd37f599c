package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// maxLiteTopics is how many lite topics of a client one answer names.
const maxLiteTopics = 10_000

func (s *Server) getLiteClientInfo(r *transport.Request) {
	var h remoting.GetLiteClientInfoRequest
	if !s.read(r, &h) {
		return
	}
	lites, count, asked, known, err := s.b.Lite.ClientOf(h.ClientID, h.Group, h.ParentTopic, int(min(h.MaxCount, maxLiteTopics)))
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	if !known {
		count, asked = -1, -1
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.LiteClientInfo{ParentTopic: h.ParentTopic, Group: h.Group, ClientID: h.ClientID,
		LastAccessTime: asked, LiteTopicCount: int32(count), LiteTopicSet: lites}))
}

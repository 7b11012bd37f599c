package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) wipeWritePermOfBroker(r *transport.Request) (a answer, err error) {
	var h remoting.WipeWritePermOfBrokerRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	a.header = &remoting.WipeWritePermOfBrokerResponse{WipeTopicCount: s.table.WipeWrite(h.BrokerName)}
	return a, nil
}

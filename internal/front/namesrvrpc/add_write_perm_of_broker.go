package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) addWritePermOfBroker(r *transport.Request) (a answer, err error) {
	var h remoting.AddWritePermOfBrokerRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	a.header = &remoting.AddWritePermOfBrokerResponse{AddTopicCount: s.table.AddWrite(h.BrokerName)}
	return a, nil
}

package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) unregisterBroker(r *transport.Request) (a answer, err error) {
	var h remoting.UnregisterBrokerRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	s.table.Unregister(h.ClusterName, namesrv.Elsewhere(h.BrokerAddr))
	return a, nil
}

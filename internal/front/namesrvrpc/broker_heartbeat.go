package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// brokerHeartbeat notes that a broker is alive; one that has not registered is told
// nothing else, as it will find out with its next registration.
func (s *Server) brokerHeartbeat(r *transport.Request) (a answer, err error) {
	var h remoting.BrokerHeartbeatRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	s.table.Heartbeat(h.ClusterName, namesrv.Elsewhere(h.BrokerAddr))
	return a, nil
}

package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// queryDataVersion answers a broker's question whether it has to register its topics
// again.
func (s *Server) queryDataVersion(r *transport.Request) (a answer, err error) {
	var h remoting.QueryDataVersionRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	var asked remoting.DataVersion
	if err := remoting.Unmarshal(r.Body, &asked); err != nil {
		return a, err
	}
	here, known, changed := s.table.QueryVersion(h.ClusterName, namesrv.Elsewhere(h.BrokerAddr), version(asked))
	a.header = &remoting.QueryDataVersionResponse{Changed: changed}
	if known {
		a.body = remoting.Marshal(&remoting.DataVersion{Counter: here.Counter, StateVersion: here.State, Timestamp: here.Timestamp})
	}
	return a, nil
}

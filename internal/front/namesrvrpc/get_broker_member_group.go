package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// getBrokerMemberGroup lists a broker's members; of a broker that is not there, none.
func (s *Server) getBrokerMemberGroup(r *transport.Request) (a answer, err error) {
	var h remoting.GetBrokerMemberGroupRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	out := remoting.BrokerMemberGroupBody{BrokerMemberGroup: remoting.BrokerMemberGroup{BrokerName: h.BrokerName, Cluster: h.ClusterName}}
	if b, ok := s.table.Members(h.BrokerName); ok {
		out.BrokerMemberGroup.BrokerAddrs = addresses(&b, s.local(r))
	}
	a.body = remoting.Marshal(&out)
	return a, nil
}

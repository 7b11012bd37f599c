package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// bolideGetGoneBrokers tells who is missing, for bolide admin.
func (s *Server) bolideGetGoneBrokers(r *transport.Request) (a answer, err error) {
	var body remoting.GoneBrokers
	for _, g := range s.table.Gone() {
		body.Brokers = append(body.Brokers, remoting.GoneBroker{Name: g.Name, Cluster: g.Cluster, Address: g.Address.At(s.local(r)),
			Since: g.Since.UnixMilli(), Stopped: g.Stopped})
	}
	return answer{body: remoting.Marshal(&body)}, nil
}

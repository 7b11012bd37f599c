package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) putKVConfig(r *transport.Request) (a answer, err error) {
	var h remoting.PutKVConfigRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	return a, s.table.KV().Put(h.Namespace, h.Key, h.Value)
}

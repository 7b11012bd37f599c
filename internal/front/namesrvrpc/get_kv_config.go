package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getKVConfig(r *transport.Request) (a answer, err error) {
	var h remoting.GetKVConfigRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	value, ok := s.table.KV().Get(h.Namespace, h.Key)
	if !ok {
		return a, &said{errNoConfig, h.Namespace + " Key: " + h.Key}
	}
	a.header = &remoting.GetKVConfigResponse{Value: value}
	return a, nil
}

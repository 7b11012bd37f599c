package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getKVListByNamespace(r *transport.Request) (a answer, err error) {
	var h remoting.GetKVListByNamespaceRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	values, ok := s.table.KV().List(h.Namespace)
	if !ok {
		return a, &said{errNoConfig, h.Namespace}
	}
	a.body = remoting.Marshal(&remoting.KVTable{Table: values})
	return a, nil
}

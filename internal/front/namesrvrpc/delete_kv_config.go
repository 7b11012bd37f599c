package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) deleteKVConfig(r *transport.Request) (a answer, err error) {
	var h remoting.DeleteKVConfigRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	return a, s.table.KV().Delete(h.Namespace, h.Key)
}

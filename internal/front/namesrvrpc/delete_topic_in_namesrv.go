package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) deleteTopicInNamesrv(r *transport.Request) (a answer, err error) {
	var h remoting.DeleteTopicInNamesrvRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	s.table.DeleteTopic(h.Topic, h.ClusterName)
	return a, nil
}

package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getTopicsByCluster(r *transport.Request) (a answer, err error) {
	if !s.table.Config().Get().EnableTopicList {
		return a, errDisabled
	}
	var h remoting.GetTopicsByClusterRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	return topicList(s.table.TopicsOfCluster(h.Cluster)), nil
}

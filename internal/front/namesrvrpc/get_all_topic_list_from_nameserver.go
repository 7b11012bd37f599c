package namesrvrpc

import "github.com/bolidemq/bolide/internal/wire/transport"

func (s *Server) getAllTopicListFromNameserver(*transport.Request) (a answer, err error) {
	if !s.table.Config().Get().EnableAllTopicList {
		return a, errDisabled
	}
	return topicList(s.table.Topics()), nil
}

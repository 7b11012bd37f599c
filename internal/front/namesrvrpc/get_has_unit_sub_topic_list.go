package namesrvrpc

import "github.com/bolidemq/bolide/internal/wire/transport"

func (s *Server) getHasUnitSubTopicList(*transport.Request) (a answer, err error) {
	if !s.table.Config().Get().EnableTopicList {
		return a, errDisabled
	}
	return topicList(s.table.UnitSubTopics()), nil
}

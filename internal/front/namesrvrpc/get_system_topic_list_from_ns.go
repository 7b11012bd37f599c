package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// getSystemTopicListFromNS names clusters and brokers, and one broker's address: the
// asker adds that broker's own list.
func (s *Server) getSystemTopicListFromNS(r *transport.Request) (a answer, err error) {
	topics, broker := s.table.SystemTopics()
	list := remoting.TopicList{TopicList: topics}
	if broker != "" {
		list.BrokerAddr = broker.At(s.local(r))
	}
	a.body = remoting.Marshal(&list)
	return a, nil
}

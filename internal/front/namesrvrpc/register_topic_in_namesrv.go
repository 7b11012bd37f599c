package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) registerTopicInNamesrv(r *transport.Request) (a answer, err error) {
	var h remoting.RegisterTopicInNamesrvRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	var body remoting.TopicRouteData
	if len(r.Body) > 0 {
		if err := remoting.Unmarshal(r.Body, &body); err != nil {
			return a, err
		}
	}
	queues := make([]namesrv.Queues, 0, len(body.QueueDatas))
	for _, q := range body.QueueDatas {
		queues = append(queues, namesrv.Queues{Broker: q.BrokerName, ReadQueues: q.ReadQueueNums,
			WriteQueues: q.WriteQueueNums, Perm: q.Perm, SysFlag: q.TopicSysFlag})
	}
	return a, s.table.RegisterTopic(h.Topic, queues)
}

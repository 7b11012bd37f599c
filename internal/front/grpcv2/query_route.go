package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

// QueryRoute implements v2.MessagingServiceServer.
func (s *Service) QueryRoute(ctx context.Context, req *v2.QueryRouteRequest) (*v2.QueryRouteResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	queues, err := s.queryRoute(ctx, req)
	if err != nil {
		return &v2.QueryRouteResponse{Status: s.status("QueryRoute", err)}, nil
	}
	return &v2.QueryRouteResponse{Status: ok, MessageQueues: queues}, nil
}

func (s *Service) queryRoute(ctx context.Context, req *v2.QueryRouteRequest) ([]*v2.MessageQueue, error) {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return nil, err
	}
	topic, err := topicName(req.GetTopic())
	if err != nil {
		return nil, err
	}
	route, err := s.proxy.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	endpoints := s.endpoints(ctx, req.GetEndpoints())
	accept := acceptedTypes(route.Kind)
	var queues []*v2.MessageQueue
	for i := range route.Brokers {
		b := &route.Brokers[i]
		broker := &v2.Broker{Name: b.Broker, Endpoints: endpoints}
		for id, p := range queuePermissions(b) {
			queues = append(queues, &v2.MessageQueue{
				Topic:              req.GetTopic(),
				Id:                 int32(id),
				Permission:         p,
				Broker:             broker,
				AcceptMessageTypes: accept,
			})
		}
	}
	return queues, nil
}

// queuePermissions is the permission of each queue that a route names, by queue id. The
// surplus of the read or the write queues comes first, as Apache RocketMQ numbers them:
// a client uses the ids to tell queues apart, never to address one.
func queuePermissions(b *proxy.BrokerQueues) []v2.Permission {
	var list []v2.Permission
	add := func(n int32, p v2.Permission) {
		for range n {
			list = append(list, p)
		}
	}
	switch {
	case b.Readable && b.Writable:
		both := min(b.Read, b.Write)
		add(b.Read-both, v2.Permission_READ)
		add(b.Write-both, v2.Permission_WRITE)
		add(both, v2.Permission_READ_WRITE)
	case b.Writable:
		add(b.Write, v2.Permission_WRITE)
	case b.Readable:
		add(b.Read, v2.Permission_READ)
	default:
		add(max(1, b.Read, b.Write), v2.Permission_NONE)
	}
	return list
}

func acceptedTypes(k proxy.Kind) []v2.MessageType {
	switch k {
	case proxy.KindNormal:
		return []v2.MessageType{v2.MessageType_NORMAL}
	case proxy.KindFIFO:
		return []v2.MessageType{v2.MessageType_FIFO}
	case proxy.KindDelay:
		return []v2.MessageType{v2.MessageType_DELAY}
	case proxy.KindTransaction:
		return []v2.MessageType{v2.MessageType_TRANSACTION}
	case proxy.KindLite:
		return []v2.MessageType{v2.MessageType_LITE}
	case proxy.KindPriority:
		return []v2.MessageType{v2.MessageType_PRIORITY}
	case proxy.KindMixed:
		return []v2.MessageType{v2.MessageType_NORMAL, v2.MessageType_FIFO, v2.MessageType_DELAY, v2.MessageType_TRANSACTION}
	default:
		return []v2.MessageType{v2.MessageType_MESSAGE_TYPE_UNSPECIFIED}
	}
}

package grpcv2

import (
	"context"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

// QueryAssignment implements v2.MessagingServiceServer.
func (s *Service) QueryAssignment(ctx context.Context, req *v2.QueryAssignmentRequest) (*v2.QueryAssignmentResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	assignments, err := s.queryAssignment(ctx, req)
	if err != nil {
		return &v2.QueryAssignmentResponse{Status: s.status("QueryAssignment", err)}, nil
	}
	return &v2.QueryAssignmentResponse{Status: ok, Assignments: assignments}, nil
}

// queryAssignment names one queue −1, which stands for all, per readable broker; for a
// FIFO group each readable queue, so that the client works on them side by side.
func (s *Service) queryAssignment(ctx context.Context, req *v2.QueryAssignmentRequest) ([]*v2.Assignment, error) {
	if _, err := clientID(callerOf(ctx)); err != nil {
		return nil, err
	}
	topic, group, err := topicAndGroup(req.GetTopic(), req.GetGroup())
	if err != nil {
		return nil, err
	}
	route, err := s.proxy.Route(ctx, topic)
	if err != nil {
		return nil, err
	}
	cfg, err := s.proxy.Group(ctx, group)
	if err != nil {
		return nil, err
	}
	endpoints := s.endpoints(ctx, req.GetEndpoints())
	var list []*v2.Assignment
	for i := range route.Brokers {
		b := &route.Brokers[i]
		if !b.Readable || b.Read == 0 {
			continue
		}
		permission := v2.Permission_READ
		if b.Writable {
			permission = v2.Permission_READ_WRITE
		}
		broker := &v2.Broker{Name: b.Broker, Endpoints: endpoints}
		add := func(id int32) {
			list = append(list, &v2.Assignment{MessageQueue: &v2.MessageQueue{
				Topic: req.GetTopic(), Id: id, Permission: permission, Broker: broker}})
		}
		if !cfg.FIFO || cfg.LiteTopic != "" {
			add(-1)
			continue
		}
		for id := range b.Read {
			add(id)
		}
	}
	if len(list) == 0 {
		return nil, proxy.ErrNoReadableQueue
	}
	return list, nil
}

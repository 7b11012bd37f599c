package grpcv2

import (
	"context"
	"errors"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/proxy"
)

// Heartbeat implements v2.MessagingServiceServer.
func (s *Service) Heartbeat(ctx context.Context, req *v2.HeartbeatRequest) (*v2.HeartbeatResponse, error) {
	s.calls.begin()
	defer s.calls.end()
	return &v2.HeartbeatResponse{Status: s.status("Heartbeat", s.heartbeat(ctx, req))}, nil
}

func (s *Service) heartbeat(ctx context.Context, req *v2.HeartbeatRequest) error {
	id, err := clientID(callerOf(ctx))
	if err != nil {
		return err
	}
	c, err := s.proxy.Beat(id)
	switch {
	case c == nil:
		// No settings: some clients take minutes to send them again when their stream was
		// cut. A consumer's heartbeat says enough to count it as there.
		return s.guess(ctx, id, req)
	case c.Settings.Kind.Consumes():
		_, bad := groupName(req.GetGroup())
		return errors.Join(bad, err)
	default:
		return err
	}
}

func (s *Service) guess(ctx context.Context, id string, req *v2.HeartbeatRequest) error {
	kind := proxy.ClientKind(req.GetClientType())
	if !kind.Consumes() || req.GetGroup().GetName() == "" {
		return errNoSettings
	}
	group, err := groupName(req.GetGroup())
	if err != nil {
		return err
	}
	c := s.caller(ctx, id)
	c.Guessed, c.Settings.Kind, c.Settings.Group = true, kind, group
	return s.proxy.Join(c)
}

var errNoSettings = refuse(v2.Code_UNRECOGNIZED_CLIENT_TYPE, "cannot find client settings for this client")

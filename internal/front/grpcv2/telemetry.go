package grpcv2

import (
	"context"
	"errors"
	"io"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bolidemq/bolide/internal/proxy"
)

// Telemetry implements v2.MessagingServiceServer: the client's settings up, the merged
// ones and commands down. While the stream is open the client is there.
func (s *Service) Telemetry(stream grpc.BidiStreamingServer[v2.TelemetryCommand, v2.TelemetryCommand]) error {
	ctx := stream.Context()
	id, err := clientID(callerOf(ctx))
	if err != nil {
		return stream.Send(&v2.TelemetryCommand{Status: s.status("Telemetry", err)})
	}
	ses := newSession(stream)
	defer s.proxy.Hangup(id, ses)
	defer ses.end()
	for {
		cmd, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch c := cmd.GetCommand().(type) {
		case *v2.TelemetryCommand_Settings:
			if err := s.takeSettings(ctx, id, ses, c.Settings); err != nil {
				return s.telemetryError(err)
			}
		case *v2.TelemetryCommand_ThreadStackTrace:
			ses.answered(c.ThreadStackTrace.GetNonce(), cmd)
		case *v2.TelemetryCommand_VerifyMessageResult:
			ses.answered(c.VerifyMessageResult.GetNonce(), cmd)
		}
	}
}

// takeSettings joins the client with the settings and answers the merged ones.
func (s *Service) takeSettings(ctx context.Context, id string, ses *session, in *v2.Settings) error {
	settings, err := settingsOf(in)
	if err != nil {
		return err
	}
	var group proxy.Group
	if settings.Group != "" {
		if group, err = s.proxy.Group(ctx, settings.Group); err != nil {
			return err
		}
	}
	settings.Since = time.Now().UnixMilli()
	c := s.caller(ctx, id)
	c.Settings, c.Stream = settings, ses
	if err := checkMode(c, &group); err != nil {
		return err
	}
	if err := s.proxy.Join(c); err != nil {
		return err
	}
	return ses.send(&v2.TelemetryCommand{
		Status:  ok,
		Command: &v2.TelemetryCommand_Settings{Settings: mergeSettings(in, group, s.limits)},
	})
}

// caller is what the headers and the connection say about a client.
func (s *Service) caller(ctx context.Context, id string) *proxy.Client {
	by := callerOf(ctx)
	return &proxy.Client{
		ID:       id,
		Language: by.Header(headerLanguage),
		Version:  by.Header(headerVersion),
		Remote:   by.RemoteAddr(),
		Local:    by.LocalAddr(),
	}
}

// telemetryError is the gRPC status that ends a stream: there is no answer to put a
// refusal in.
func (s *Service) telemetryError(err error) error {
	if _, is := status.FromError(err); is {
		return err // of the stream itself
	}
	st := s.status("Telemetry", err)
	code := codes.Internal
	if st.Code >= v2.Code_BAD_REQUEST && st.Code < v2.Code_INTERNAL_ERROR {
		code = codes.InvalidArgument
	}
	return status.Error(code, "process client telemetryCommand failed. "+st.Message)
}

package bench

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
)

// grpcClient is one connection with one client id, as the server sees a client.
type grpcClient struct {
	conn    *grpc.ClientConn
	service v2.MessagingServiceClient
	ctx     context.Context // carries the metadata of every call
	cancel  context.CancelFunc
	topic   *v2.Resource
}

func dialGRPC(ctx context.Context, o Options, topic string) (*grpcClient, error) {
	creds := insecure.NewCredentials()
	if o.TLS {
		creds = credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})
	}
	conn, err := grpc.NewClient("passthrough:///"+o.Endpoint, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx,
		"x-mq-client-id", fmt.Sprintf("bench@%08x", rand.Uint32()),
		"x-mq-language", "GO", "x-mq-protocol", "v2", "x-mq-client-version", "5.1.4",
		"x-mq-request-id", "bench")
	ctx, cancel := context.WithCancel(ctx)
	return &grpcClient{
		conn: conn, service: v2.NewMessagingServiceClient(conn), ctx: ctx, cancel: cancel,
		topic: &v2.Resource{Name: topic},
	}, nil
}

func (c *grpcClient) close() {
	c.cancel()
	c.conn.Close()
}

// announce opens the telemetry stream with these settings and waits for the server's own:
// before them it answers no receive.
func (c *grpcClient) announce(o Options, settings *v2.Settings) error {
	stream, err := c.service.Telemetry(c.ctx)
	if err != nil {
		return err
	}
	at, err := netip.ParseAddrPort(o.Endpoint)
	if err != nil {
		return fmt.Errorf("--grpc %q: %w", o.Endpoint, err)
	}
	settings.AccessPoint = &v2.Endpoints{
		Scheme:    v2.AddressScheme_IPv4,
		Addresses: []*v2.Address{{Host: at.Addr().String(), Port: int32(at.Port())}},
	}
	settings.UserAgent = &v2.UA{Language: v2.Language_GOLANG, Version: "5.1.4", Platform: "bench", Hostname: "bench"}
	settings.RequestTimeout = durationpb.New(10 * time.Second)
	if err := stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: settings}}); err != nil {
		return err
	}
	for {
		command, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("telemetry: %w", err)
		}
		if command.GetSettings() != nil {
			return nil
		}
	}
}

func (c *grpcClient) announceProducer(o Options) error {
	kind := v2.ClientType_PRODUCER
	return c.announce(o, &v2.Settings{
		ClientType: &kind,
		PubSub:     &v2.Settings_Publishing{Publishing: &v2.Publishing{Topics: []*v2.Resource{c.topic}}},
	})
}

func (c *grpcClient) announceConsumer(o Options, group string, kind v2.ClientType) error {
	if err := c.announce(o, &v2.Settings{
		ClientType: &kind,
		PubSub: &v2.Settings_Subscription{Subscription: &v2.Subscription{
			Group:              &v2.Resource{Name: group},
			Subscriptions:      []*v2.SubscriptionEntry{{Topic: c.topic, Expression: everything()}},
			LongPollingTimeout: durationpb.New(popPoll),
		}},
	}); err != nil {
		return err
	}
	return c.beat(group, kind)
}

func (c *grpcClient) beat(group string, kind v2.ClientType) error {
	answer, err := c.service.Heartbeat(c.ctx, &v2.HeartbeatRequest{Group: &v2.Resource{Name: group}, ClientType: kind})
	if err != nil {
		return err
	}
	return ok(answer.GetStatus(), "a heartbeat")
}

func everything() *v2.FilterExpression {
	return &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}
}

// ok turns a status that is not OK into an error.
func ok(s *v2.Status, what string) error {
	if s.GetCode() == v2.Code_OK {
		return nil
	}
	return fmt.Errorf("%s is answered with %v: %s", what, s.GetCode(), s.GetMessage())
}

func grpcBusy(s *v2.Status) bool {
	switch s.GetCode() {
	case v2.Code_TOO_MANY_REQUESTS, v2.Code_INTERNAL_SERVER_ERROR, v2.Code_PROXY_TIMEOUT, v2.Code_MASTER_PERSISTENCE_TIMEOUT:
		return true
	}
	return false
}

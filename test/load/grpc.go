package load

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// GRPC is a SimpleConsumer.
type GRPC struct {
	place   Place
	conn    *grpc.ClientConn
	service v2.MessagingServiceClient
	ctx     context.Context // carries the metadata of every call
	cancel  context.CancelFunc
	topic   *v2.Resource
	group   *v2.Resource
	broker  *v2.Broker
}

// MinInvisibleGRPC is the shortest invisible time that Apache's proxy takes in a receive.
const MinInvisibleGRPC = 10 * time.Second

// DialGRPC connects, announces the consumer and asks for the route.
func DialGRPC(ctx context.Context, p Place) (*GRPC, error) {
	conn, err := grpc.NewClient("passthrough:///"+p.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx,
		"x-mq-client-id", fmt.Sprintf("load@%08x", rand.Uint32()), "x-mq-language", "GO", "x-mq-protocol", "v2",
		"x-mq-client-version", "5.1.4", "x-mq-request-id", "load")
	c := &GRPC{place: p, conn: conn, service: v2.NewMessagingServiceClient(conn), topic: &v2.Resource{Name: p.Topic}, group: &v2.Resource{Name: p.Group}}
	c.ctx, c.cancel = context.WithCancel(ctx)
	if err := c.announce(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *GRPC) announce() error {
	at, err := netip.ParseAddrPort(c.place.GRPC)
	if err != nil {
		return err
	}
	kind := v2.ClientType_SIMPLE_CONSUMER
	stream, err := c.service.Telemetry(c.ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: &v2.Settings{
		ClientType: &kind,
		AccessPoint: &v2.Endpoints{Scheme: v2.AddressScheme_IPv4,
			Addresses: []*v2.Address{{Host: at.Addr().String(), Port: int32(at.Port())}}},
		UserAgent:      &v2.UA{Language: v2.Language_GOLANG, Version: "5.1.4", Platform: "load", Hostname: "load"},
		RequestTimeout: durationpb.New(10 * time.Second),
		PubSub: &v2.Settings_Subscription{Subscription: &v2.Subscription{Group: c.group,
			Subscriptions:      []*v2.SubscriptionEntry{{Topic: c.topic, Expression: everything()}},
			LongPollingTimeout: durationpb.New(time.Second)}},
	}}})
	if err != nil {
		return err
	}
	for {
		command, err := stream.Recv()
		if err != nil {
			return err
		}
		if command.GetSettings() != nil {
			break
		}
	}
	if _, err := c.service.Heartbeat(c.ctx, &v2.HeartbeatRequest{Group: c.group, ClientType: kind}); err != nil {
		return err
	}
	route, err := c.service.QueryRoute(c.ctx, &v2.QueryRouteRequest{Topic: c.topic})
	if err != nil {
		return err
	}
	if len(route.GetMessageQueues()) == 0 {
		return fmt.Errorf("no route: %v", route.GetStatus())
	}
	c.broker = route.GetMessageQueues()[0].GetBroker()
	return nil
}

func everything() *v2.FilterExpression {
	return &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}
}

// Close ends the connection and what runs on it.
func (c *GRPC) Close() {
	c.cancel()
	c.conn.Close()
}

// Protocol names it in reports.
func (c *GRPC) Protocol() string { return "gRPC" }

// Receive asks for messages of all queues.
func (c *GRPC) Receive(n int, invisible, wait time.Duration) (all []Delivery, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, wait+10*time.Second)
	defer cancel()
	stream, err := c.service.ReceiveMessage(ctx, &v2.ReceiveMessageRequest{
		Group: c.group, MessageQueue: &v2.MessageQueue{Topic: c.topic, Id: -1, Broker: c.broker, Permission: v2.Permission_READ_WRITE},
		FilterExpression: everything(), BatchSize: int32(n),
		InvisibleDuration: durationpb.New(max(invisible, MinInvisibleGRPC)), LongPollingTimeout: durationpb.New(wait),
	})
	if err != nil {
		return nil, err
	}
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		m := answer.GetMessage()
		if m == nil {
			continue
		}
		h, err := receipt.Parse(m.GetSystemProperties().GetReceiptHandle())
		if err != nil {
			return all, err
		}
		all = append(all, Delivery{int64(binary.BigEndian.Uint64(m.GetBody())), h, m.GetSystemProperties().GetMessageId()})
	}
}

// Ack acknowledges one or several.
func (c *GRPC) Ack(all []Delivery) ([]Answer, error) {
	req := &v2.AckMessageRequest{Group: c.group, Topic: c.topic}
	for _, d := range all {
		req.Entries = append(req.Entries, &v2.AckMessageEntry{MessageId: d.ID, ReceiptHandle: d.Handle.String()})
	}
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	a, err := c.service.AckMessage(ctx, req)
	if err != nil {
		return nil, err
	}
	out := make([]Answer, len(all))
	for i := range out {
		code := a.GetStatus().GetCode()
		if code == v2.Code_MULTIPLE_RESULTS || len(a.GetEntries()) == len(all) {
			code = v2.Code_INTERNAL_ERROR
			for _, e := range a.GetEntries() {
				if e.GetReceiptHandle() == req.Entries[i].GetReceiptHandle() {
					code = e.GetStatus().GetCode()
				}
			}
		}
		switch code {
		case v2.Code_OK:
			out[i] = Accepted
		case v2.Code_INVALID_RECEIPT_HANDLE:
			out[i] = Declined
		default: // the proxy could not reach its broker, or did not hear from it
			out[i] = Unclear
		}
	}
	return out, nil
}

// Change asks for another invisible time.
func (c *GRPC) Change(d Delivery, invisible time.Duration) (*Delivery, error) {
	ctx, cancel := context.WithTimeout(c.ctx, 30*time.Second)
	defer cancel()
	a, err := c.service.ChangeInvisibleDuration(ctx, &v2.ChangeInvisibleDurationRequest{
		Group: c.group, Topic: c.topic, MessageId: d.ID, ReceiptHandle: d.Handle.String(), InvisibleDuration: durationpb.New(invisible),
	})
	if err != nil || a.GetStatus().GetCode() != v2.Code_OK {
		return nil, err
	}
	d.Handle, err = receipt.Parse(a.GetReceiptHandle())
	return &d, err
}

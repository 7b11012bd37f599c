package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/internal/wire/message"
)

var grpcDifferences = []difference{
	{
		row: "send or recall, unknown topic", apache: `MESSAGE_PROPERTY_CONFLICT_WITH_TYPE .*`, bolide: `TOPIC_NOT_FOUND .*`,
		ask: func(w *wire) string { return w.status(w.client().send(w.fresh("nowhere"), nil)) },
	}, {
		row: "texts of refusals", apache: `\w+ [a-z.]+\.ProxyException: .*`, bolide: `\w+ topic not found: .*`,
		ask: func(w *wire) string { return w.status(w.client().send(w.fresh("nowhere"), nil)) },
	}, {
		row: "ReceiveMessage before settings arrived", apache: `INTERNAL_SERVER_ERROR .*`, bolide: `OK .*`,
		ask: func(w *wire) string {
			c := w.client()
			topic := w.topicWith(1, 6, "NORMAL")
			w.must(c.sendOK(topic))
			_, st := c.receive(topic, w.group())
			return w.status(st, nil)
		},
	}, {
		row: "Heartbeat of a consumer without settings", apache: `UNRECOGNIZED_CLIENT_TYPE .*`, bolide: `OK .*`,
		ask: func(w *wire) string {
			resp, err := w.grpc.Heartbeat(w.client().ctx(), &v2.HeartbeatRequest{Group: name(w.group()), ClientType: v2.ClientType_PUSH_CONSUMER})
			return w.status(resp.GetStatus(), err)
		},
	}, {
		row: "LITE_SIMPLE_CONSUMER", apache: `refused`, bolide: `settings`,
		ask: func(w *wire) string {
			topic := w.topicWith(1, 6, "LITE")
			if w.client().subscribe(v2.ClientType_LITE_SIMPLE_CONSUMER, w.liteGroup(topic), topic) == nil {
				return "refused"
			}
			return "settings"
		},
	}, {
		row: "malformed receipt handle", apache: `INTERNAL_SERVER_ERROR`, bolide: `INVALID_RECEIPT_HANDLE`,
		ask: func(w *wire) string {
			return w.client().ack(w.topicWith(1, 6, "NORMAL"), w.group(), "nonsense", 1)
		},
	}, {
		row: "ack or change with a handle that was replaced", apache: `OK`, bolide: `INVALID_RECEIPT_HANDLE`,
		ask: func(w *wire) string {
			c, topic, group := w.receiving()
			messages, _ := c.receive(topic, group)
			handle := messages[0].GetSystemProperties().GetReceiptHandle()
			changed, err := w.grpc.ChangeInvisibleDuration(c.ctx(), &v2.ChangeInvisibleDurationRequest{Group: name(group), Topic: name(topic),
				ReceiptHandle: handle, InvisibleDuration: durationpb.New(20 * time.Second)})
			if st := w.status(changed.GetStatus(), err); !strings.HasPrefix(st, "OK") {
				return st
			}
			return c.ack(topic, group, handle, 1)
		},
	}, {
		row: "change or forward without a telemetry stream", apache: `INTERNAL_SERVER_ERROR .*`, bolide: `OK .*`,
		ask: func(w *wire) string {
			c, topic, group := w.receiving()
			messages, _ := c.receive(topic, group)
			resp, err := w.grpc.ForwardMessageToDeadLetterQueue(w.client().ctx(), &v2.ForwardMessageToDeadLetterQueueRequest{Group: name(group), Topic: name(topic),
				ReceiptHandle: messages[0].GetSystemProperties().GetReceiptHandle(), MessageId: messages[0].GetSystemProperties().GetMessageId(), DeliveryAttempt: 1, MaxDeliveryAttempts: 17})
			return w.status(resp.GetStatus(), err)
		},
	}, {
		row: "receive with 4.5 to 5 s left", apache: `ILLEGAL_POLLING_TIME .*`, bolide: `MESSAGE_NOT_FOUND .*`,
		ask: func(w *wire) string {
			c := w.client()
			topic, group := w.topicWith(1, 6, "NORMAL"), w.group()
			c.needSettings(v2.ClientType_SIMPLE_CONSUMER, group, topic)
			ctx, cancel := context.WithTimeout(c.ctx(), 4900*time.Millisecond)
			defer cancel()
			req := receiveRequest(topic, group)
			req.LongPollingTimeout = durationpb.New(5 * time.Second)
			_, st := c.receiveAs(ctx, req)
			return w.status(st, nil)
		},
	}, {
		row: "digest of a delivered body", apache: `MD5`, bolide: `CRC32`,
		ask: func(w *wire) string {
			c, topic, group := w.receiving()
			messages, _ := c.receive(topic, group)
			return messages[0].GetSystemProperties().GetBodyDigest().GetType().String()
		},
	}, {
		row: "retry policy for Node clients", apache: `list of 1[68]`, bolide: `exponential`,
		ask: func(w *wire) string {
			c := w.client()
			c.language = "NODE_JS"
			return policy(c.subscribe(v2.ClientType_PUSH_CONSUMER, w.group(), "diff"))
		},
	}, {
		row: "port in routes", apache: `\d+`, bolide: `named`,
		ask: func(w *wire) string {
			resp, err := w.grpc.QueryRoute(w.client().ctx(), &v2.QueryRouteRequest{Topic: name(w.topicWith(1, 6, "NORMAL")),
				Endpoints: &v2.Endpoints{Scheme: v2.AddressScheme_IPv4, Addresses: []*v2.Address{{Host: "127.0.0.1", Port: 12345}}}})
			w.must(err)
			port := resp.GetMessageQueues()[0].GetBroker().GetEndpoints().GetAddresses()[0].GetPort()
			if port == 12345 {
				return "named"
			}
			return fmt.Sprint(port)
		},
	}, {
		row: "control characters in message id, trace context, born host", apache: `OK .*`, bolide: `ILLEGAL_MESSAGE_ID .*`,
		ask: func(w *wire) string {
			return w.status(w.client().send(w.topicWith(1, 6, "NORMAL"), func(m *v2.Message) { m.SystemProperties.MessageId = "a\x01b" }))
		},
	}, {
		row: "negative priority over gRPC", apache: `INTERNAL_SERVER_ERROR .*`, bolide: `BAD_REQUEST .*-1, want a number from 0 to 2147483647`,
		ask: func(w *wire) string {
			return w.status(w.client().send(w.topicWith(2, 6, "PRIORITY"), func(m *v2.Message) {
				n := int32(-1)
				m.SystemProperties.MessageType, m.SystemProperties.Priority = v2.MessageType_PRIORITY, &n
			}))
		},
	}, {
		row: "more than 10,000 messages or ack entries in a request, more than 4 MiB in one without bodies", apache: `INTERNAL_SERVER_ERROR`, bolide: `BAD_REQUEST`,
		ask: func(w *wire) string {
			return w.client().ack(w.topicWith(1, 6, "NORMAL"), w.group(), "nonsense", 10_001)
		},
	},
}

// client is a caller of gRPC with an id of its own.
type client struct {
	*wire
	id, language string
}

func (w *wire) client() *client { return &client{wire: w, id: w.fresh("client"), language: "GO"} }

// receiving is a client with settings, and a topic with a message for its group.
func (w *wire) receiving() (c *client, topic, group string) {
	c, topic, group = w.client(), w.topicWith(1, 6, "NORMAL"), w.group()
	c.needSettings(v2.ClientType_SIMPLE_CONSUMER, group, topic)
	w.must(c.sendOK(topic))
	return c, topic, group
}

func (w *wire) status(st *v2.Status, err error) string {
	w.must(err)
	return st.GetCode().String() + " " + st.GetMessage()
}

func name(s string) *v2.Resource { return &v2.Resource{Name: s} }

func (c *client) ctx() context.Context {
	return metadata.AppendToOutgoingContext(c.wire.ctx, "x-mq-client-id", c.id, "x-mq-language", c.language, "x-mq-client-version", "5.1.4")
}

// send returns the status of one message.
func (c *client) send(topic string, change func(*v2.Message)) (*v2.Status, error) {
	m := &v2.Message{Topic: name(topic), Body: []byte("x"), SystemProperties: &v2.SystemProperties{MessageId: message.NewUniqueID(),
		MessageType: v2.MessageType_NORMAL, BornTimestamp: timestamppb.Now(), BornHost: "host"}}
	if change != nil {
		change(m)
	}
	resp, err := c.grpc.SendMessage(c.ctx(), &v2.SendMessageRequest{Messages: []*v2.Message{m}})
	return resp.GetStatus(), err
}

// sendOK sends one message that is taken; a topic may be too new for a proxy.
func (c *client) sendOK(topic string) error {
	var st *v2.Status
	var err error
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if st, err = c.send(topic, nil); err == nil && st.GetCode() == v2.Code_OK {
			return nil
		}
	}
	return fmt.Errorf("send: %v, %w", st, err)
}

func receiveRequest(topic, group string) *v2.ReceiveMessageRequest {
	return &v2.ReceiveMessageRequest{Group: name(group), MessageQueue: &v2.MessageQueue{Topic: name(topic), Id: -1, Broker: &v2.Broker{Name: "broker-a"}},
		FilterExpression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}, BatchSize: 32,
		InvisibleDuration: durationpb.New(30 * time.Second), LongPollingTimeout: durationpb.New(10 * time.Second)}
}

func (c *client) receive(topic, group string) ([]*v2.Message, *v2.Status) {
	ctx, cancel := context.WithTimeout(c.ctx(), 20*time.Second)
	defer cancel()
	return c.receiveAs(ctx, receiveRequest(topic, group))
}

func (c *client) receiveAs(ctx context.Context, req *v2.ReceiveMessageRequest) (messages []*v2.Message, st *v2.Status) {
	stream, err := c.grpc.ReceiveMessage(ctx, req)
	c.must(err)
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return messages, st
		}
		c.must(err)
		if m := resp.GetMessage(); m != nil {
			messages = append(messages, m)
		}
		if s := resp.GetStatus(); s != nil {
			st = s
		}
	}
}

// ack returns the code of the first of n equal entries.
func (c *client) ack(topic, group, handle string, n int) string {
	req := &v2.AckMessageRequest{Group: name(group), Topic: name(topic)}
	for range n {
		req.Entries = append(req.Entries, &v2.AckMessageEntry{MessageId: "id", ReceiptHandle: handle})
	}
	resp, err := c.grpc.AckMessage(c.ctx(), req)
	c.must(err)
	if len(resp.GetEntries()) > 0 {
		return resp.GetEntries()[0].GetStatus().GetCode().String()
	}
	return resp.GetStatus().GetCode().String()
}

// subscribe sends settings over a telemetry stream, which stays open, and returns the
// server's; nil when they are refused.
func (c *client) subscribe(kind v2.ClientType, group, topic string) *v2.Settings {
	stream, err := c.grpc.Telemetry(c.ctx())
	c.must(err)
	language := v2.Language(v2.Language_value[c.language])
	c.must(stream.Send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_Settings{Settings: &v2.Settings{ClientType: kind.Enum(),
		AccessPoint:    &v2.Endpoints{Scheme: v2.AddressScheme_IPv4, Addresses: []*v2.Address{{Host: "127.0.0.1", Port: 8081}}},
		RequestTimeout: durationpb.New(3 * time.Second), UserAgent: &v2.UA{Language: language, Version: "5.1.4"},
		PubSub: &v2.Settings_Subscription{Subscription: &v2.Subscription{Group: name(group), Subscriptions: []*v2.SubscriptionEntry{
			{Topic: name(topic), Expression: &v2.FilterExpression{Type: v2.FilterType_TAG, Expression: "*"}}}}}}}}))
	for {
		command, err := stream.Recv()
		if err != nil {
			return nil
		}
		if s := command.GetSettings(); s != nil {
			return s
		}
	}
}

// needSettings is subscribe that must not be refused.
func (c *client) needSettings(kind v2.ClientType, group, topic string) {
	if c.subscribe(kind, group, topic) == nil {
		c.must(errors.New("the settings are refused"))
	}
}

// policy names the kind of a retry policy.
func policy(s *v2.Settings) string {
	if s.GetBackoffPolicy().GetExponentialBackoff() != nil {
		return "exponential"
	}
	return fmt.Sprint("list of ", len(s.GetBackoffPolicy().GetCustomizedBackoff().GetNext()))
}

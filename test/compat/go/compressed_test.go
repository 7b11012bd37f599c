package compat

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	rmq "github.com/apache/rocketmq-clients/golang/v5"
	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The forms in which a body is sent: as the classic client packs it, and over gRPC with
// body_encoding GZIP, which stands for either format there, or none.
var forms = []string{"classic", "gzip", "zlib", "plain"}

func formBody(form string) []byte {
	return []byte(strings.Repeat("a body that can be made much smaller, sent as "+form+"; ", 200))
}

func gzipped(body []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(body)
	w.Close()
	return b.Bytes()
}

func zlibbed(body []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(body)
	w.Close()
	return b.Bytes()
}

// sendPacked sends a body over gRPC by hand: no official Go client packs it.
func sendPacked(t *testing.T, s server, topic, form, wanted string) {
	t.Helper()
	body, encoding := formBody(form), v2.Encoding_GZIP
	switch form {
	case "gzip":
		body = gzipped(body)
	case "zlib":
		body = zlibbed(body)
	default:
		encoding = v2.Encoding_ENCODING_UNSPECIFIED
	}
	conn, err := grpc.NewClient(s.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	id := fmt.Sprintf("01%030X", rand.Uint64())
	ctx = metadata.AppendToOutgoingContext(ctx, "x-mq-client-id", id, "x-mq-language", "GO", "x-mq-client-version", "5.1.4")
	r, err := v2.NewMessagingServiceClient(conn).SendMessage(ctx, &v2.SendMessageRequest{Messages: []*v2.Message{{
		Topic: &v2.Resource{Name: topic}, Body: body, UserProperties: map[string]string{"form": form, "wanted": wanted},
		SystemProperties: &v2.SystemProperties{MessageId: id, Tag: &wanted, BodyEncoding: encoding, MessageType: v2.MessageType_NORMAL,
			BornTimestamp: timestamppb.Now(), BornHost: "host"},
	}}})
	if err != nil || r.GetStatus().GetCode() != v2.Code_OK {
		t.Fatalf("send %s: %v, %v", form, r.GetStatus(), err)
	}
}

// unpacked collects the forms that a consumer got.
type unpacked struct {
	mu    sync.Mutex
	times map[string]int
	all   chan struct{}
}

func newUnpacked() *unpacked { return &unpacked{times: map[string]int{}, all: make(chan struct{})} }

func (u *unpacked) got(t *testing.T, consumer string, body []byte, properties map[string]string) {
	form := properties["form"]
	if !bytes.Equal(body, formBody(form)) || properties["wanted"] != "yes" {
		t.Errorf("%s got another body of %d bytes, properties %v", consumer, len(body), properties)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.times[form]++; len(u.times) == len(forms) && u.times[form] == 1 {
		close(u.all)
	}
}

func (u *unpacked) check(t *testing.T, consumer string) {
	t.Helper()
	select {
	case <-u.all:
	case <-time.After(time.Minute):
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, form := range forms {
		if u.times[form] != 1 {
			t.Errorf("%s got %v", consumer, u.times)
			return
		}
	}
}

// TestCompressedBodies: packed bodies pass untouched, also from one protocol to the other, and
// each kind of filter finds their properties.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := fresh(t, "topic")
	s.createTopic(t, topic, "NORMAL")
	p := classicProducer(t, s)
	for _, wanted := range []string{"no", "yes"} {
		m := primitive.NewMessage(topic, formBody("classic"))
		m.WithProperties(map[string]string{"form": "classic", "wanted": wanted, "TAGS": wanted})
		if _, err := p.SendSync(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		for _, form := range forms[1:] {
			sendPacked(t, s, topic, form, wanted)
		}
	}
	filters := map[string]string{"TAG": "yes", "SQL92": "wanted = 'yes' AND form IS NOT NULL"}
	all := map[string]*unpacked{}
	for _, kind := range slices.Sorted(maps.Keys(filters)) {
		classic, v5 := newUnpacked(), newUnpacked()
		all["classic client, "+kind], all["gRPC client, "+kind] = classic, v5
		c := classicPush(t, s, fresh(t, "group"))
		err := c.Subscribe(topic, consumer.MessageSelector{Type: consumer.ExpressionType(kind), Expression: filters[kind]},
			func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
				for _, m := range messages {
					classic.got(t, "classic client, "+kind, classicUnpacked(t, m), m.GetProperties())
				}
				return consumer.ConsumeSuccess, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		defer c.Shutdown()

		group, expression := fresh(t, "group"), rmq.NewFilterExpressionWithType(filters[kind], rmq.SQL92)
		if kind == "TAG" {
			expression = rmq.NewFilterExpression(filters[kind])
		}
		s.createGroup(t, group, 16, false)
		push, err := rmq.NewPushConsumer(v5Config(s, group), rmq.WithPushAwaitDuration(5*time.Second),
			rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: expression}),
			rmq.WithPushConsumptionThreadCount(4), rmq.WithPushMaxCacheMessageCount(1024),
			rmq.WithPushMessageListener(whileRunning(t, func(m *rmq.MessageView) rmq.ConsumerResult {
				v5.got(t, "gRPC client, "+kind, m.GetBody(), m.GetProperties())
				return rmq.SUCCESS
			})))
		if err != nil {
			t.Fatal(err)
		}
		if err := push.Start(); err != nil {
			t.Fatal(err)
		}
		defer stopLater(push)
	}
	for name, u := range all {
		u.check(t, name)
	}
}

// classicUnpacked is the body as it was before it was packed. The classic client unpacks zlib
// itself and leaves gzip as it is.
func classicUnpacked(t *testing.T, m *primitive.MessageExt) []byte {
	form := m.GetProperty("form")
	if packed := m.SysFlag&primitive.FlagCompressed != 0; packed != (form != "plain") || packed && int(m.StoreSize) > len(formBody(form))/2 {
		t.Errorf("%s: flags %#x, %d bytes in store", form, m.SysFlag, m.StoreSize)
	}
	if form != "gzip" {
		return m.Body
	}
	r, err := gzip.NewReader(bytes.NewReader(m.Body))
	if err != nil {
		t.Errorf("a gzip body came as %d bytes that are none: %v", len(m.Body), err)
		return nil
	}
	body, _ := io.ReadAll(r)
	return body
}

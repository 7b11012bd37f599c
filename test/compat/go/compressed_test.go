package compat

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
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

// unpacked notes the forms in which a consumer got the body, by form.
type unpacked struct {
	consumer string
	*gathered[string]
}

func (u unpacked) got(t *testing.T, body []byte, id string, properties map[string]string) {
	form := properties["form"]
	if !bytes.Equal(body, formBody(form)) || properties["wanted"] != "yes" {
		t.Errorf("%s got another body of %d bytes, properties %v", u.consumer, len(body), properties)
	}
	u.add(form, id)
}

func (u unpacked) check(t *testing.T) {
	t.Helper()
	all := u.await(t, time.Minute, u.consumer+" gets each form", keysOf[string](len(forms)))
	for _, form := range forms {
		if len(all[form]) != 1 {
			t.Errorf("%s got %v", u.consumer, all)
			return
		}
	}
}

// TestCompressedBodies: packed bodies pass untouched, also from one protocol to the other, and
// each kind of filter finds their properties.
func TestCompressedBodies(t *testing.T) {
	t.Parallel()
	s := target(t)
	topic := s.newTopic(t, "NORMAL")
	p := classicProducer(t, s)
	for _, wanted := range []string{"no", "yes"} {
		m := primitive.NewMessage(topic, formBody("classic"))
		m.WithProperties(map[string]string{"form": "classic", "wanted": wanted, "TAGS": wanted})
		classicSend(t, p, m)
		for _, form := range forms[1:] {
			sendPacked(t, s, topic, form, wanted)
		}
	}
	var all []unpacked
	for kind, text := range map[string]string{"TAG": "yes", "SQL92": "wanted = 'yes' AND form IS NOT NULL"} {
		classic, v5 := unpacked{"classic client, " + kind, gather[string]()}, unpacked{"gRPC client, " + kind, gather[string]()}
		all = append(all, classic, v5)
		classicPushOf(t, s, fresh(t, "group"), topic, consumer.MessageSelector{Type: consumer.ExpressionType(kind), Expression: text},
			func(m *primitive.MessageExt) consumer.ConsumeResult {
				classic.got(t, classicUnpacked(t, m), m.MsgId, m.GetProperties())
				return consumer.ConsumeSuccess
			})
		filter := rmq.NewFilterExpressionWithType(text, rmq.SQL92)
		if kind == "TAG" {
			filter = rmq.NewFilterExpression(text)
		}
		v5PushOf(t, s, s.newGroup(t, 16, false), topic, filter, func(m *rmq.MessageView) rmq.ConsumerResult {
			v5.got(t, m.GetBody(), m.GetMessageId(), m.GetProperties())
			return rmq.SUCCESS
		})
	}
	for _, u := range all {
		u.check(t)
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

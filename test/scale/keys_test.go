package scale

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// TestKeyQuery: a query by key and one by unique key take at most 5 ms at the median among
// ten million messages (KEY_MESSAGES for fewer), and at most 50 ms for one in a hundred,
// as a running server has them and after a restart.
func TestKeyQuery(t *testing.T) {
	many := 10_000_000
	if n, err := strconv.Atoi(os.Getenv("KEY_MESSAGES")); err == nil {
		many = n
	}
	binary, dir := build(t), t.TempDir()
	s := start(t, binary, dir)
	key := func(i int) string { return "order-" + strconv.Itoa(i) }
	unique := func(i int) string { return fmt.Sprintf("7F00000100002A139A55%012X", i) }
	fill(t, s.Broker, many, func(i int) string {
		return pair(message.PropertyKeys, key(i)) + pair(message.PropertyUniqKey, unique(i))
	})
	measure := func(when string) {
		c := transport.NewClient(transport.ClientOptions{})
		defer c.Close()
		for _, of := range []struct {
			what string
			key  func(int) string
		}{{"key", key}, {"unique key", unique}} {
			var took []time.Duration
			for i := range 1000 {
				i = i * 7919 % many
				began := time.Now()
				found := query(t, c, s.Broker, of.key(i))
				took = append(took, time.Since(began))
				if len(found) != 1 || string(found[0].Body) != body(i) {
					t.Fatalf("%s of message %d: %d messages", of.what, i, len(found))
				}
			}
			slices.Sort(took)
			half, most := took[len(took)/2], took[len(took)*99/100]
			t.Logf("%d messages, %s, query by %s: p50 %v, p99 %v, longest %v", many, when, of.what, half, most, took[len(took)-1])
			if half > 5*time.Millisecond || most > 50*time.Millisecond {
				t.Errorf("query by %s takes %v", of.what, half)
			}
		}
	}
	measure("just written")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, binary, dir)
	defer s.Stop()
	measure("after a restart")
}

// TestMillionKeysOfOneHash: a million keys that all have one hash cost a send nothing, and
// a query a look at each of the newest, up to a limit that is told; other requests of its
// connection do not wait for it.
func TestMillionKeysOfOneHash(t *testing.T) {
	s := start(t, build(t), t.TempDir())
	defer s.Stop()
	const many = 1 << 20
	key := func(i int) string { // Aa and BB have one hash in Java
		var k strings.Builder
		for bit := range 20 {
			k.WriteString([]string{"Aa", "BB"}[i>>bit&1])
		}
		return k.String()
	}
	fill(t, s.Broker, many, func(i int) string { return pair(message.PropertyKeys, key(i)) })
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	for _, i := range []int{many - 1, many - 50_000} {
		began := time.Now()
		found := query(t, c, s.Broker, key(i))
		t.Logf("message %d of %d with one hash: found in %v", i, many, time.Since(began))
		if len(found) != 1 || string(found[0].Body) != body(i) {
			t.Errorf("message %d: %d messages", i, len(found))
		}
	}
	answered := make(chan time.Duration, 1)
	began := time.Now()
	go func() {
		if r := ask(t, c, s.Broker, key(0)); r.Code != remoting.ResQueryNotFound || !strings.Contains(r.Remark, "narrower range of time") {
			t.Errorf("the oldest: %d %q", r.Code, r.Remark)
		}
		answered <- time.Since(began)
	}()
	var longest time.Duration
	for others := 0; ; others++ {
		select {
		case took := <-answered:
			t.Logf("the oldest: told in %v that it is too far behind; meanwhile %d other requests of the connection, the longest %v", took, others, longest)
			if took > 10*time.Second || others == 0 || longest > took/2 {
				t.Error("too long")
			}
			return
		default:
		}
		began := time.Now()
		call(t, c, s.Broker, remoting.ReqGetAllTopicConfig, nil)
		longest = max(longest, time.Since(began))
	}
}

func body(i int) string { return "body " + strconv.Itoa(i) }

func pair(name, value string) string { return name + "\x01" + value + "\x02" }

// fill sends many messages to the topic orders, in batches, and says at which rate.
func fill(t *testing.T, broker string, many int, properties func(int) string) {
	t.Helper()
	const batch, senders = 500, 4
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	topic := remoting.CreateTopicListBody{TopicConfigList: []remoting.TopicConfig{{TopicName: "orders", ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"}}}
	call(t, c, broker, remoting.ReqUpdateAndCreateTopicList, remoting.Marshal(&topic))
	var next atomic.Int64
	began := time.Now()
	var g sync.WaitGroup
	for range senders {
		g.Go(func() {
			for !t.Failed() {
				from := int(next.Add(batch)) - batch
				if from >= many {
					return
				}
				send(t, c, broker, from, min(from+batch, many), properties)
			}
		})
	}
	g.Wait()
	if t.Failed() {
		t.FailNow()
	}
	t.Logf("%d messages in %v", many, time.Since(began).Round(time.Millisecond))
}

// send sends messages from up to before to as one batch.
func send(t *testing.T, c *transport.Client, broker string, from, to int, properties func(int) string) {
	var text []byte
	for i := from; i < to; i++ {
		text, _ = message.AppendBatch(text, &message.Message{Body: []byte(body(i)), Properties: message.Properties(properties(i))})
	}
	h := remoting.SendMessageRequest{V2: true, ProducerGroup: "fill", Topic: "orders", DefaultTopic: "TBW102", DefaultTopicQueueNums: 8,
		QueueID: int32(from / 500 % 8), BornTimestamp: time.Now().UnixMilli(), Batch: true}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if r, err := c.Call(ctx, broker, remoting.ReqSendBatchMessage, &h, text); err != nil || r.Code != 0 {
		t.Errorf("send from %d: %v, %+v", from, err, r)
	}
}

// query asks for the messages of a key.
func query(t *testing.T, c *transport.Client, broker, key string) (found []message.Message) {
	t.Helper()
	for rest := ask(t, c, broker, key).Body; len(rest) > 0; {
		var m message.Message
		n, err := message.DecodeStored(rest, &m)
		if err != nil {
			t.Fatal(err)
		}
		found, rest = append(found, m), rest[n:]
	}
	return found
}

func ask(t *testing.T, c *transport.Client, broker, key string) *remoting.Command {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	h := remoting.QueryMessageRequest{Topic: "orders", Key: key, MaxNum: 32, EndTimestamp: time.Now().Add(time.Hour).UnixMilli()}
	r, err := c.Call(ctx, broker, remoting.ReqQueryMessage, &h, nil)
	if err != nil {
		t.Error(err)
		return &remoting.Command{}
	}
	return r
}

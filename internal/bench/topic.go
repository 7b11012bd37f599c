package bench

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// ask sends one request on a connection of its own and returns the answer.
func ask(ctx context.Context, addr string, code int32, h remoting.Header, body []byte) (*remoting.Command, error) {
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(remoting.AppendRequest(nil, code, 1, 0, h, body)); err != nil {
		return nil, err
	}
	var length [remoting.LengthSize]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	size, err := remoting.FrameSize(length[:])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	frame := make([]byte, size)
	if _, err := io.ReadFull(c, frame); err != nil {
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	answer := new(remoting.Command)
	if err := answer.Parse(frame); err != nil {
		return nil, err
	}
	if answer.Code != remoting.ResSuccess {
		return nil, &refused{answer.Code, fmt.Sprintf("%s answers %s with %d: %s", addr, remoting.CodeName(code), answer.Code, strings.TrimSpace(answer.Remark))}
	}
	return answer, nil
}

// refused is an answer other than success.
type refused struct {
	code int32
	text string
}

func (r *refused) Error() string { return r.text }

var addresses = regexp.MustCompile(`"?0"?:"([^"]+)"`)
var brokerNames = regexp.MustCompile(`"brokerName":"([^"]+)"`)

// target is where the topic's queues are.
type target struct {
	topic  string
	broker string // address of the master
	name   string // of the broker
	queues int
}

// prepare makes the topic on the first broker that the name server lists, unless one was
// named, and waits until its route is known.
func (o *Options) prepare(ctx context.Context) (target, error) {
	t := target{topic: o.Topic, queues: o.Queues}
	if o.Protocol == GRPC {
		// gRPC alone would say it late and in words of its own.
		c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", o.Endpoint)
		if err != nil {
			return t, err
		}
		c.Close()
	}
	if o.blind() {
		return t, nil
	}
	info, err := ask(ctx, o.Namesrv, remoting.ReqGetBrokerClusterInfo, nil, nil)
	if err != nil {
		return t, err
	}
	found, name := addresses.FindSubmatch(info.Body), brokerNames.FindSubmatch(info.Body)
	if found == nil || name == nil {
		return t, fmt.Errorf("the name server %s lists no broker", o.Namesrv)
	}
	t.broker, t.name = string(found[1]), string(name[1])
	if t.topic == "" {
		t.topic = fmt.Sprintf("bench-%08x", rand.Uint32())
		_, err := ask(ctx, t.broker, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
			Topic: t.topic, DefaultTopic: "TBW102",
			ReadQueueNums: int32(o.Queues), WriteQueueNums: int32(o.Queues), Perm: 6,
			TopicFilterType: "SINGLE_TAG", Attributes: "+message.type=" + cmp.Or(o.shape.kind, "NORMAL"),
		}, nil)
		if err != nil {
			return t, err
		}
	}
	for {
		route, err := ask(ctx, o.Namesrv, remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: t.topic}, nil)
		if o.Topic != "" {
			return t, t.existing(ctx, route, err)
		}
		if err == nil {
			return t, nil
		}
		select {
		case <-ctx.Done():
			return t, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// existing looks at a topic that the run has not made: how many queues it has, and that
// nothing is in them that the run would take for its own.
func (t *target) existing(ctx context.Context, route *remoting.Command, err error) error {
	var no *refused
	if errors.As(err, &no) && no.code == remoting.ResTopicNotExist {
		return fmt.Errorf("topic %s does not exist; bolide admin topic create %s makes it, and without --topic the run makes one", t.topic, t.topic)
	}
	if err != nil {
		return err
	}
	var data remoting.TopicRouteData
	if err := remoting.Unmarshal(route.Body, &data); err != nil {
		return fmt.Errorf("route of %s: %w", t.topic, err)
	}
	t.queues = 0
	for _, q := range data.QueueDatas {
		if q.BrokerName == t.name {
			t.queues = int(min(q.ReadQueueNums, q.WriteQueueNums))
		}
	}
	if t.queues < 1 {
		return fmt.Errorf("topic %s has no queue on %s, the broker that is measured", t.topic, t.name)
	}
	for q := range int32(t.queues) {
		var low remoting.GetMinOffsetResponse
		var high remoting.GetMaxOffsetResponse
		answer, err := ask(ctx, t.broker, remoting.ReqGetMinOffset, &remoting.GetMinOffsetRequest{Topic: t.topic, QueueID: q, BrokerName: t.name}, nil)
		if err == nil {
			err = answer.Decode(&low)
		}
		if err == nil {
			answer, err = ask(ctx, t.broker, remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: t.topic, QueueID: q, BrokerName: t.name}, nil)
		}
		if err == nil {
			err = answer.Decode(&high)
		}
		if err != nil {
			return err
		}
		if n := high.Offset - low.Offset; n > 0 {
			return fmt.Errorf("topic %s has to be empty, and has %d messages in queue %d: without --topic the run makes a topic of its own", t.topic, n, q)
		}
	}
	return nil
}

// createGroup makes the consumer group that a run acknowledges with, with these attributes.
func (t target) createGroup(ctx context.Context, attributes map[string]string) (string, error) {
	group := fmt.Sprintf("bench-group-%08x", rand.Uint32())
	more := make(map[string]string, len(attributes))
	for name, value := range attributes {
		more["+"+name] = value
	}
	text, err := json.Marshal(more)
	if err != nil {
		return "", err
	}
	body := fmt.Sprintf(`{"groupName":%q,"consumeEnable":true,"consumeFromMinEnable":true,"consumeBroadcastEnable":true,`+
		`"consumeMessageOrderly":false,"retryQueueNums":1,"retryMaxTimes":16,"brokerId":0,`+
		`"whichBrokerWhenConsumeSlowly":1,"notifyConsumerIdsChangedEnable":true,"groupSysFlag":0,"consumeTimeoutMinute":15,"attributes":%s}`, group, text)
	_, err = ask(ctx, t.broker, remoting.ReqUpdateAndCreateSubscriptionGroup, nil, []byte(body))
	return group, err
}

// deleteGroup deletes the group with all that it has in flight.
func (t target) deleteGroup(ctx context.Context, group string) error {
	_, err := ask(ctx, t.broker, remoting.ReqDeleteSubscriptionGroup, &remoting.DeleteSubscriptionGroupRequest{GroupName: group, CleanOffset: true}, nil)
	return err
}

// uniqueKeys makes UNIQ_KEY properties: a prefix for the run and the message's number.
type uniqueKeys struct{ prefix string }

func newUniqueKeys() uniqueKeys {
	return uniqueKeys{fmt.Sprintf("%016X", rand.Uint64())}
}

const upperHex = "0123456789ABCDEF"

// append appends 32 upper-case hex digits.
func (k uniqueKeys) append(dst []byte, number int64) []byte {
	dst = append(dst, k.prefix...)
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], uint64(number))
	for _, b := range raw {
		dst = append(dst, upperHex[b>>4], upperHex[b&15])
	}
	return dst
}

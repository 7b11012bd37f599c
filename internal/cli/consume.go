package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// pollTime is how long a request for messages waits at the broker.
const pollTime = 10 * time.Second

// popBatch is how many messages one request asks for.
const popBatch = 32

const (
	// routeEvery is how often a consumer looks for brokers that have come.
	routeEvery = 30 * time.Second
	// presentEvery is how often a consumer tells brokers that it is there.
	presentEvery = 30 * time.Second
	// againAfter is the pause before a broker that does not answer is asked again.
	againAfter = time.Second
	// partingTime is how long the end of a command takes at most: acknowledging what was printed,
	// giving back what was not.
	partingTime = 2 * time.Second
)

type consumeFlags struct {
	remote
	group, tag string
	max        int
	idle       time.Duration
	invisible  time.Duration
	asJSON     bool

	filter   *filter.Expression // of tag
	began    int64              // ms
	errs     io.Writer
	received atomic.Int32 // so that no more messages are asked for than are printed
}

func consumeCommand() *cobra.Command {
	f := &consumeFlags{}
	c := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Receive messages, print and acknowledge them",
		Long: "Receives messages as a member of a consumer group, prints and acknowledges them, until Ctrl-C,\n" +
			"--max or --idle. A broker that goes away is asked again each second, one that comes is found within\n" +
			"half a minute. What was received and not printed goes back at once. Groups are made as they are named: a misspelt one is a new group, and gets every\n" +
			"message that the topic still has.",
		Example: "  bolide consume orders --group warehouse --max 3\n" +
			"  bolide consume orders --group warehouse --json --idle 5s",
		Args: one("TOPIC"),
	}
	f.flags(c)
	c.Flags().StringVarP(&f.group, "group", "g", "bolide-consume", "consumer `GROUP`; a new one begins with the oldest message")
	c.Flags().StringVar(&f.tag, "tag", "*", "tag `EXPRESSION`, such as A||B")
	numberVar(c.Flags(), &f.max, "max", 0, 0, mostMessages, "end after this `NUMBER` of messages (0: never)")
	spanVar(c.Flags(), &f.idle, "idle", 0, 0, longestRun, "end when nothing has come for so long (0: never)")
	spanVar(c.Flags(), &f.invisible, "invisible", 30*time.Second, time.Second, longestInvisible, "how long a message is ours before others get it")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print whole messages, one JSON object a line")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := errors.Join(names.CheckTopic(args[0]), names.CheckGroup(f.group)); err != nil {
			return err
		}
		var err error
		if f.filter, err = filter.Compile(filter.KindTag, f.tag); err != nil {
			return err
		}
		f.began = time.Now().UnixMilli()
		f.errs = c.ErrOrStderr()
		f.open()
		defer f.close()
		err = f.consume(c.Context(), c.OutOrStdout(), args[0])
		if c.Context().Err() != nil {
			return nil // Ctrl-C is how it ends
		}
		return err
	}
	return c
}

// consume pops from all brokers at once, and hands what comes to one printer.
func (f *consumeFlags) consume(ctx context.Context, out io.Writer, topic string) error {
	at, err := f.route(ctx, topic)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, ctx := errgroup.WithContext(ctx)
	deliveries := make(chan delivery)
	g.Go(func() error {
		known := map[queues]bool{}
		for ctx.Err() == nil {
			for _, broker := range at {
				if broker.read > 0 && !known[broker.where()] {
					known[broker.where()] = true
					g.Go(func() error { return f.popFrom(ctx, broker, topic, deliveries) })
				}
			}
			if err := pause(ctx, routeEvery); err != nil {
				return err
			}
			if now, err := f.route(ctx, topic); err == nil {
				at = now
			}
		}
		return ctx.Err()
	})
	g.Go(func() error {
		defer cancel()
		return f.print(ctx, out, deliveries)
	})
	if err := g.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// where is the broker without the number of its queues.
func (q queues) where() queues { return queues{broker: q.broker, addr: q.addr} }

// parting is for the requests that are made at the end, too.
func parting(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), partingTime)
}

// delivery is one received message and what acknowledges it.
type delivery struct {
	message *message.Message
	handle  receipt.Handle
	topic   string
	addr    string
}

// ordered reports whether the topic is to be received in order. A broker that doesn't
// tell has no such topics.
func (f *consumeFlags) ordered(ctx context.Context, broker queues, topic string) bool {
	answer, err := f.call(ctx, broker.addr, remoting.ReqGetTopicConfig, &remoting.GetTopicConfigRequest{Topic: topic}, nil)
	if err != nil {
		return false
	}
	var c remoting.TopicConfig
	return remoting.Unmarshal(answer.Body, &c) == nil && c.Attributes["message.type"] == "FIFO"
}

// popFrom receives from one broker. While that does not answer, it asks again; what it refuses
// for good is an error.
func (f *consumeFlags) popFrom(ctx context.Context, broker queues, topic string, to chan<- delivery) error {
	ordered := f.ordered(ctx, broker, topic)
	told := false
	var present time.Time
	for ctx.Err() == nil && (f.max == 0 || f.received.Load() < int32(f.max)) {
		if time.Since(present) > presentEvery {
			f.announce(ctx, broker, topic)
			present = time.Now()
		}
		all, err := f.pop(ctx, broker, topic, ordered)
		switch {
		case err == nil:
			told = false
		case forGood(err):
			return err
		case ctx.Err() == nil:
			if !told {
				fmt.Fprintf(f.errs, "bolide: %v; asking again until it answers\n", err)
			}
			told = true
			present = time.Time{} // on a new connection nobody knows us
			_ = pause(ctx, againAfter)
		}
		f.received.Add(int32(len(all)))
		for i, d := range all {
			select {
			case to <- d:
			case <-ctx.Done():
				f.giveBack(ctx, all[i:])
				return ctx.Err()
			}
		}
	}
	return ctx.Err()
}

// forGood reports whether a broker has refused what it was asked. One that stops, or has too much
// to do, is like one that does not answer: it may later.
func forGood(err error) bool {
	var r *refusal
	if !errors.As(err, &r) {
		return false
	}
	switch r.code {
	case remoting.ResServiceNotAvailable, remoting.ResGoAway, remoting.ResSystemBusy:
		return false
	}
	return true
}

// announce makes this consumer a member of its group, for who looks at that: receiving takes no
// membership, so where a broker will not have it, it goes on without.
func (f *consumeFlags) announce(ctx context.Context, broker queues, topic string) {
	host, _ := os.Hostname()
	_, _ = f.call(ctx, broker.addr, remoting.ReqHeartBeat, nil, remoting.Marshal(&remoting.HeartbeatData{
		ClientID: fmt.Sprintf("bolide-consume@%s@%d", host, os.Getpid()),
		ConsumerDataSet: []remoting.ConsumerData{{GroupName: f.group, ConsumeType: remoting.ConsumePop, MessageModel: remoting.Clustering,
			ConsumeFromWhere: remoting.ConsumeFromFirstOffset, SubscriptionDataSet: []remoting.SubscriptionData{{Topic: topic, SubString: f.tag,
				TagsSet: f.filter.Tags(), CodeSet: f.filter.CodeSet(), SubVersion: f.began, ExpressionType: filter.KindTag}}}},
	}))
}

// giveBack lets others have at once what was not printed.
func (f *consumeFlags) giveBack(ctx context.Context, rest []delivery) {
	ctx, cancel := parting(ctx)
	defer cancel()
	for i := len(rest) - 1; i >= 0; i-- { // so that the first is the first again
		d := &rest[i]
		if _, err := f.call(ctx, d.addr, remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{
			ConsumerGroup: f.group, Topic: d.handle.RealTopic(d.topic, f.group), QueueID: d.handle.QueueID,
			ExtraInfo: d.handle.String(), Offset: d.handle.Offset, BrokerName: d.handle.Broker,
		}, nil); err != nil {
			return // they come again when their time is over
		}
	}
}

func (f *consumeFlags) pop(ctx context.Context, broker queues, topic string, ordered bool) ([]delivery, error) {
	count := int32(popBatch)
	if f.max > 0 {
		count = min(count, int32(f.max)-f.received.Load())
	}
	within, cancel := context.WithTimeout(ctx, pollTime+callTimeout)
	defer cancel()
	answer, err := f.client.Call(within, broker.addr, remoting.ReqPopMessage, &remoting.PopMessageRequest{
		ConsumerGroup: f.group, Topic: topic, QueueID: -1, MaxMsgNums: count,
		InvisibleTime: f.invisible.Milliseconds(), PollTime: pollTime.Milliseconds(),
		BornTime: time.Now().UnixMilli(), ExpType: filter.KindTag, Exp: f.tag, Order: ordered, BrokerName: broker.broker,
	}, nil)
	if err != nil {
		return nil, err
	}
	switch answer.Code {
	case remoting.ResSuccess:
		return deliveries(answer, broker, topic)
	case remoting.ResPollingTimeout, remoting.ResNoMessage, remoting.ResPullNotFound:
		return nil, nil
	case remoting.ResPollingFull:
		return nil, pause(ctx, againAfter)
	}
	return nil, &refusal{addr: broker.addr, code: answer.Code, remark: answer.Remark}
}

// deliveries reads the messages of an answer and builds the receipt of each.
func deliveries(answer *remoting.Command, broker queues, topic string) ([]delivery, error) {
	var h remoting.PopMessageResponse
	if err := answer.Decode(&h); err != nil {
		return nil, err
	}
	starts, err := receipt.ParseStartOffsets(h.StartOffsetInfo)
	if err != nil {
		return nil, err
	}
	var all []delivery
	for body := answer.Body; len(body) > 0; {
		m := &message.Message{}
		n, err := message.DecodeStored(body, m)
		if err != nil {
			return nil, fmt.Errorf("a message from %s: %w", broker.addr, err)
		}
		body = body[n:]
		d := delivery{message: m, topic: topic, addr: broker.addr}
		if text, ok := m.Properties.Get(message.PropertyPopCheckpoint); ok {
			if d.handle, err = receipt.Parse(text); err != nil {
				return nil, err
			}
		} else {
			q := receipt.Queue{QueueID: m.QueueID, RetryFlag: retryFlag(m.Topic, topic)}
			d.handle = receipt.Handle{
				StartOffset: starts[q], PopTime: h.PopTime, InvisibleTime: h.InvisibleTime,
				ReviveQueue: h.ReviveQid, RetryFlag: q.RetryFlag, Broker: broker.broker,
				QueueID: m.QueueID, Offset: m.QueueOffset, LogOffset: receipt.NoLogOffset,
			}
		}
		all = append(all, d)
	}
	return all, nil
}

// retryFlag tells by a message's stored topic where it was read from.
func retryFlag(stored, requested string) byte {
	switch {
	case stored == requested:
		return receipt.FlagNormal
	case names.IsPopRetryV2(stored):
		return receipt.FlagRetryV2
	}
	return receipt.FlagRetryV1
}

// print prints and acknowledges, until there were enough or none came for too long.
func (f *consumeFlags) print(ctx context.Context, out io.Writer, from <-chan delivery) error {
	idle := make(<-chan time.Time)
	for n := 0; f.max == 0 || n < f.max; n++ {
		if f.idle > 0 {
			idle = time.After(f.idle)
		}
		select {
		case d := <-from:
			if err := f.printOne(out, d); err != nil {
				return err
			}
			if err := f.ack(ctx, d); err != nil {
				return err
			}
		case <-idle:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ack acknowledges what was printed. Where the broker has gone, it comes again.
func (f *consumeFlags) ack(ctx context.Context, d delivery) error {
	ctx, cancel := parting(ctx)
	defer cancel()
	_, err := f.call(ctx, d.addr, remoting.ReqAckMessage, &remoting.AckMessageRequest{
		ConsumerGroup: f.group, Topic: d.handle.RealTopic(d.topic, f.group), QueueID: d.handle.QueueID,
		ExtraInfo: d.handle.String(), Offset: d.handle.Offset, BrokerName: d.handle.Broker,
	}, nil)
	if err != nil && !forGood(err) {
		fmt.Fprintf(f.errs, "bolide: message %s was not acknowledged and comes again: %v\n", d.message.UniqueID(), err)
		return nil
	}
	return err
}

func (f *consumeFlags) printOne(out io.Writer, d delivery) error {
	if f.asJSON {
		return printMessage(out, d.message, d.topic, d.handle.Broker)
	}
	body, err := unpacked(d.message)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", body)
	return err
}

// printMessage prints a whole message as one line of JSON.
func printMessage(out io.Writer, m *message.Message, topic, broker string) error {
	body, err := unpacked(m)
	if err != nil {
		return err
	}
	properties := map[string]string{}
	for name, value := range m.Properties.All() {
		properties[name] = value
	}
	return json.NewEncoder(out).Encode(struct {
		ID         string            `json:"id"`
		Topic      string            `json:"topic"`
		Broker     string            `json:"broker"`
		Queue      int32             `json:"queue"`
		Offset     int64             `json:"offset"`
		Tag        string            `json:"tag,omitempty"`
		Attempt    int32             `json:"attempt"`
		Born       time.Time         `json:"born"`
		Stored     time.Time         `json:"stored"`
		Properties map[string]string `json:"properties"`
		Body       string            `json:"body"`
	}{m.UniqueID(), topic, broker, m.QueueID, m.QueueOffset, m.Tag(), m.ReconsumeTimes + 1,
		time.UnixMilli(m.BornTimestamp).UTC(), time.UnixMilli(m.StoreTimestamp).UTC(), properties, string(body)})
}

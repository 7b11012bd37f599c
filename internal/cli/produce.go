package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// producerGroup is the group that produce sends as.
const producerGroup = "bolide-produce"

// maxLine is the longest message that produce reads from a line.
const maxLine = 4 << 20

type produceFlags struct {
	remote
	messageFlags
	body   string
	asJSON bool
	turn   int32 // round robin over the queues
	made   bool  // the first send makes the topic
}

func produceCommand() *cobra.Command {
	f := &produceFlags{}
	c := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "Send one message, or every line of standard input",
		Long: "Sends one message with --body, or every line of standard input, and prints their ids. Empty lines are\n" +
			"left out, since brokers refuse messages without a body, and counted on standard error. A topic that does\n" +
			"not exist is made by the first message that a broker takes, with a word about it there. Messages without\n" +
			"a message group go to all queues of all brokers in turn, from any one on. With --json each id has its\n" +
			"broker, queue and offset with it, or, where the message waits for its time, the recallHandle with which\n" +
			"bolide admin timer recall takes it back.",
		Example: "  bolide produce orders --body hello --tag new\n" +
			"  bolide produce orders --message-group order-1 < lines.txt\n" +
			"  bolide produce reminders --body wake --delay 90m\n" +
			"  bolide produce reminders --body wake --delay 90m --json | jq -r .recallHandle",
		Args: one("TOPIC"),
	}
	f.remote.flags(c)
	c.Flags().StringVarP(&f.body, "body", "b", "", "send this `TEXT` instead of standard input's lines")
	f.messageFlags.flags(c)
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object a line and message, not its id alone")
	c.RunE = func(c *cobra.Command, args []string) error {
		properties, err := f.read(c)
		if err != nil {
			return err
		}
		if c.Flags().Changed("body") && f.body == "" {
			return errors.New("--body is empty, and brokers refuse messages without a body")
		}
		f.open()
		defer f.close()
		at, err := f.writable(c, args[0])
		if err != nil {
			return err
		}
		f.turn = rand.Int32N(math.MaxInt32) // so that the messages of many calls are spread too
		if c.Flags().Changed("body") {
			return f.send(c, args[0], at, properties, []byte(f.body))
		}
		if interactive(c.InOrStdin()) {
			fmt.Fprintln(c.ErrOrStderr(), "one message a line, end with Ctrl-D")
		}
		empty := 0
		err = eachLine(c.InOrStdin(), func(line []byte) error {
			if len(line) == 0 {
				empty++
				return nil
			}
			return f.send(c, args[0], at, properties, line)
		})
		if empty > 0 {
			fmt.Fprintf(c.ErrOrStderr(), "%s left out: brokers refuse messages without a body\n", counted(empty, "empty line"))
		}
		return err
	}
	return c
}

// writable lists the queues of a topic; one that does not exist yet is made by sending to
// it, where the broker makes topics so.
func (f *produceFlags) writable(c *cobra.Command, topic string) ([]queues, error) {
	if err := names.CheckTopic(topic); err != nil {
		return nil, err
	}
	all, err := f.route(c.Context(), topic)
	if err != nil {
		template, templateErr := f.route(c.Context(), names.AutoCreate)
		if templateErr != nil {
			return nil, err
		}
		all, f.made = template, true
	}
	var can []queues
	for _, q := range all {
		if q.write > 0 {
			can = append(can, q)
		}
	}
	if len(can) == 0 {
		return nil, fmt.Errorf("topic %s has no queue to write to", topic)
	}
	if err == nil {
		f.warn(c, topic, can[0].addr)
	}
	return can, nil
}

// warn says on standard error that the topic is not for such messages.
func (f *produceFlags) warn(c *cobra.Command, topic, broker string) {
	t, err := f.topicConfig(c.Context(), broker, topic)
	if err != nil || t == nil {
		return // the send tells
	}
	if text := f.misfit(topic, typeOf(t)); text != "" {
		fmt.Fprintln(c.ErrOrStderr(), text)
	}
}

// choose picks the queue: that of the message group, the same as every gRPC producer picks,
// or the next in turn.
func (f *produceFlags) choose(at []queues) (broker queues, queue int32) {
	all := int32(0)
	for _, q := range at {
		all += q.write
	}
	if queue = f.turn % all; f.messageGroup != "" {
		queue = int32(message.GroupQueue(f.messageGroup, int(all)))
	}
	f.turn = (f.turn + 1) % all
	for _, broker = range at {
		if queue < broker.write {
			break
		}
		queue -= broker.write
	}
	return broker, queue
}

func (f *produceFlags) send(c *cobra.Command, topic string, at []queues, properties message.Properties, body []byte) error {
	broker, queue := f.choose(at)
	id := message.NewUniqueID()
	properties = f.own(properties, id, time.Now())
	answer, err := f.call(c.Context(), broker.addr, remoting.ReqSendMessageV2, &remoting.SendMessageRequest{
		V2: true, ProducerGroup: producerGroup, Topic: topic,
		DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 8,
		QueueID: queue, BornTimestamp: time.Now().UnixMilli(),
		Properties: string(properties),
	}, body)
	if err != nil {
		return err
	}
	if f.made {
		f.made = false
		fmt.Fprintf(c.ErrOrStderr(), "topic %s was new: %s has made it\n", topic, broker.broker)
	}
	if f.asJSON {
		return printSent(c.OutOrStdout(), id, broker.broker, answer, properties.Has(message.PropertyTimerDeliverMs))
	}
	fmt.Fprintln(c.OutOrStdout(), id)
	return nil
}

// printSent prints where a message is as one line of JSON. One that waits for its time has no
// place in its topic yet, and a handle to take it back.
func printSent(out io.Writer, id, broker string, answer *remoting.Command, waits bool) error {
	var placed remoting.SendMessageResponse
	if err := answer.Decode(&placed); err != nil {
		return fmt.Errorf("answer of %s: %w", broker, err)
	}
	line := struct {
		ID           string `json:"id"`
		Broker       string `json:"broker"`
		Queue        *int32 `json:"queue,omitempty"`
		Offset       *int64 `json:"offset,omitempty"`
		RecallHandle string `json:"recallHandle,omitempty"`
	}{ID: id, Broker: broker, RecallHandle: placed.RecallHandle}
	if !waits {
		line.Queue, line.Offset = &placed.QueueID, &placed.QueueOffset
	}
	return json.NewEncoder(out).Encode(line)
}

// eachLine calls do with every line, without its end; what goes wrong is said with its number.
func eachLine(r io.Reader, do func([]byte) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 1
	for ; lines.Scan(); n++ {
		if err := do(lines.Bytes()); err != nil {
			return fmt.Errorf("line %d of standard input: %w", n, err)
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("longer than %d bytes", maxLine)
	}
	if err != nil {
		return fmt.Errorf("line %d of standard input: %w", n, err)
	}
	return nil
}

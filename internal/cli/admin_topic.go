package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// attributeType is the attribute that says for which messages a topic is.
const attributeType = "message.type"

// topicConfig asks a broker what a topic is; nil if it has none of that name, or does not tell.
func (r *remote) topicConfig(ctx context.Context, addr, topic string) (*remoting.TopicConfig, error) {
	answer, err := r.call(ctx, addr, remoting.ReqGetTopicConfig, &remoting.GetTopicConfigRequest{Topic: topic}, nil)
	if refusedWith(err, remoting.ResTopicNotExist) || refusedWith(err, remoting.ResRequestCodeNotSupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	t := new(remoting.TopicConfig)
	if err := remoting.Unmarshal(answer.Body, t); err != nil {
		return nil, fmt.Errorf("topic %s of %s: %w", topic, addr, err)
	}
	return t, nil
}

func topicShow(r *remote) *cobra.Command {
	c := &cobra.Command{
		Use:   "show TOPIC",
		Short: "What a topic is on each broker, what its queues hold, and which groups consume it",
		Long: "Shows what a topic is on each broker, what its queues hold, and which groups consume it: those that\n" +
			"are connected or have an offset. FIRST is the oldest message whose log file is still there; LAST\n" +
			"STORED is when the newest one was stored.",
		Args: one("TOPIC"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		r.open()
		defer r.close()
		s := topicStanding{remote: r, topic: args[0], groups: map[string]bool{}}
		all, err := r.eachOf(c.Context(), args[0], func(broker queues) error { return s.ask(c, broker) })
		if err != nil {
			return err
		}
		s.print(c)
		return all.incomplete("this is not all of the topic")
	}
	return c
}

// topicStanding is what the brokers have of a topic.
type topicStanding struct {
	*remote
	topic  string
	held   map[remoting.MessageQueue]remoting.TopicOffset
	groups map[string]bool
}

// ask prints what a topic is on one broker, and gathers what is told of all together.
func (s *topicStanding) ask(c *cobra.Command, broker queues) error {
	var (
		stats  remoting.TopicStatsTable
		groups remoting.GroupList
	)
	for _, q := range []struct {
		code   int32
		header remoting.Header
		body   remoting.Body
	}{
		{remoting.ReqGetTopicStatsInfo, &remoting.GetTopicStatsInfoRequest{Topic: s.topic}, &stats},
		{remoting.ReqQueryTopicConsumeByWho, &remoting.QueryTopicConsumeByWhoRequest{Topic: s.topic}, &groups},
	} {
		answer, err := s.call(c.Context(), broker.addr, q.code, q.header, nil)
		if err == nil {
			err = remoting.Unmarshal(answer.Body, q.body)
		}
		if err != nil {
			return err
		}
	}
	t, err := s.topicConfig(c.Context(), broker.addr, s.topic)
	if err != nil {
		return err
	}
	if t != nil {
		fmt.Fprintf(c.OutOrStdout(), "topic %s on %s: type %s, %s, %s\n", s.topic, broker.broker, typeOf(t), queueCounts(t), permitted(int64(t.Perm)))
	}
	if s.held == nil {
		s.held = map[remoting.MessageQueue]remoting.TopicOffset{}
	}
	maps.Copy(s.held, stats.OffsetTable)
	for _, g := range groups.GroupList {
		s.groups[g] = true
	}
	return nil
}

func (s *topicStanding) print(c *cobra.Command) {
	out := c.OutOrStdout()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "QUEUE\tFIRST\tEND\tMESSAGES\tLAST STORED")
	sum := int64(0)
	for _, q := range slices.SortedFunc(maps.Keys(s.held), remoting.MessageQueue.Compare) {
		h, last := s.held[q], "-"
		if h.LastUpdateTimestamp > 0 {
			last = time.UnixMilli(h.LastUpdateTimestamp).Format(time.DateTime)
		}
		sum += h.MaxOffset - h.MinOffset
		fmt.Fprintf(w, "%s/%d\t%d\t%d\t%d\t%s\n", q.BrokerName, q.QueueID, h.MinOffset, h.MaxOffset, h.MaxOffset-h.MinOffset, last)
	}
	w.Flush()
	fmt.Fprintf(out, "%s\ngroups: %s\n", counted(sum, "message"), orDash(strings.Join(slices.Sorted(maps.Keys(s.groups)), ", ")))
}

// queueCounts tells reading and writing apart where they differ.
func queueCounts(t *remoting.TopicConfig) string {
	if t.ReadQueueNums != t.WriteQueueNums {
		return fmt.Sprintf("%s to read, %d to write", counted(t.ReadQueueNums, "queue"), t.WriteQueueNums)
	}
	return counted(t.WriteQueueNums, "queue")
}

// putTopic makes a topic on one broker, or changes what flags say of one that is there, and
// says what it did.
func (r *remote) putTopic(c *cobra.Command, b master, topic, kind string, count int32) (said string, err error) {
	t, err := r.topicConfig(c.Context(), b.addr, topic)
	if err != nil {
		return "", err
	}
	attributes := "+" + attributeType + "=" + strings.ToUpper(kind)
	if t == nil {
		t = &remoting.TopicConfig{ReadQueueNums: count, WriteQueueNums: count, Perm: permRead | permWrite, TopicFilterType: "SINGLE_TAG"}
		said = fmt.Sprintf("topic %s, type %s, %s on %s", topic, kind, queueCounts(t), b.broker)
	} else {
		var changed []string
		was := typeOf(t)
		if c.Flags().Changed("type") && kind != was {
			changed = append(changed, fmt.Sprintf("type %s, was %s", kind, was))
		} else {
			kind, attributes = was, ""
		}
		if c.Flags().Changed("queues") && (count != t.ReadQueueNums || count != t.WriteQueueNums) {
			changed = append(changed, fmt.Sprintf("%s, were %d", counted(count, "queue"), t.WriteQueueNums))
			t.ReadQueueNums, t.WriteQueueNums = count, count
		}
		if len(changed) == 0 {
			return fmt.Sprintf("topic %s is on %s already, type %s, %s: nothing is changed", topic, b.broker, kind, queueCounts(t)), nil
		}
		said = fmt.Sprintf("topic %s on %s: %s", topic, b.broker, strings.Join(changed, "; "))
	}
	_, err = r.call(c.Context(), b.addr, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
		Topic: topic, DefaultTopic: names.AutoCreate, ReadQueueNums: t.ReadQueueNums, WriteQueueNums: t.WriteQueueNums, Perm: t.Perm,
		TopicFilterType: t.TopicFilterType, TopicSysFlag: t.TopicSysFlag, Order: t.Order, Attributes: attributes,
	}, nil)
	return said, err
}

// typeOf is the type of a topic's messages as --type has it; a topic that a send made has none.
func typeOf(t *remoting.TopicConfig) string {
	return strings.ToLower(cmp.Or(t.Attributes[attributeType], "unspecified"))
}

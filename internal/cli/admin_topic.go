package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

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
		said = fmt.Sprintf("topic %s, type %s, %d queues on %s", topic, kind, count, b.broker)
	} else {
		var changed []string
		was := typeOf(t)
		if c.Flags().Changed("type") && kind != was {
			changed = append(changed, fmt.Sprintf("type %s, was %s", kind, was))
		} else {
			kind, attributes = was, ""
		}
		if c.Flags().Changed("queues") && (count != t.ReadQueueNums || count != t.WriteQueueNums) {
			changed = append(changed, fmt.Sprintf("%d queues, were %d", count, t.WriteQueueNums))
			t.ReadQueueNums, t.WriteQueueNums = count, count
		}
		if len(changed) == 0 {
			return fmt.Sprintf("topic %s is on %s already, type %s, %d queues: nothing is changed", topic, b.broker, kind, t.WriteQueueNums), nil
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

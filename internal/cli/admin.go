package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func adminCommand() *cobra.Command {
	r := &remote{}
	c := folder("admin", "Brokers, topics, groups, messages, deliveries and dead letters of running servers",
		folder("broker", "List brokers, show and change their settings", brokerList(r), brokerConfig(r), brokerSet(r)),
		folder("topic", "Create, list, look at and delete topics", topicCreate(r), topicList(r), topicShow(r), topicDelete(r)),
		folder("group", "Create, list, look at, reset and delete consumer groups", groupCreate(r), groupList(r), groupShow(r), groupReset(r), groupDelete(r)),
		messageCommand(r),
		folder("dlq", "List, show and redrive dead letters", dlqList(r), dlqShow(r), dlqRedrive(r)),
		folder("txn", "List undecided transactions and decide them", txnList(r), txnDecide(r, "commit", message.SysTransactionCommit), txnDecide(r, "rollback", message.SysTransactionRollback)),
		popCommand(r), timerCommand(r))
	r.flags(c)
	return c
}

// topicTypes are the message types that a topic can be made for.
var topicTypes = []string{"normal", "fifo", "delay", "transaction", "priority", "lite", "mixed"}

func topicCreate(r *remote) *cobra.Command {
	var kind string
	var count int32
	c := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic on every broker, or change it",
		Long: "Creates a topic on every broker. Where there is one of that name, it gets what the flags say, and\n" +
			"keeps what they do not.",
		Args: one("TOPIC"),
	}
	c.Flags().StringVar(&kind, "type", "normal", "`TYPE` of its messages: "+strings.Join(topicTypes, ", ")+" (where enableMixedMessageType is on)")
	numberVar(c.Flags(), &count, "queues", 8, 1, 65535, "`NUMBER` of queues on each broker")
	c.RunE = func(c *cobra.Command, args []string) error {
		kind = strings.ToLower(kind)
		if !slices.Contains(topicTypes, kind) {
			return fmt.Errorf("--type %q is not one of %s", kind, strings.Join(topicTypes, ", "))
		}
		if err := names.CheckTopic(args[0]); err != nil {
			return err
		}
		r.open()
		defer r.close()
		return r.put(c, "topic "+args[0], func(b master) (string, error) { return r.putTopic(c, b, args[0], kind, count) })
	}
	return c
}

// put makes or changes something on every broker and prints what was done; that one is missing is
// an error at the end.
func (r *remote) put(c *cobra.Command, what string, on func(master) (said string, err error)) error {
	all, err := r.census(c.Context())
	if err != nil {
		return err
	}
	err = all.each(c.Context(), func(b master) error {
		said, err := on(b)
		if err == nil {
			fmt.Fprintln(c.OutOrStdout(), said)
		}
		return err
	})
	if err != nil {
		return err
	}
	return all.incomplete(what + " is not on all brokers")
}

func topicList(r *remote) *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "list", Short: "List the topics", Args: none}
	c.Flags().BoolVar(&all, "all", false, "system, retry and dead-letter topics too")
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.open()
		defer r.close()
		topics, err := r.topics(c.Context())
		if err != nil {
			return err
		}
		info, err := r.cluster(c.Context())
		if err != nil {
			return err
		}
		for _, topic := range topics {
			// Each broker and each cluster has a topic of its own name.
			_, isBroker := info.BrokerAddrTable[topic]
			_, isCluster := info.ClusterAddrTable[topic]
			if !all && (isBroker || isCluster || names.IsSystemTopic(topic) || names.IsRetry(topic) || names.IsDeadLetter(topic) ||
				strings.HasSuffix(topic, names.ReplySuffix)) {
				continue
			}
			fmt.Fprintln(c.OutOrStdout(), topic)
		}
		return nil
	}
	return c
}

func topicDelete(r *remote) *cobra.Command {
	return &cobra.Command{
		Use:   "delete TOPIC",
		Short: "Delete a topic and its messages",
		Long: "Deletes a topic and its messages, on every broker and at all name servers that are named: brokers do\n" +
			"not tell the others, where clients go on finding it.",
		Args: one("TOPIC"),
		RunE: func(c *cobra.Command, args []string) error {
			r.open()
			defer r.close()
			topics, err := r.topics(c.Context())
			if err != nil {
				return err
			}
			if !slices.Contains(topics, args[0]) {
				return fmt.Errorf("topic %s does not exist", args[0])
			}
			all, err := r.census(c.Context())
			if err != nil {
				return err
			}
			err = all.each(c.Context(), func(b master) error {
				_, err := r.call(c.Context(), b.addr, remoting.ReqDeleteTopicInBroker, &remoting.DeleteTopicInBrokerRequest{Topic: args[0]}, nil)
				return err
			})
			if err != nil {
				return err
			}
			for _, at := range r.namesrvs {
				_, err := r.call(c.Context(), at, remoting.ReqDeleteTopicInNamesrv, &remoting.DeleteTopicInNamesrvRequest{Topic: args[0]}, nil)
				switch {
				case err != nil && c.Context().Err() == nil && errors.As(err, new(silence)):
					all.missing = append(all.missing, fmt.Sprintf("name server %s did not answer (%v)", at, plain(err)))
				case err != nil:
					return err
				}
			}
			if err := all.incomplete("topic " + args[0] + " is not deleted everywhere"); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "topic %s deleted\n", args[0])
			return nil
		},
	}
}

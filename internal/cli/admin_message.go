package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// messageCommand finds messages by what their producers know of them.
func messageCommand(r *remote) *cobra.Command {
	var limit int32
	c := &cobra.Command{
		Use:   "message TOPIC KEY",
		Short: "Find messages by a key or by their id",
		Long: "Prints the messages of a topic that have a key, or that have it as their id, the one that sending them\n" +
			"returned: as JSON, one a line, those of each broker the newest first. A message can be found as long as its log file is there.",
		Example: "  bolide admin message orders order-1207\n" +
			"  bolide admin message orders 016E10AAEA93E33D1F0B1F581100000000",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs a TOPIC and a KEY: %s", c.CommandPath(), c.UseLine())
			}
			return nil
		},
	}
	numberVar(c.Flags(), &limit, "limit", 32, 1, 1000, "`NUMBER` of messages to print of each broker")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.open()
		defer r.close()
		found := false
		all, err := r.eachOf(c.Context(), args[0], func(broker queues) error {
			list, err := r.query(c.Context(), broker.addr, args[0], args[1], limit)
			if err != nil {
				return err
			}
			for i := range list {
				found = true
				if err := printMessage(c.OutOrStdout(), &list[i], args[0], broker.broker); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		if err := all.incomplete("not every broker was asked"); err != nil || found {
			return err
		}
		return fmt.Errorf("topic %s has no message with the key or id %s", args[0], args[1])
	}
	return c
}

// query asks one broker for the messages with a key. Its index knows hashes only, and not every
// server looks closer.
func (r *remote) query(ctx context.Context, addr, topic, key string, most int32) ([]message.Message, error) {
	answer, err := r.call(ctx, addr, remoting.ReqQueryMessage, &remoting.QueryMessageRequest{Topic: topic, Key: key, MaxNum: most, EndTimestamp: math.MaxInt64}, nil)
	if refusedWith(err, remoting.ResQueryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := messagesOf(answer.Body, addr)
	return slices.DeleteFunc(list, func(m message.Message) bool {
		return m.UniqueID() != key && !slices.Contains(strings.Fields(m.Properties.Value(message.PropertyKeys)), key)
	}), err
}

// messagesOf reads the messages that a server has answered with.
func messagesOf(body []byte, addr string) (all []message.Message, err error) {
	for len(body) > 0 {
		var m message.Message
		n, err := message.DecodeStored(body, &m)
		if err != nil {
			return nil, fmt.Errorf("a message from %s: %w", addr, err)
		}
		all, body = append(all, m), body[n:]
	}
	return all, nil
}

package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// timerRecall takes back a message that waits for its time.
func timerRecall(r *remote) *cobra.Command {
	return &cobra.Command{
		Use:   "recall HANDLE",
		Short: "Take back a message before its time of delivery",
		Long: "Takes back a message that waits for a time of its own. HANDLE is the recallHandle that its sender was\n" +
			"answered with; it names broker, topic and message. After its time it is too late, which is an error.\n" +
			"What is taken back is never delivered; to take it back again changes nothing and succeeds. Messages in\n" +
			"delay levels have no handle. Apache's brokers do it only with recallMessageEnable.",
		Example: "  handle=$(bolide produce reminders --body wake --delay 90m --json | jq -r .recallHandle)\n" +
			"  bolide admin timer recall \"$handle\"",
		Args: one("HANDLE"),
		RunE: func(c *cobra.Command, args []string) error {
			h, err := message.ParseRecallHandle(args[0])
			if err != nil {
				return fmt.Errorf("%w; bolide produce --delay or --at prints handles with --json", err)
			}
			r.open()
			defer r.close()
			all, err := r.census(c.Context())
			if err != nil {
				return err
			}
			if err := r.onlyBroker(all, h.Broker); err != nil {
				return fmt.Errorf("the message waits on %s: %w", h.Broker, err)
			}
			_, err = r.call(c.Context(), all.brokers[0].addr, remoting.ReqRecallMessage, &remoting.RecallMessageRequest{
				ProducerGroup: producerGroup, Topic: h.Topic, RecallHandle: args[0]}, nil)
			var refused *refusal
			if errors.As(err, &refused) && refused.code != remoting.ResRequestCodeNotSupported {
				return fmt.Errorf("message %s of topic %s is not taken back: %w", h.UniqKey, h.Topic, err)
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "message %s of topic %s, for %s, is taken back\n", h.UniqKey, h.Topic, time.UnixMilli(h.Due).Format(time.DateTime))
			return nil
		},
	}
}

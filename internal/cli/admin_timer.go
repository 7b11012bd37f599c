package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// timerCommand shows what waits for a time of its own.
func timerCommand(r *remote) *cobra.Command {
	var limit int32
	var asJSON bool
	c := &cobra.Command{
		Use:   "timer [TOPIC]",
		Short: "Show how many messages wait for their time of delivery, and the next of them",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return one("TOPIC")(c, args)
		},
		Example: "  bolide admin timer\n" +
			"  bolide admin timer orders --limit 100 --json",
	}
	numberVar(c.Flags(), &limit, "limit", 10, 0, 10_000, "`NUMBER` of messages to list, the next ones")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line and broker")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.open()
		defer r.close()
		brokers, err := r.masters(c.Context())
		if err != nil {
			return err
		}
		ask := &remoting.GetTimersRequest{Limit: limit}
		if len(args) > 0 {
			ask.Topic = args[0]
		}
		for _, b := range brokers {
			answer, err := r.call(c.Context(), b.addr, remoting.ReqBolideGetTimers, ask, nil)
			if refusedWith(err, remoting.ResRequestCodeNotSupported) {
				return fmt.Errorf("%s is no bolide server, only those tell what waits", b.addr)
			}
			if err != nil {
				return err
			}
			var timers remoting.Timers
			if err := remoting.Unmarshal(answer.Body, &timers); err != nil {
				return fmt.Errorf("timers: %w", err)
			}
			if len(args) > 0 && len(timers.Topics) == 0 {
				if _, err := r.route(c.Context(), args[0]); errors.As(err, new(noTopic)) {
					return fmt.Errorf("topic %s does not exist", args[0])
				}
			}
			if asJSON {
				err = printTimersJSON(c.OutOrStdout(), b.broker, &timers)
			} else {
				printTimers(c.OutOrStdout(), b.broker, &timers)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// printTimersJSON prints what a broker has in one line.
func printTimersJSON(out io.Writer, broker string, timers *remoting.Timers) error {
	type next struct {
		Topic    string    `json:"topic"`
		Due      time.Time `json:"due"`
		ID       string    `json:"id"`
		Size     int32     `json:"size"`
		Recalled bool      `json:"recalled,omitempty"`
	}
	line := struct {
		Broker string           `json:"broker"`
		Topics map[string]int64 `json:"topics"`
		Next   []next           `json:"next"`
	}{Broker: broker, Topics: map[string]int64{}, Next: []next{}}
	for _, t := range timers.Topics {
		line.Topics[t.Topic] = t.Count
	}
	for _, t := range timers.Next {
		line.Next = append(line.Next, next{t.Topic, time.UnixMilli(t.Due).UTC(), t.MsgID, t.Size, t.Recalled})
	}
	return json.NewEncoder(out).Encode(line)
}

func printTimers(out io.Writer, broker string, timers *remoting.Timers) {
	if len(timers.Topics) == 0 {
		fmt.Fprintf(out, "nothing waits on %s\n", broker)
	}
	for _, t := range timers.Topics {
		fmt.Fprintf(out, "%s on %s: %d wait\n", t.Topic, broker, t.Count)
	}
	for _, t := range timers.Next {
		when, tail := "in "+short(t.Due-timers.Now), ""
		if t.Due <= timers.Now {
			when = "due"
		}
		if t.Recalled {
			tail = ", is being taken back"
		}
		fmt.Fprintf(out, "  %s (%s): %s to %s, %d bytes%s\n", time.UnixMilli(t.Due).Format("2006-01-02 15:04:05.000"), when, t.MsgID, t.Topic, t.Size, tail)
	}
}

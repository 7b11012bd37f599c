package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// timerCommand shows what waits for a time of its own.
func timerCommand(r *remote) *cobra.Command {
	var limit int32
	var asJSON bool
	c := &cobra.Command{
		Use:   "timer [TOPIC]",
		Short: "Show how many messages wait for their time of delivery, and the next of them",
		Long: "Shows how many messages wait for a time of their own, by the topic that they go to, and the next of\n" +
			"them. What waits in a delay level is counted by level, of all topics: retries of classic consumers\n" +
			"are among that. Times from now on are the broker's, whatever this machine's clock shows.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return one("TOPIC")(c, args)
		},
		Example: "  bolide admin timer\n" +
			"  bolide admin timer orders --limit 100 --json",
	}
	c.AddCommand(timerRecall(r))
	numberVar(c.Flags(), &limit, "limit", 10, 0, 10_000, "`NUMBER` of messages to list, the next ones")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line and broker")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.open()
		defer r.close()
		all, err := r.census(c.Context())
		if err != nil {
			return err
		}
		ask := &remoting.GetTimersRequest{Limit: limit}
		if len(args) > 0 {
			ask.Topic = args[0]
		}
		if err := all.each(c.Context(), func(b master) error { return r.showTimers(c, b, ask, asJSON) }); err != nil {
			return err
		}
		return all.incomplete("this is not all that waits")
	}
	return c
}

// showTimers prints what waits on one broker.
func (r *remote) showTimers(c *cobra.Command, b master, ask *remoting.GetTimersRequest, asJSON bool) error {
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
	if ask.Topic != "" && len(timers.Topics) == 0 {
		if _, err := r.route(c.Context(), ask.Topic); errors.As(err, new(noTopic)) {
			return fmt.Errorf("topic %s does not exist", ask.Topic)
		}
	}
	levels, err := r.delayLevels(c.Context(), b)
	if err != nil {
		return err
	}
	if asJSON {
		return printTimersJSON(c.OutOrStdout(), b.broker, &timers, levels)
	}
	printTimers(c.OutOrStdout(), b.broker, &timers, levels)
	return nil
}

// delayLevels counts what waits in each delay level of a broker.
func (r *remote) delayLevels(ctx context.Context, b master) (map[int32]int64, error) {
	answer, err := r.call(ctx, b.addr, remoting.ReqGetAllDelayOffset, nil, nil)
	if refusedWith(err, remoting.ResRequestCodeNotSupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var done remoting.DelayOffsetTable
	if err := remoting.Unmarshal(answer.Body, &done); err != nil {
		return nil, fmt.Errorf("progress of the delay levels: %w", err)
	}
	answer, err = r.call(ctx, b.addr, remoting.ReqGetTopicStatsInfo, &remoting.GetTopicStatsInfoRequest{Topic: names.Schedule}, nil)
	if refusedWith(err, remoting.ResTopicNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var stats remoting.TopicStatsTable
	if err := remoting.Unmarshal(answer.Body, &stats); err != nil {
		return nil, fmt.Errorf("extent of the delay levels: %w", err)
	}
	waits := map[int32]int64{}
	for q, extent := range stats.OffsetTable {
		level := q.QueueID + 1
		if n := extent.MaxOffset - max(extent.MinOffset, done.OffsetTable[level]); n > 0 {
			waits[level] = n
		}
	}
	return waits, nil
}

// printTimersJSON prints what a broker has in one line.
func printTimersJSON(out io.Writer, broker string, timers *remoting.Timers, levels map[int32]int64) error {
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
		Levels map[int32]int64  `json:"levels,omitempty"` // of all topics
	}{Broker: broker, Topics: map[string]int64{}, Next: []next{}, Levels: levels}
	for _, t := range timers.Topics {
		line.Topics[t.Topic] = t.Count
	}
	for _, t := range timers.Next {
		line.Next = append(line.Next, next{t.Topic, time.UnixMilli(t.Due).UTC(), t.MsgID, t.Size, t.Recalled})
	}
	return json.NewEncoder(out).Encode(line)
}

func printTimers(out io.Writer, broker string, timers *remoting.Timers, levels map[int32]int64) {
	if len(timers.Topics)+len(levels) == 0 {
		fmt.Fprintf(out, "nothing waits on %s\n", broker)
	}
	for _, t := range timers.Topics {
		fmt.Fprintf(out, "%s on %s: %d wait\n", t.Topic, broker, t.Count)
	}
	for _, level := range slices.Sorted(maps.Keys(levels)) {
		fmt.Fprintf(out, "delay level %d on %s, of all topics: %d wait\n", level, broker, levels[level])
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

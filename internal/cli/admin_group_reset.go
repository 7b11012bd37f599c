package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func groupReset(r *remote) *cobra.Command {
	s := &reset{remote: r}
	c := &cobra.Command{
		Use:   "reset GROUP TOPIC",
		Short: "Let a group go on from another place in a topic",
		Long: "Sets the offsets of a group in all queues of a topic, or in one. Consumers that are connected take\n" +
			"them up at once, those that are not when they come; what was in flight in those queues is given up.\n" +
			"With --dry-run nothing is changed: it shows where the group is, that is the first message that it is\n" +
			"not done with, where it would go, and how many messages in flight it would give up.",
		Example: "  bolide admin group reset billing orders --to start --dry-run\n" +
			"  bolide admin group reset billing orders --to 2026-05-04T12:00:00Z\n" +
			"  bolide admin group reset billing orders --queue broker-a/3 --to-offset 1207",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs a GROUP and a TOPIC: %s", c.CommandPath(), c.UseLine())
			}
			return nil
		},
	}
	c.Flags().StringVar(&s.to, "to", "", "`PLACE`: start, end, a time such as 2026-05-04T12:00:00Z, or milliseconds since 1970")
	numberVar(c.Flags(), &s.offset, "to-offset", 0, 0, math.MaxInt64, "`OFFSET` of the message to go on with, in the queue of --queue")
	c.Flags().StringVar(&s.only, "queue", "", "only this `QUEUE`: BROKER/NUMBER, or its number where one broker has the topic")
	c.Flags().BoolVar(&s.dry, "dry-run", false, "show what would be done, and do nothing")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := s.read(c); err != nil {
			return err
		}
		s.group, s.topic = args[0], args[1]
		r.open()
		defer r.close()
		return s.run(c)
	}
	return c
}

// reset is where a group is to go on.
type reset struct {
	*remote
	group, topic string
	to           string
	ms           int64 // what to is: milliseconds, or -1 for the end
	offset       int64
	byOffset     bool // offset counts, not to
	only         string
	broker       string // of only; "": the one that has the topic
	queue        int32  // of only; -1: all
	dry          bool
}

// read judges the flags before a server is asked for anything.
func (s *reset) read(c *cobra.Command) (err error) {
	s.queue = -1
	if c.Flags().Changed("queue") {
		broker, number, named := cutLast(s.only, "/")
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil || named && broker == "" {
			return fmt.Errorf("--queue %q is not BROKER/NUMBER, such as broker-a/3, or a number", s.only)
		}
		s.broker, s.queue = broker, int32(n)
	}
	if s.byOffset = c.Flags().Changed("to-offset"); !s.byOffset {
		s.ms, err = placeOf(s.to, time.Now())
		return err
	}
	switch {
	case c.Flags().Changed("to"):
		return errors.New("--to and --to-offset: a group goes to one place")
	case s.queue < 0:
		return errors.New("--to-offset needs --queue: an offset is a place in one queue")
	}
	return nil
}

// cutLast is strings.Cut at the last separator; without one all is after it.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return "", text, false
	}
	return text[:i], text[i+len(separator):], true
}

func (s *reset) run(c *cobra.Command) error {
	all, err := s.census(c.Context())
	if err != nil {
		return err
	}
	if err := s.known(c.Context(), all, s.group); err != nil {
		return err
	}
	at, err := s.route(c.Context(), s.topic)
	if err != nil {
		return err
	}
	if at, err = s.choose(at); err != nil {
		return err
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	defer w.Flush()
	first := true
	err = all.eachOf(c.Context(), at, func(broker queues) error {
		b := master{broker.broker, broker.addr}
		are, err := s.standing(c.Context(), b)
		if err != nil {
			return err
		}
		goes, err := s.apply(c.Context(), b, are)
		if err != nil {
			return err
		}
		if first {
			first = false
			fmt.Fprintln(w, map[bool]string{true: "QUEUE\tIS\tWOULD BE\tIN FLIGHT", false: "QUEUE\tWAS\tIS"}[s.dry])
		}
		s.print(w, are, goes)
		return nil
	})
	if err != nil {
		return err
	}
	if s.dry {
		return all.incomplete("this is not all that would be reset")
	}
	return all.incomplete("what is missing is not reset")
}

func (s *reset) print(w *tabwriter.Writer, are []queueStanding, goes map[remoting.MessageQueue]int64) {
	for _, q := range are {
		is := "not begun"
		if q.begun {
			is = strconv.FormatInt(q.ConsumerOffset, 10)
		}
		fmt.Fprintf(w, "%s/%d\t%s\t%d", q.BrokerName, q.QueueID, is, goes[q.MessageQueue])
		if s.dry {
			fmt.Fprintf(w, "\t%d", max(0, q.PullOffset-q.ConsumerOffset))
		}
		fmt.Fprintln(w)
	}
}

// choose leaves the broker of --queue.
func (s *reset) choose(at []queues) ([]queues, error) {
	if s.queue < 0 {
		return at, nil
	}
	var have []string
	for _, b := range at {
		have = append(have, b.broker)
	}
	on := strings.Join(have, ", ")
	if s.broker == "" {
		if len(at) > 1 {
			return nil, fmt.Errorf("topic %s is on %s: say of which, such as --queue %s/%d", s.topic, on, have[0], s.queue)
		}
		return at, nil
	}
	i := slices.Index(have, s.broker)
	if i < 0 {
		return nil, fmt.Errorf("topic %s is on %s, not on %s", s.topic, on, s.broker)
	}
	return at[i : i+1], nil
}

// standing is where the group is in the queues of one broker that are to be reset, in order.
func (s *reset) standing(ctx context.Context, b master) (are []queueStanding, err error) {
	progress, err := s.progress(ctx, b.addr, s.group, s.topic)
	if err != nil {
		return nil, err
	}
	ask := standing{remote: s.remote, group: s.group}
	count := 0
	for _, q := range slices.SortedFunc(maps.Keys(progress), remoting.MessageQueue.Compare) {
		if q.Topic != s.topic {
			continue
		}
		count++
		if s.queue >= 0 && q.QueueID != s.queue {
			continue
		}
		one := queueStanding{MessageQueue: q, OffsetWrapper: progress[q]}
		if err := ask.askBegun(ctx, b, &one); err != nil {
			return nil, err
		}
		are = append(are, one)
	}
	if s.queue >= 0 && len(are) == 0 {
		return nil, fmt.Errorf("topic %s has no queue %d to read on %s, which has %s, from 0 on", s.topic, s.queue, b.broker, counted(count, "queue"))
	}
	return are, nil
}

// apply resets the queues of one broker, or finds out where that would lead.
func (s *reset) apply(ctx context.Context, b master, are []queueStanding) (map[remoting.MessageQueue]int64, error) {
	h := &remoting.InvokeBrokerToResetOffsetRequest{Group: s.group, Topic: s.topic, QueueID: remoting.Some(s.queue), Timestamp: s.ms, IsForce: true}
	if s.byOffset {
		low, err := s.first(ctx, b, are[0].MessageQueue)
		if err != nil {
			return nil, err
		}
		if high := are[0].BrokerOffset; s.offset < low || s.offset > high {
			return nil, fmt.Errorf("offset %d is not in queue %s/%d of topic %s: it goes from %d, its first message, to %d, its end", s.offset, b.broker, s.queue, s.topic, low, high)
		}
		h.Offset = remoting.Some(s.offset)
	}
	if s.dry {
		return s.targets(ctx, b, are)
	}
	answer, err := s.call(ctx, b.addr, remoting.ReqInvokeBrokerToResetOffset, h, nil)
	if err != nil {
		return nil, err
	}
	var body remoting.ResetOffsetBody
	if err := remoting.Unmarshal(answer.Body, &body); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", b.addr, err)
	}
	return body.OffsetTable, nil
}

// targets is where a reset would lead, as the broker that does it finds out.
func (s *reset) targets(ctx context.Context, b master, are []queueStanding) (map[remoting.MessageQueue]int64, error) {
	goes := make(map[remoting.MessageQueue]int64, len(are))
	for _, q := range are {
		switch {
		case s.byOffset:
			goes[q.MessageQueue] = s.offset
			continue
		case s.ms < 0:
			goes[q.MessageQueue] = q.BrokerOffset
			continue
		}
		low, err := s.first(ctx, b, q.MessageQueue)
		if err != nil {
			return nil, err
		}
		answer, err := s.call(ctx, b.addr, remoting.ReqSearchOffsetByTimestamp,
			&remoting.SearchOffsetByTimestampRequest{Topic: q.Topic, QueueID: q.QueueID, Timestamp: s.ms, BrokerName: b.broker}, nil)
		if err != nil {
			return nil, err
		}
		var found remoting.SearchOffsetByTimestampResponse
		if err := answer.Decode(&found); err != nil {
			return nil, fmt.Errorf("answer of %s: %w", b.addr, err)
		}
		goes[q.MessageQueue] = min(max(found.Offset, low), q.BrokerOffset)
	}
	return goes, nil
}

// placeOf is a place in a topic as the protocol has it: milliseconds, or -1 for the end.
func placeOf(to string, now time.Time) (int64, error) {
	switch strings.ToLower(to) {
	case "":
		return 0, errors.New("--to is missing: start, end, or a time; or --to-offset with --queue")
	case "start":
		return 0, nil
	case "end":
		return -1, nil
	}
	ms, err := strconv.ParseInt(to, 10, 64)
	if err != nil {
		at, err := time.ParseInLocation(time.RFC3339, to, time.Local)
		if err != nil {
			return 0, fmt.Errorf("--to %q is not start, end, a time such as 2026-05-04T12:00:00Z, or milliseconds", to)
		}
		ms = at.UnixMilli()
	}
	at := time.UnixMilli(ms)
	switch {
	case ms < 0 || at.After(now):
		return 0, fmt.Errorf("--to %s is in the future or before 1970", to)
	case err == nil && at.Year() < 2000: // who has typed it meant no time
		return 0, fmt.Errorf("--to %s would be a time in %d: it is a time in milliseconds; an offset is --to-offset with --queue", to, at.Year())
	}
	return ms, nil
}

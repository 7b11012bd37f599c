package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func groupShow(r *remote) *cobra.Command {
	c := &cobra.Command{
		Use:   "show GROUP",
		Short: "Who is connected, what members disagree about, and how far the group has come",
		Long: "Shows who is connected, what members disagree about, and how far the group has come in each queue.\n" +
			"Lag is what a group has before it in the queues where it has begun. Where it has not, its first\n" +
			"consumer decides where it begins, so what lies there is counted apart. When a broker is missing, the\n" +
			"lag is that of the others: this is said, and the exit code is 1. NEWEST CONSUMED is when the newest\n" +
			"message that it is done with was stored.",
		Args: one("GROUP"),
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		r.open()
		defer r.close()
		ctx := c.Context()
		all, err := r.census(ctx)
		if err != nil {
			return err
		}
		if err := r.known(ctx, all, args[0]); err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		defer w.Flush()
		s := standing{remote: r, group: args[0]}
		if err := all.each(ctx, func(b master) error { return s.ask(ctx, b) }); err != nil {
			return err
		}
		for i := range s.at {
			if at := &s.at[i]; at.settings != "" {
				fmt.Fprintf(w, "group %s on %s: %s\n", args[0], at.broker, at.settings)
			}
			s.at[i].printMembers(w)
		}
		s.printProgress(w)
		incomplete := all.incomplete("the lag is not complete")
		s.printLag(w, incomplete != nil)
		return incomplete
	}
	return c
}

// standing is where a group stands, broker by broker.
type standing struct {
	*remote
	group string
	at    []standingAt
}

// standingAt is that at one broker.
type standingAt struct {
	master
	settings string                       // of the group; "": this broker does not know it
	members  *remoting.ConsumerConnection // nil: nobody has announced itself
	conflict string                       // what they disagree about
	waiting  int32                        // requests that wait for messages, of consumers that have not announced themselves
	queues   []queueStanding
}

// queueStanding is that in one queue.
type queueStanding struct {
	remoting.MessageQueue
	remoting.OffsetWrapper
	begun bool
	low   int64 // its first message, where the group has not begun
}

// ask asks one broker for all that it knows of the group.
func (s *standing) ask(ctx context.Context, b master) error {
	at := standingAt{master: b}
	stats, err := s.progress(ctx, b.addr, s.group, "")
	if err != nil {
		return err
	}
	table, err := s.groups(ctx, b.addr)
	if err != nil {
		return err
	}
	if g, ok := table[s.group]; ok {
		at.settings = groupSettings(&g)
	}
	if err := s.askMembers(ctx, &at); err != nil {
		return err
	}
	for _, q := range slices.SortedFunc(maps.Keys(stats), remoting.MessageQueue.Compare) {
		one := queueStanding{MessageQueue: q, OffsetWrapper: stats[q]}
		if err := s.askBegun(ctx, b, &one); err != nil {
			return err
		}
		at.queues = append(at.queues, one)
	}
	if at.members == nil {
		at.waiting = s.askWaiting(ctx, &at)
	}
	s.at = append(s.at, at)
	return nil
}

func (s *standing) askMembers(ctx context.Context, at *standingAt) error {
	answer, err := s.call(ctx, at.addr, remoting.ReqGetConsumerConnectionList, &remoting.GetConsumerConnectionListRequest{ConsumerGroup: s.group}, nil)
	if refusedWith(err, remoting.ResConsumerNotOnline) {
		return nil
	}
	if err != nil {
		return err
	}
	at.members, at.conflict = new(remoting.ConsumerConnection), answer.Remark
	if err := remoting.Unmarshal(answer.Body, at.members); err != nil {
		return fmt.Errorf("members of %s: %w", s.group, err)
	}
	return nil
}

// askBegun finds out whether the group has begun in a queue: its progress says 0 for both.
func (s *standing) askBegun(ctx context.Context, b master, q *queueStanding) error {
	q.begun = true
	if q.ConsumerOffset != 0 || q.PullOffset > q.ConsumerOffset || q.BrokerOffset == 0 {
		return nil // an empty queue has nothing of which to miss the beginning
	}
	_, err := s.call(ctx, b.addr, remoting.ReqQueryConsumerOffset, &remoting.QueryConsumerOffsetRequest{ConsumerGroup: s.group, Topic: q.Topic,
		QueueID: q.QueueID, SetZeroIfNotFound: remoting.Some(false), BrokerName: b.broker}, nil)
	if !refusedWith(err, remoting.ResQueryNotFound) {
		return err
	}
	q.begun = false
	q.low, err = s.first(ctx, b, q.MessageQueue)
	return err
}

// first is the first offset of a queue.
func (r *remote) first(ctx context.Context, b master, q remoting.MessageQueue) (int64, error) {
	var low remoting.GetMinOffsetResponse
	answer, err := r.call(ctx, b.addr, remoting.ReqGetMinOffset, &remoting.GetMinOffsetRequest{Topic: q.Topic, QueueID: q.QueueID, BrokerName: b.broker}, nil)
	if err == nil {
		err = answer.Decode(&low)
	}
	return low.Offset, err
}

// askWaiting counts the group's suspended requests for messages; a broker that does not tell
// has none.
func (s *standing) askWaiting(ctx context.Context, at *standingAt) (n int32) {
	topics := map[string]bool{}
	for _, q := range at.queues {
		topics[q.Topic] = true
	}
	for topic := range topics {
		answer, err := s.call(ctx, at.addr, remoting.ReqPollingInfo, &remoting.PollingInfoRequest{ConsumerGroup: s.group, Topic: topic, QueueID: -1, BrokerName: at.broker}, nil)
		var h remoting.PollingInfoResponse
		if err == nil && answer.Decode(&h) == nil {
			n += h.PollingNum
		}
	}
	return n
}

func (at *standingAt) printMembers(w *tabwriter.Writer) {
	switch {
	case at.members == nil && at.waiting > 0:
		fmt.Fprintf(w, "nobody is announced to %s; requests that wait for messages there: %d\n", at.broker, at.waiting)
		return
	case at.members == nil:
		fmt.Fprintf(w, "nobody is connected to %s\n", at.broker)
		return
	}
	m := at.members
	fmt.Fprintf(w, "%d connected to %s, %s, %s\n", len(m.ConnectionSet), at.broker, strings.ToLower(m.MessageModel), strings.ToLower(m.ConsumeType))
	if at.conflict != "" {
		fmt.Fprintf(w, "WARNING: %s\n", at.conflict)
	}
	w.Flush() // columns of their own for each table
	fmt.Fprintln(w, "CLIENT\tADDRESS\tLANGUAGE")
	for _, m := range m.ConnectionSet {
		fmt.Fprintf(w, "%s\t%s\t%s\n", m.ClientID, m.ClientAddr, m.Language)
	}
	w.Flush()
	fmt.Fprintln(w, "TOPIC\tSUBSCRIPTION")
	for _, topic := range slices.Sorted(maps.Keys(m.SubscriptionTable)) {
		fmt.Fprintf(w, "%s\t%s\n", topic, m.SubscriptionTable[topic].SubString)
	}
}

// broadcasts tells whether each member gets everything and keeps its own place.
func (at *standingAt) broadcasts() bool {
	return at.members != nil && at.members.MessageModel == remoting.Broadcasting
}

func (s *standing) printProgress(w *tabwriter.Writer) {
	w.Flush()
	first := true
	for i := range s.at {
		for _, q := range s.at[i].queues {
			if first {
				fmt.Fprintln(w, "TOPIC\tQUEUE\tEND\tCONSUMED\tLAG\tIN FLIGHT\tNEWEST CONSUMED")
				first = false
			}
			fmt.Fprintf(w, "%s\t%s/%d\t%d\t", q.Topic, q.BrokerName, q.QueueID, q.BrokerOffset)
			last := "-"
			switch {
			case !q.begun && s.at[i].broadcasts():
				fmt.Fprintf(w, "each for itself\t-\t-\t-\n")
				continue
			case !q.begun:
				fmt.Fprintf(w, "not begun\t-\t-\t-\n")
				continue
			case q.LastTimestamp > 0:
				last = time.UnixMilli(q.LastTimestamp).Format(time.DateTime)
			}
			fmt.Fprintf(w, "%d\t%d\t%d\t%s\n", q.ConsumerOffset, q.BrokerOffset-q.ConsumerOffset, max(0, q.PullOffset-q.ConsumerOffset), last)
		}
	}
}

// printLag prints the sum, and apart from it what lies where the group has not begun.
func (s *standing) printLag(w *tabwriter.Writer, incomplete bool) {
	var lag, before int64
	queues, open := 0, 0
	for i := range s.at {
		for _, q := range s.at[i].queues {
			queues++
			switch {
			case q.begun:
				lag += q.BrokerOffset - q.ConsumerOffset
			case !s.at[i].broadcasts():
				open++
				before += q.BrokerOffset - q.low
			}
		}
	}
	switch {
	case queues == 0 && !incomplete:
		fmt.Fprintf(w, "group %s has not begun: no topic has given it anything, and no member has subscribed to one\n", s.group)
		return
	case incomplete:
		fmt.Fprintf(w, "lag %d, not complete\n", lag)
	default:
		fmt.Fprintf(w, "lag %d\n", lag)
	}
	if open > 0 {
		fmt.Fprintf(w, "not begun in %s with %s: the first consumer decides whether the group gets these (bolide consume does)\n",
			counted(open, "queue"), counted(before, "message"))
	}
}

// counted is a number with its noun.
func counted[N whole](n N, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// progress asks one broker how far a group has come; topic "" is all that it has to do with, and
// one is of a group that does not subscribe to it, too.
func (r *remote) progress(ctx context.Context, addr, group, topic string) (map[remoting.MessageQueue]remoting.OffsetWrapper, error) {
	answer, err := r.call(ctx, addr, remoting.ReqGetConsumeStats, &remoting.GetConsumeStatsRequest{ConsumerGroup: group, Topic: topic, TopicList: topic}, nil)
	if err != nil {
		return nil, err
	}
	var stats remoting.ConsumeStats
	if err := remoting.Unmarshal(answer.Body, &stats); err != nil {
		return nil, fmt.Errorf("progress of %s: %w", group, err)
	}
	return stats.OffsetTable, nil
}

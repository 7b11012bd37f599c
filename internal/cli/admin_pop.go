package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// popCommand shows what a group has in flight and why its messages wait.
func popCommand(r *remote) *cobra.Command {
	var topic string
	var queue, limit int32
	var release int64
	c := &cobra.Command{
		Use:   "pop GROUP",
		Short: "Show what a group has in flight, who holds it and what waits for it; release a message",
		Long: "Shows what a group has of each queue that it pops. Ready is what it could get now, in flight what it\n" +
			"has received and not acknowledged. Set aside is what a later request may get: what waits behind its\n" +
			"message group, was given back, or is for another member's filter. Below the offset after \"done below\"\n" +
			"all is done. For each batch in flight: who holds it, since when, and until when.",
		Args: one("GROUP"),
		Example: "  bolide admin pop warehouse\n" +
			"  bolide admin pop warehouse --topic orders --queue 3 --release 1207",
	}
	c.Flags().StringVar(&topic, "topic", "", "`TOPIC`, with its retry topics; all that the group pops otherwise")
	numberVar(c.Flags(), &limit, "limit", 10, 0, 10_000, "`NUMBER` of batches to list for each queue, the oldest first")
	c.Flags().Int32Var(&queue, "queue", -1, "`QUEUE` of the message to release")
	c.Flags().Int64Var(&release, "release", -1, "make the message at this `OFFSET` visible again, at once and without counting an attempt")
	c.RunE = func(c *cobra.Command, args []string) error {
		releasing := c.Flags().Changed("release")
		if releasing && (topic == "" || queue < 0 || release < 0) {
			return errors.New("--release needs --topic and --queue, as bolide admin pop shows them")
		}
		r.open()
		defer r.close()
		all, err := r.census(c.Context())
		if err != nil {
			return err
		}
		ask := popAsk{Group: args[0], Topic: topic, Limit: limit}
		if releasing {
			ask.QueueID, ask.Offset = queue, remoting.Some(release)
		}
		found := false
		err = all.each(c.Context(), func(b master) error {
			if releasing && found {
				return nil
			}
			state, err := ask.state(c, r, b.addr)
			if err != nil {
				return err
			}
			if !releasing {
				found = printPopState(c.OutOrStdout(), b.broker, state) || found
				return nil
			}
			found, err = ask.release(c, r, b, state, queue, release)
			return err
		})
		switch missing := all.incomplete("this is not all"); {
		case err != nil || releasing && found:
			return err
		case missing != nil:
			return missing
		case releasing:
			return fmt.Errorf("group %s has no message %d of topic %s, queue %d in flight", args[0], release, topic, queue)
		case !found:
			return fmt.Errorf("group %s pops nothing that %s knows of", args[0], r.namesrv)
		}
		return nil
	}
	return c
}

// popAsk is the question for a group's state.
type popAsk remoting.GetPopStateRequest

func (a popAsk) state(c *cobra.Command, r *remote, addr string) (*remoting.PopState, error) {
	answer, err := r.call(c.Context(), addr, remoting.ReqBolideGetPopState, (*remoting.GetPopStateRequest)(&a), nil)
	if refusedWith(err, remoting.ResRequestCodeNotSupported) {
		return nil, fmt.Errorf("%s is no bolide server, only those tell what is in flight", addr)
	}
	if err != nil {
		return nil, err
	}
	var state remoting.PopState
	if err := remoting.Unmarshal(answer.Body, &state); err != nil {
		return nil, fmt.Errorf("state of POP: %w", err)
	}
	return &state, nil
}

// release makes a message visible again by changing its invisible time to zero, with the
// receipt that its holder has.
func (a popAsk) release(c *cobra.Command, r *remote, at master, state *remoting.PopState, queue int32, offset int64) (bool, error) {
	for i := range state.Queues {
		q := &state.Queues[i]
		if q.Topic != a.Topic || q.QueueID != queue {
			continue
		}
		for k := range q.Held {
			h := &q.Held[k]
			if !slices.Contains(h.Offsets, offset) {
				continue
			}
			flag := receipt.FlagNormal
			if names.IsRetry(q.Topic) {
				flag = receipt.FlagRetryV1
			}
			of := receipt.Handle{StartOffset: offset, PopTime: h.PopTime, InvisibleTime: h.Invisible, RetryFlag: flag, Broker: at.broker, QueueID: queue, Offset: offset, LogOffset: -1}
			_, err := r.call(c.Context(), at.addr, remoting.ReqChangeMessageInvisibleTime, &remoting.ChangeMessageInvisibleTimeRequest{
				ConsumerGroup: a.Group, Topic: q.Topic, QueueID: queue, Offset: offset, ExtraInfo: of.String(), Suspend: true}, nil)
			if err != nil {
				return false, err
			}
			fmt.Fprintf(c.OutOrStdout(), "released %s, queue %d, offset %d on %s; %s can't acknowledge it any more\n", q.Topic, queue, offset, at.broker, holderName(h.Holder))
			return true, nil
		}
	}
	return false, nil
}

// printPopState reports whether there was anything to print.
func printPopState(out io.Writer, broker string, state *remoting.PopState) bool {
	for i := range state.Queues {
		q := &state.Queues[i]
		fmt.Fprintf(out, "%s, queue %d on %s: %d ready, %d in flight, %d set aside; done below %d of %d\n",
			q.Topic, q.QueueID, broker, q.Ready, q.InFlight, q.Aside, q.Lowest, q.End)
		if q.Throttled {
			fmt.Fprintln(out, "  gets nothing more: popInflightMessageThreshold messages are in flight")
		}
		for k := range q.Held {
			printHeld(out, &q.Held[k], state.Now)
		}
		listed := 0
		for k := range q.Held {
			listed += len(q.Held[k].Offsets)
		}
		if more := q.InFlight - int64(listed); more > 0 {
			fmt.Fprintf(out, "  and %d more, popped later; --limit lists them\n", more)
		}
		for _, b := range q.Blocked {
			fmt.Fprintf(out, "  %s of %s behind offset %d, held by %s %s\n", counted(b.Waiting, "message"), groupName(b.MessageGroup), b.Offset, holderName(b.Holder), until(b.Due, state.Now))
		}
	}
	return len(state.Queues) > 0
}

func printHeld(out io.Writer, h *remoting.PopHeld, now int64) {
	what := make([]string, 0, 4)
	if h.MessageGroup != "" {
		what = append(what, groupName(h.MessageGroup))
	}
	for _, flag := range []struct {
		on   bool
		text string
	}{
		{h.Renewed, "renewed while its holder is there"}, {h.Suspended, "its lapse counts as no attempt"},
		{h.Claimed, "lapsed, its redelivery is being written"},
		{h.Failures > 0, fmt.Sprintf("%d failures to write its redelivery", h.Failures)},
		{h.Attempts > 0, fmt.Sprintf("%d deliveries before", h.Attempts)},
	} {
		if flag.on {
			what = append(what, flag.text)
		}
	}
	tail := ""
	if len(what) > 0 {
		tail = "; " + strings.Join(what, ", ")
	}
	fmt.Fprintf(out, "  offset %s: held by %s since %s (%s ago), %s%s\n", offsetRanges(h.Offsets), holderName(h.Holder),
		time.UnixMilli(h.PopTime).Format("15:04:05"), short(now-h.PopTime), until(h.Due, now), tail)
}

func until(due, now int64) string {
	if due <= now {
		return "due since " + time.UnixMilli(due).Format("15:04:05")
	}
	return fmt.Sprintf("until %s (%s left)", time.UnixMilli(due).Format("15:04:05"), short(due-now))
}

func short(ms int64) string {
	return time.Duration(max(ms, 0) * int64(time.Millisecond)).Round(time.Second).String()
}

func holderName(holder string) string {
	if holder == "" {
		return "an unknown client"
	}
	return holder
}

func groupName(name string) string {
	if name == "" {
		return "no message group"
	}
	return "message group " + name
}

// offsetRanges writes sorted offsets as 1-3, 7.
func offsetRanges(offsets []int64) string {
	var b strings.Builder
	for i := 0; i < len(offsets); {
		j := i
		for j+1 < len(offsets) && offsets[j+1] == offsets[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, offsets[i])
		if j > i {
			fmt.Fprintf(&b, "-%d", offsets[j])
		}
		i = j + 1
	}
	return b.String()
}

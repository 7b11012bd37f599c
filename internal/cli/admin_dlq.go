package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// reader is the consumer group that commands read as; every server has it.
const reader = "TOOLS_CONSUMER"

// What Bolide writes into a dead letter; Apache's have neither.
const (
	propertyReason   = "__BOLIDE_DLQ_REASON"
	propertyAttempts = "__BOLIDE_DLQ_ATTEMPTS"
)

// newest is the last dead letter that is there when a command starts.
const newest = -1

// letters says which dead letters of a group a command is about.
type letters struct {
	from, to int64
	id       string
}

func (l *letters) flags(c *cobra.Command) {
	numberVar(c.Flags(), &l.from, "from", 0, 0, math.MaxInt64, "first `OFFSET` in the dead-letter queue")
	numberVar(c.Flags(), &l.to, "to", newest, newest, math.MaxInt64, "last `OFFSET`, this one included (-1: the newest that is there at the start)")
	c.Flags().StringVar(&l.id, "id", "", "only the message with this `ID`")
}

// check refuses a range with nothing in it.
func (l *letters) check() error {
	if l.to != newest && l.to < l.from {
		return fmt.Errorf("--to %d is before --from %d", l.to, l.from)
	}
	return nil
}

// none says that there was nothing.
func (l *letters) none(group string) string {
	if *l != (letters{to: newest}) {
		return fmt.Sprintf("group %s has no such dead letters", group)
	}
	return fmt.Sprintf("group %s has no dead letters", group)
}

func dlqList(r *remote) *cobra.Command {
	var l letters
	var most int
	c := &cobra.Command{
		Use:   "list [GROUP]",
		Short: "List the dead letters of a consumer group; without one, how many each group has",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return ofGroup(c)
			}
			return one("GROUP")(c, args)
		},
	}
	l.flags(c)
	numberVar(c.Flags(), &most, "max", 100, 1, 1_000_000, "end after this `NUMBER`")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			r.open()
			defer r.close()
			return r.listGroups(c)
		}
		if err := l.check(); err != nil {
			return err
		}
		r.open()
		defer r.close()
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		n := 0
		err := r.deadLetters(c.Context(), args[0], l, func(d deadLetter) error {
			if n == 0 {
				fmt.Fprintln(w, "QUEUE\tOFFSET\tSTORED\tTOPIC\tATTEMPTS\tREASON\tREDRIVEN\tKEYS\tID")
			}
			redriven := "no"
			if answer, err := r.redrive(c.Context(), d, false, true); err != nil {
				redriven = "-" // a server that does not redrive does not know
			} else if answer.Before {
				redriven = "yes"
			}
			p := d.Properties
			fmt.Fprintf(w, "%s/%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.broker.broker, d.QueueID, d.QueueOffset,
				time.UnixMilli(d.StoreTimestamp).Format(time.DateTime), orDash(p.Value(message.PropertyRetryTopic)),
				orDash(p.Value(propertyAttempts)), orDash(p.Value(propertyReason)), redriven, orDash(p.Value(message.PropertyKeys)), d.UniqueID())
			if n++; n == most {
				return errEnough
			}
			return nil
		})
		w.Flush()
		if err == nil && n == 0 {
			fmt.Fprintln(c.OutOrStdout(), l.none(args[0]))
		}
		return err
	}
	return c
}

// ofGroup refuses flags that say which dead letters of a group, where no group is named.
func ofGroup(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if c.InheritedFlags().Lookup(f.Name) == nil {
			err = fmt.Errorf("--%s is for the dead letters of one group: %s", f.Name, c.UseLine())
		}
	})
	return err
}

func dlqShow(r *remote) *cobra.Command {
	var l letters
	c := &cobra.Command{
		Use:   "show GROUP",
		Short: "Print dead letters as JSON, one a line, with all properties and the body",
		Args:  one("GROUP"),
	}
	l.flags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := l.check(); err != nil {
			return err
		}
		r.open()
		defer r.close()
		found := false
		err := r.deadLetters(c.Context(), args[0], l, func(d deadLetter) error {
			found = true
			return printMessage(c.OutOrStdout(), &d.Message, d.Topic, d.broker.broker)
		})
		if err == nil && !found && l.id != "" {
			return fmt.Errorf("no dead letter of %s has the id %s", args[0], l.id)
		}
		if err == nil && !found {
			fmt.Fprintln(c.ErrOrStderr(), l.none(args[0])) // standard output is JSON alone
		}
		return err
	}
	return c
}

func dlqRedrive(r *remote) *cobra.Command {
	var l letters
	var rate int
	var toTopic, dry bool
	c := &cobra.Command{
		Use:   "redrive GROUP",
		Short: "Give dead letters back to their group, each once",
		Long: "Puts dead letters where their group receives them again: in its retry topic, with all attempts\n" +
			"before them. The server remembers each one, so the command can be interrupted and run again, by\n" +
			"several at once, and no message goes out twice. Dead letters of FIFO topics can only go back to\n" +
			"the topic itself (--to-topic), where every group of it gets them.",
		Example: "  bolide admin dlq redrive billing\n" +
			"  bolide admin dlq redrive billing --from 100 --to 199 --rate 10\n" +
			"  bolide admin dlq redrive billing --id 7F00000100002A13…",
		Args: one("GROUP"),
	}
	l.flags(c)
	numberVar(c.Flags(), &rate, "rate", 100, 0, mostRate, "at most this `NUMBER` of messages a second (0: as fast as it goes)")
	c.Flags().BoolVar(&toTopic, "to-topic", false, "to the topic that they came from, for all of its groups")
	c.Flags().BoolVar(&dry, "dry-run", false, "only count")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := l.check(); err != nil {
			return err
		}
		r.open()
		defer r.close()
		var sent, before int
		began := time.Now()
		err := r.deadLetters(c.Context(), args[0], l, func(d deadLetter) error {
			answer, err := r.redrive(c.Context(), d, toTopic, dry)
			switch {
			case refusedWith(err, remoting.ResSystemBusy): // somebody else is at it
				before++
				return nil
			case err != nil:
				return fmt.Errorf("offset %d of queue %d: %w", d.QueueOffset, d.QueueID, err)
			case answer.Before:
				before++
				return nil
			}
			sent++
			if rate > 0 && !dry {
				return pause(c.Context(), time.Until(began.Add(time.Duration(sent)*time.Second/time.Duration(rate))))
			}
			return nil
		})
		if err == nil && sent+before == 0 && l.id == "" {
			fmt.Fprintln(c.OutOrStdout(), l.none(args[0]))
			return nil
		}
		verb := "redriven"
		if dry {
			verb = "to be redriven"
		}
		fmt.Fprintf(c.OutOrStdout(), "%d %s, %d were before\n", sent, verb, before)
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted; the same command goes on from here")
		}
		if err == nil && sent+before == 0 && l.id != "" {
			return fmt.Errorf("no dead letter of %s has the id %s", args[0], l.id)
		}
		return err
	}
	return c
}

// pause waits, unless the context ends.
func pause(ctx context.Context, wait time.Duration) error {
	if wait <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deadLetter is one message of a dead-letter topic.
type deadLetter struct {
	message.Message
	group  string
	broker queues
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// deadLetters calls each for the dead letters of a group, in order of their offsets, on the
// brokers that there are; that one is missing is an error at the end.
func (r *remote) deadLetters(ctx context.Context, group string, l letters, each func(deadLetter) error) error {
	if err := names.CheckGroup(group); err != nil {
		return err
	}
	all, err := r.census(ctx)
	if err != nil {
		return err
	}
	topic := names.DeadLetter(group)
	at, err := r.route(ctx, topic)
	if errors.As(err, new(noTopic)) { // it comes with the first dead letter
		at, err = nil, r.known(ctx, all, group)
	}
	if err != nil {
		return err
	}
	err = all.eachOf(ctx, at, func(broker queues) error {
		for q := range broker.read {
			err := r.walk(ctx, broker, topic, q, l, func(m *message.Message) error {
				return each(deadLetter{Message: *m, group: group, broker: broker})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil {
		return err
	}
	return all.incomplete("these are not all dead letters")
}

// walk reads a queue from its beginning, or where l begins, to the end that it has now.
func (r *remote) walk(ctx context.Context, broker queues, topic string, queue int32, l letters, each func(*message.Message) error) error {
	var end remoting.GetMaxOffsetResponse
	answer, err := r.call(ctx, broker.addr, remoting.ReqGetMaxOffset, &remoting.GetMaxOffsetRequest{Topic: topic, QueueID: queue, BrokerName: broker.broker}, nil)
	if err == nil {
		err = answer.Decode(&end)
	}
	if err != nil {
		return err
	}
	last := end.Offset - 1
	if l.to >= 0 {
		last = min(last, l.to)
	}
	for next := max(l.from, 0); next <= last; {
		all, after, err := r.pull(ctx, broker, topic, queue, next)
		if err != nil {
			return err
		}
		for i := range all {
			m := &all[i]
			if m.QueueOffset > last {
				return nil
			}
			if l.id != "" && m.UniqueID() != l.id && m.OffsetID() != l.id && m.Properties.Value(message.PropertyOriginMessageID) != l.id {
				continue
			}
			if err := each(m); err != nil {
				return err
			}
		}
		if after <= next {
			return nil
		}
		next = after
	}
	return nil
}

// pull reads messages without any group's offset being touched.
func (r *remote) pull(ctx context.Context, broker queues, topic string, queue int32, offset int64) (all []message.Message, next int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.client.Call(ctx, broker.addr, remoting.ReqPullMessage, &remoting.PullMessageRequest{ConsumerGroup: reader, Topic: topic, QueueID: queue,
		QueueOffset: offset, MaxMsgNums: popBatch, SysFlag: remoting.PullSubscription, Subscription: "*", ExpressionType: filter.KindTag, BrokerName: broker.broker}, nil)
	if err != nil {
		return nil, 0, silence{broker.addr, err}
	}
	var h remoting.PullMessageResponse
	switch answer.Code {
	case remoting.ResSuccess, remoting.ResPullRetryImmediately, remoting.ResPullOffsetMoved:
		err = answer.Decode(&h)
	case remoting.ResPullNotFound:
		return nil, math.MaxInt64, nil
	default:
		err = &refusal{addr: broker.addr, code: answer.Code, remark: answer.Remark}
	}
	if err != nil || answer.Code != remoting.ResSuccess {
		return nil, h.NextBeginOffset, err
	}
	all, err = messagesOf(answer.Body, broker.addr)
	return all, h.NextBeginOffset, err
}

// redrive asks for the redriving of one dead letter, or whether it was.
func (r *remote) redrive(ctx context.Context, d deadLetter, toTopic, ask bool) (h remoting.RedriveDeadLetterResponse, err error) {
	answer, err := r.call(ctx, d.broker.addr, remoting.ReqBolideRedriveDeadLetter,
		&remoting.RedriveDeadLetterRequest{Group: d.group, QueueID: d.QueueID, Offset: d.QueueOffset, ToTopic: toTopic, Ask: ask}, nil)
	if err == nil {
		err = answer.Decode(&h)
	}
	return h, err
}

func orDash(s string) string {
	if s = strings.TrimSpace(s); s == "" {
		return "-"
	}
	return s
}

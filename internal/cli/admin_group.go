package cli

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func groupList(r *remote) *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "list", Short: "List the consumer groups", Args: none}
	c.Flags().BoolVar(&all, "all", false, "system groups too")
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.open()
		defer r.close()
		brokers, err := r.census(c.Context())
		if err != nil {
			return err
		}
		found := map[string]bool{}
		err = brokers.each(c.Context(), func(b master) error {
			table, err := r.groups(c.Context(), b.addr)
			for name := range table {
				found[name] = found[name] || all || !names.IsSystemGroup(name)
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if found[name] {
				fmt.Fprintln(c.OutOrStdout(), name)
			}
		}
		return brokers.incomplete("these are not all groups")
	}
	return c
}

func groupReset(r *remote) *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "reset GROUP TOPIC",
		Short: "Let a group go on from another place in a topic",
		Long: "Sets the offsets of a group in all queues of a topic. Consumers that are connected take them up at\n" +
			"once, those that are not when they come; what was in flight is given up.",
		Example: "  bolide admin group reset billing orders --to start\n" +
			"  bolide admin group reset billing orders --to 2026-05-04T12:00:00Z",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s needs a GROUP and a TOPIC: %s", c.CommandPath(), c.UseLine())
			}
			return nil
		},
	}
	c.Flags().StringVar(&to, "to", "", "`PLACE`: start, end, a time such as 2026-05-04T12:00:00Z, or milliseconds since 1970")
	c.RunE = func(c *cobra.Command, args []string) error {
		ms, err := placeOf(to, time.Now())
		if err != nil {
			return err
		}
		r.open()
		defer r.close()
		all, err := r.census(c.Context())
		if err != nil {
			return err
		}
		if err := r.known(c.Context(), all, args[0]); err != nil {
			return err
		}
		at, err := r.route(c.Context(), args[1])
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
		defer w.Flush()
		fmt.Fprintln(w, "QUEUE\tWAS\tIS")
		err = all.eachOf(c.Context(), at, func(broker queues) error {
			before, err := r.progress(c.Context(), broker.addr, args[0], args[1])
			if err != nil {
				return err
			}
			answer, err := r.call(c.Context(), broker.addr, remoting.ReqInvokeBrokerToResetOffset,
				&remoting.InvokeBrokerToResetOffsetRequest{Group: args[0], Topic: args[1], QueueID: remoting.Some[int32](-1), Timestamp: ms, IsForce: true}, nil)
			if err != nil {
				return err
			}
			var body remoting.ResetOffsetBody
			if err := remoting.Unmarshal(answer.Body, &body); err != nil {
				return fmt.Errorf("answer of %s: %w", broker.addr, err)
			}
			for _, q := range slices.SortedFunc(maps.Keys(body.OffsetTable), remoting.MessageQueue.Compare) {
				fmt.Fprintf(w, "%s/%d\t%d\t%d\n", q.BrokerName, q.QueueID, before[q].ConsumerOffset, body.OffsetTable[q])
			}
			return nil
		})
		if err != nil {
			return err
		}
		return all.incomplete("what is missing is not reset")
	}
	return c
}

// placeOf is a place in a topic as the protocol has it: milliseconds, or -1 for the end.
func placeOf(to string, now time.Time) (int64, error) {
	switch strings.ToLower(to) {
	case "":
		return 0, fmt.Errorf("--to is missing: start, end, or a time")
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
	if ms < 0 || ms > now.UnixMilli() {
		return 0, fmt.Errorf("--to %s is in the future or before 1970", to)
	}
	return ms, nil
}

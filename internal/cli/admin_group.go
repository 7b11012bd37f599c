package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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

func groupCreate(r *remote) *cobra.Command {
	var want groupFlags
	c := &cobra.Command{
		Use:   "create GROUP",
		Short: "Create a consumer group on every broker, or change it",
		Long: "Creates a consumer group on every broker. Where there is one of that name, it gets what the flags\n" +
			"say, and keeps what they do not.",
		Args: one("GROUP"),
	}
	c.Flags().BoolVar(&want.ordered, "fifo", false, "deliver in order")
	numberVar(c.Flags(), &want.attempts, "max-attempts", 17, 1, math.MaxInt32, "`NUMBER` of deliveries before a message goes to the dead-letter topic")
	c.Flags().StringVar(&want.lite, "lite", "", "`TOPIC` of type lite below which its members subscribe to lite topics")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := given(c); err != nil {
			return err
		}
		if err := names.CheckGroup(args[0]); err != nil {
			return err
		}
		r.open()
		defer r.close()
		return r.put(c, "group "+args[0], func(b master) (string, error) { return r.putGroup(c, b, args[0], &want) })
	}
	return c
}

// groupFlags is what a group is to be.
type groupFlags struct {
	ordered  bool
	attempts int32
	lite     string
}

// attributeLite is the attribute of a group that says where its lite topics are.
const attributeLite = "lite.bind.topic"

// putGroup makes a group on one broker, or changes what flags say of one that is there, and says
// what it did.
func (r *remote) putGroup(c *cobra.Command, b master, group string, want *groupFlags) (said string, err error) {
	table, err := r.groups(c.Context(), b.addr)
	if err != nil {
		return "", err
	}
	g, exists := table[group]
	if !exists {
		g = remoting.DefaultSubscriptionGroupConfig(group)
		g.ConsumeMessageOrderly, g.RetryMaxTimes, g.Attributes = want.ordered, want.attempts-1, map[string]string{attributeLite: want.lite}
		said = fmt.Sprintf("group %s, %s on %s", group, groupSettings(&g), b.broker)
	} else {
		var changed []string
		if was := g.RetryMaxTimes + 1; c.Flags().Changed("max-attempts") && want.attempts != was {
			changed = append(changed, fmt.Sprintf("%d attempts, were %d", want.attempts, was))
			g.RetryMaxTimes = want.attempts - 1
		}
		if c.Flags().Changed("fifo") && want.ordered != g.ConsumeMessageOrderly {
			changed = append(changed, map[bool]string{true: "fifo, was not", false: "not fifo, was"}[want.ordered])
			g.ConsumeMessageOrderly = want.ordered
		}
		if was := g.Attributes[attributeLite]; want.lite != "" && want.lite != was {
			changed = append(changed, fmt.Sprintf("lite topics of %s, were of %s", want.lite, cmp.Or(was, "none")))
		}
		if len(changed) == 0 {
			return fmt.Sprintf("group %s is on %s already, %s: nothing is changed", group, b.broker, groupSettings(&g)), nil
		}
		said = fmt.Sprintf("group %s on %s: %s", group, b.broker, strings.Join(changed, "; "))
	}
	g.Attributes = nil // what the request has of them is changes
	if want.lite != "" {
		g.Attributes = map[string]string{"+" + attributeLite: want.lite}
	}
	_, err = r.call(c.Context(), b.addr, remoting.ReqUpdateAndCreateSubscriptionGroup, nil, remoting.Marshal(&g))
	return said, err
}

// groupSettings is what a group is, in the words of its flags.
func groupSettings(g *remoting.SubscriptionGroupConfig) string {
	text := counted(int64(g.RetryMaxTimes)+1, "attempt")
	if g.ConsumeMessageOrderly {
		text += ", fifo"
	}
	if parent := g.Attributes[attributeLite]; parent != "" {
		text += ", lite topics of " + parent
	}
	if !g.ConsumeEnable {
		text += ", consumption is off"
	}
	return text
}

func groupDelete(r *remote) *cobra.Command {
	return &cobra.Command{
		Use:   "delete GROUP",
		Short: "Delete a consumer group and its offsets",
		Long: "Deletes a consumer group, its offsets and what it has in flight, on every broker, while no member is\n" +
			"connected. Its dead letters stay until their topic is deleted, %DLQ% and the group's name, and so do\n" +
			"its retry topics.",
		Args: one("GROUP"),
		RunE: func(c *cobra.Command, args []string) error {
			if names.IsSystemGroup(args[0]) {
				return fmt.Errorf("group %s is the server's own", args[0])
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
			s := standing{remote: r, group: args[0]}
			err = all.each(c.Context(), func(b master) error {
				at := standingAt{master: b}
				if err := s.askMembers(c.Context(), &at); err != nil || at.members == nil {
					return err
				}
				return fmt.Errorf("group %s has %s connected to %s, whose next heartbeat would make it again: stop its members first", args[0],
					counted(len(at.members.ConnectionSet), "member"), b.broker)
			})
			if err != nil {
				return err
			}
			err = all.each(c.Context(), func(b master) error {
				_, err := r.call(c.Context(), b.addr, remoting.ReqDeleteSubscriptionGroup,
					&remoting.DeleteSubscriptionGroupRequest{GroupName: args[0], CleanOffset: true}, nil)
				return err
			})
			if err != nil {
				return err
			}
			if err := all.incomplete("group " + args[0] + " is not deleted everywhere"); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "group %s deleted\n", args[0])
			return nil
		},
	}
}

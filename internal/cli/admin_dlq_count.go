package cli

import (
	"context"
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

// deadCount is how many dead letters a group has on all brokers.
type deadCount struct {
	count, redriven, last int64
	untold                bool // a broker does not know what was redriven
}

// listGroups prints how many dead letters each group has.
func (r *remote) listGroups(c *cobra.Command) error {
	all, err := r.census(c.Context())
	if err != nil {
		return err
	}
	found := map[string]deadCount{}
	if err := all.each(c.Context(), func(b master) error { return r.addDead(c.Context(), b, found) }); err != nil {
		return err
	}
	out := c.OutOrStdout()
	incomplete := all.incomplete("the counts are not complete")
	if len(found) == 0 && incomplete == nil {
		fmt.Fprintln(out, "no group has dead letters")
	}
	if len(found) > 0 {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "GROUP\tDEAD LETTERS\tNOT REDRIVEN\tNEWEST")
		for _, group := range slices.Sorted(maps.Keys(found)) {
			d := found[group]
			open := strconv.FormatInt(d.count-d.redriven, 10)
			if d.untold {
				open = "-"
			}
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", group, d.count, open, time.UnixMilli(d.last).Format(time.DateTime))
		}
		w.Flush()
	}
	return incomplete
}

// addDead adds what one broker has.
func (r *remote) addDead(ctx context.Context, b master, found map[string]deadCount) error {
	var counts remoting.DeadLetterCounts
	answer, err := r.call(ctx, b.addr, remoting.ReqBolideCountDeadLetters, nil, nil)
	untold := refusedWith(err, remoting.ResRequestCodeNotSupported)
	switch {
	case untold:
		counts, err = r.countDead(ctx, b)
	case err == nil:
		err = remoting.Unmarshal(answer.Body, &counts)
	}
	if err != nil {
		return err
	}
	for _, g := range counts.Groups {
		if g.Count == 0 {
			continue
		}
		d := found[g.Group]
		found[g.Group] = deadCount{d.count + g.Count, d.redriven + g.Redriven, max(d.last, g.Last), d.untold || untold}
	}
	return nil
}

// countDead counts on a server that does not: by the extents of the dead-letter topics.
func (r *remote) countDead(ctx context.Context, b master) (counts remoting.DeadLetterCounts, err error) {
	topics, err := r.topics(ctx)
	if err != nil {
		return counts, err
	}
	for _, topic := range topics {
		group, dead := strings.CutPrefix(topic, names.DeadLetterPrefix)
		if !dead {
			continue
		}
		answer, err := r.call(ctx, b.addr, remoting.ReqGetTopicStatsInfo, &remoting.GetTopicStatsInfoRequest{Topic: topic}, nil)
		if refusedWith(err, remoting.ResTopicNotExist) {
			continue
		}
		if err != nil {
			return counts, err
		}
		var stats remoting.TopicStatsTable
		if err := remoting.Unmarshal(answer.Body, &stats); err != nil {
			return counts, fmt.Errorf("extent of %s: %w", topic, err)
		}
		one := remoting.DeadLetterCount{Group: group}
		for _, q := range stats.OffsetTable {
			one.Count += q.MaxOffset - q.MinOffset
			one.Last = max(one.Last, q.LastUpdateTimestamp)
		}
		counts.Groups = append(counts.Groups, one)
	}
	return counts, nil
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// census is a question to every broker, some of which may be missing: one that does not answer
// is noted and not asked again, so that a command tells of the others, and that it is not all.
type census struct {
	brokers []master
	missing []string // what is said of each that is missing
}

// census lists the brokers that there are, and those that are known to be missing: without a
// master, or gone in the last day.
func (r *remote) census(ctx context.Context) (*census, error) {
	info, err := r.cluster(ctx)
	if err != nil {
		return nil, err
	}
	all := &census{}
	var without []string
	all.brokers, without = mastersOf(info)
	for _, name := range without {
		all.missing = append(all.missing, name+" has no master")
	}
	gone, err := r.gone(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range gone {
		how := "is gone since "
		if g.Stopped {
			how = "was stopped at "
		}
		all.missing = append(all.missing, g.Name+" "+how+time.UnixMilli(g.Since).Format(time.DateTime))
	}
	if len(all.brokers)+len(all.missing) == 0 {
		return nil, fmt.Errorf("name server %s knows no broker", r.namesrv)
	}
	slices.Sort(all.missing)
	return all, nil
}

// gone asks the name server who is missing; others than Bolide's forget who has gone.
func (r *remote) gone(ctx context.Context) ([]remoting.GoneBroker, error) {
	answer, err := r.call(ctx, r.namesrv, remoting.ReqBolideGetGoneBrokers, nil, nil)
	if refusedWith(err, remoting.ResRequestCodeNotSupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var body remoting.GoneBrokers
	if err := remoting.Unmarshal(answer.Body, &body); err != nil {
		return nil, fmt.Errorf("brokers that are gone: %w", err)
	}
	return body.Brokers, nil
}

// each asks every broker that has answered so far, in the order of their names. Any other error
// than silence ends it.
func (c *census) each(ctx context.Context, ask func(master) error) error {
	var answering []master
	for _, b := range c.brokers {
		err := ask(b)
		switch {
		case err == nil:
			answering = append(answering, b)
		case ctx.Err() != nil || !errors.As(err, new(silence)):
			return err
		default:
			c.missing = append(c.missing, fmt.Sprintf("%s did not answer (%v)", b.broker, plain(err)))
		}
	}
	c.brokers = answering
	return nil
}

// eachOf is each for those of the brokers that are in the route of a topic.
func (c *census) eachOf(ctx context.Context, route []queues, ask func(queues) error) error {
	return c.each(ctx, func(b master) error {
		i := slices.IndexFunc(route, func(q queues) bool { return q.broker == b.broker })
		if i < 0 {
			return nil
		}
		return ask(route[i])
	})
}

// eachOf asks the brokers that have a topic, as far as they are there; who is missing, the census says.
func (r *remote) eachOf(ctx context.Context, topic string, ask func(queues) error) (*census, error) {
	all, err := r.census(ctx)
	if err != nil {
		return nil, err
	}
	route, err := r.route(ctx, topic)
	if err != nil {
		return nil, err
	}
	return all, all.eachOf(ctx, route, ask)
}

// incomplete is the error of what is not everything, nil if nobody was missing.
func (c *census) incomplete(what string) error {
	if len(c.missing) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", what, strings.Join(c.missing, ", "))
}

package bench

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// loops are the goroutines of one run; the first error ends the run.
type loops struct{ group errgroup.Group }

func newLoops() *loops { return &loops{} }

func (l *loops) start(run func() error) { l.group.Go(run) }

func (l *loops) wait() error { return l.group.Wait() }

// consumer is one connection that takes messages until stop is closed.
type consumer interface {
	run(ctx context.Context, stop <-chan struct{}) error
}

// consume runs the consumers until every message is handled, or none was for the length of
// patience.
func consume[C consumer](ctx context.Context, l *ledger, consumers []C, patience time.Duration) error {
	all, watching := newLoops(), newLoops()
	given, stop := make(chan struct{}), make(chan struct{})
	watching.start(func() error {
		defer close(stop)
		return l.await(ctx, given, patience)
	})
	for _, c := range consumers {
		all.start(func() error { return c.run(ctx, stop) })
	}
	err := all.wait()
	close(given)
	watching.wait()
	return err
}

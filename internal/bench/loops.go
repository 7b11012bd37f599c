package bench

import "golang.org/x/sync/errgroup"

// loops are the goroutines of one run; the first error ends the run.
type loops struct{ group errgroup.Group }

func newLoops() *loops { return &loops{} }

func (l *loops) start(run func() error) { l.group.Go(run) }

func (l *loops) wait() error { return l.group.Wait() }

// Package lifecycle starts and stops goroutines: the only place of the keyword "go"
// beside those that read and write connections in wire/transport and wire/h2.
//
// Invariants: every goroutine has a name and an owner; Stop ends them in the reverse
// order of their start and returns when all have ended; a panic becomes an error that
// stops the group.
//
// Neighbours: node builds one Group for a process; constructors elsewhere start nothing,
// they offer Run(ctx) error.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Group is a set of running loops.
type Group struct {
	log *slog.Logger
	mu  struct {
		sync.Mutex
		tasks   []*task
		err     error
		stopped bool
	}
	failed     chan struct{}
	failedOnce sync.Once
	whole      *Group // that this one is a part of
}

type task struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
}

// New returns an empty group. Failures of its loops are logged to log.
func New(log *slog.Logger) *Group {
	return &Group{log: log, failed: make(chan struct{})}
}

// Go starts run as a loop called name. Its context ends when the group stops. An error
// other than the context's own, or a panic, fails the group.
func (g *Group) Go(name string, run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &task{name: name, cancel: cancel, done: make(chan struct{})}
	g.mu.Lock()
	if g.mu.stopped {
		g.mu.Unlock()
		cancel()
		return
	}
	g.mu.tasks = append(g.mu.tasks, t)
	g.mu.Unlock()
	go func() {
		defer close(t.done)
		err := protect(ctx, run)
		if err == nil || (ctx.Err() != nil && errors.Is(err, ctx.Err())) {
			return
		}
		g.fail(fmt.Errorf("%s: %w", name, err))
	}()
}

func protect(ctx context.Context, run func(ctx context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return run(ctx)
}

// Part returns an empty group that is stopped by itself, and whose failures are g's too.
func (g *Group) Part() *Group {
	part := New(g.log)
	part.whole = g
	return part
}

func (g *Group) fail(err error) {
	defer g.failedOnce.Do(func() { close(g.failed) })
	if g.whole != nil {
		defer g.whole.failedOnce.Do(func() { close(g.whole.failed) })
	}
	g.mu.Lock()
	if g.mu.err == nil {
		g.mu.err = err
	}
	g.mu.Unlock()
	g.log.Error("a loop failed", "err", err)
}

// Failed is closed when the first loop has failed.
func (g *Group) Failed() <-chan struct{} { return g.failed }

// Stop ends all loops, the last started first, each fully before the next, and returns
// the first failure of any of them. Later calls return the same.
func (g *Group) Stop() error {
	g.mu.Lock()
	tasks := g.mu.tasks
	g.mu.tasks = nil
	g.mu.stopped = true
	g.mu.Unlock()
	for i := len(tasks) - 1; i >= 0; i-- {
		tasks[i].cancel()
		<-tasks[i].done
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mu.err
}

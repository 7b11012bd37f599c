// Package polltest lets the tests of servers run both ways of reading connections: a
// goroutine for each, and a poller for all.
//
// Invariant: a poller ends with its test, after what the test cleans up itself.
// Neighbours: the tests of poll, transport and h2.
package polltest

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/poll"
)

var polled bool

// Twice runs all tests of a package without and then with pollers, as TestMain's m.
type Twice struct{ M *testing.M }

// Run runs them.
func (t Twice) Run() int {
	if code := t.M.Run(); code != 0 {
		return code
	}
	fmt.Println("the same with a poller")
	polled = true
	return t.M.Run()
}

// Poller is what a server of this run is given: nil in the first one.
func Poller(t testing.TB) *poll.Poller {
	if !polled {
		return nil
	}
	return Start(t)
}

// Start runs a poller for the time of a test, nil where there is none.
func Start(t testing.TB) *poll.Poller {
	t.Helper()
	if procs := runtime.GOMAXPROCS(0); procs < 2 {
		runtime.GOMAXPROCS(2)
		t.Cleanup(func() { runtime.GOMAXPROCS(procs) })
	}
	p, err := poll.New(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if p == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	return p
}

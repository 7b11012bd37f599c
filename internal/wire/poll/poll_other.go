//go:build !linux

package poll

import (
	"context"
	"log/slog"
	"net"
)

// Poller watches connections where there is epoll.
type Poller struct{}

// New returns nil: connections are read by goroutines.
func New(*slog.Logger) (*Poller, error) { return nil, nil }

// Run has nothing to do.
func (*Poller) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Take takes nothing over.
func (*Poller) Take(nc net.Conn) net.Conn { return nc }

// Conn is never there.
type Conn struct{ net.Conn }

// Serve is never called.
func (*Conn) Serve(func() bool) {}

package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/bolidemq/bolide/internal/front/metrics"
)

// listenMetrics opens the port of the metrics page, which is a port of its own: who may
// read figures need not reach the messages.
func (n *Node) listenMetrics(ctx context.Context) error {
	if n.o.MetricsAddr == "" {
		return nil
	}
	all, err := listenAll(ctx, []port{{name: listenerMetrics, flag: "--metrics-addr", addr: n.o.MetricsAddr}}, nil)
	if err != nil {
		return err
	}
	n.metrics = all[0]
	n.ready.Metrics = dialable(n.metrics.addr()).String()
	return nil
}

// serveMetrics serves it from here on until everything else has ended: who asks whether the
// node is ready gets an answer while it starts and stops too.
func (n *Node) serveMetrics() {
	if n.metrics == nil {
		return
	}
	pages := metrics.Options{Failed: n.hasFailed, Troubles: n.Troubles}
	if n.o.Roles.Broker {
		pages.Figures = n.figures
	}
	server := &http.Server{Handler: metrics.Handler(pages), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	n.pages.Go("metrics", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(n.metrics); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("metrics page: %w", err)
		}
		return nil
	})
}

// figures is the page of the broker, which stays open while it is made.
func (n *Node) figures() ([]byte, error) {
	n.standing.RLock()
	defer n.standing.RUnlock()
	if n.standing.broker == nil {
		return nil, metrics.ErrNone
	}
	return metrics.Page(n.standing.broker)
}

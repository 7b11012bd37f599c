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

// serveMetrics serves it until the connections end.
func (n *Node) serveMetrics() {
	if n.metrics == nil {
		return
	}
	server := &http.Server{Handler: metrics.Handler(n.parts.broker), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(n.log.Handler(), slog.LevelDebug)}
	n.edge.Go("metrics", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.Serve(n.metrics); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("metrics page: %w", err)
		}
		return nil
	})
}

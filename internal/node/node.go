package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/wire/h2"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// Node is one running server process, or part of one.
//
// It starts from the inside out: data folder, listeners (opened, so that a taken port is
// known before anything is recovered, but not served), broker and name server, their
// loops, then the connections. It stops in the reverse order.
type Node struct {
	o         Options
	log       *slog.Logger
	data      *dataFolder
	listeners []*listener
	metrics   *listener // nil: none
	announced announcement
	ready     Ready

	parts    parts
	remoting *transport.Server // every port but the VIP one
	vip      *transport.Server // refuses what that port does not serve
	grpc     *h2.Server

	standing standing

	inner *lifecycle.Group // store, broker, name server
	edge  *lifecycle.Group // connections
	pages *lifecycle.Group // the metrics page and its like

	stopOnce sync.Once
	stopped  error
}

// Start returns when every listener serves.
func Start(ctx context.Context, o Options) (_ *Node, err error) {
	o.fill()
	n := &Node{o: o, log: o.Log, inner: lifecycle.New(o.Log)}
	n.edge, n.pages = n.inner.Part(), n.inner.Part()
	n.standing.phase = starting
	defer func() {
		if err != nil {
			n.abandon()
		}
	}()
	settings, err := readSettings(o)
	if err != nil {
		return nil, err
	}
	if err := clearReadyFile(o.ReadyFile); err != nil {
		return nil, err
	}
	if n.data, err = openData(o.Data); err != nil {
		return nil, err
	}
	certificates, err := n.data.certificates(o.TLSCert, o.TLSKey, n.log)
	if err != nil {
		return nil, err
	}
	warnings := settings.warnings
	if missing := n.data.missingState(); missing != "" {
		n.log.Warn(missing) // at once: the start tells what it takes instead
	}
	if o.Roles.Broker && !o.Roles.Namesrv && settings.broker.Get().NamesrvAddr == "" {
		warnings = append(warnings, "no name server is named, by --namesrv, namesrvAddr or NAMESRV_ADDR: clients do not find this broker")
	}
	if n.listeners, err = listenAll(ctx, o.ports(), func(w string) { warnings = append(warnings, w) }); err != nil {
		return nil, err
	}
	n.ready = readyOf(n.listeners)
	if err := n.listenMetrics(ctx); err != nil {
		return nil, err
	}
	n.serveMetrics()
	if n.announced, err = announce(o.Advertise, n.brokerAddress(), machineAddresses()); err != nil {
		return nil, err
	}
	if err := n.open(settings); err != nil {
		return nil, err
	}
	for _, l := range n.parts.loops {
		n.inner.Go(l.name, l.run)
	}
	n.serve(certificates.Config())
	if err := n.parts.register(n.edge); err != nil {
		return nil, err
	}
	if o.ReadyFile != "" {
		if err := n.ready.write(o.ReadyFile); err != nil {
			return nil, err
		}
	}
	n.standing.serves(n.parts.broker)
	n.report(warnings)
	return n, nil
}

// brokerAddress is where the broker listens, or the first listener of a node without one.
func (n *Node) brokerAddress() netip.AddrPort {
	for _, l := range n.listeners {
		if l.has(listenerBroker) {
			return l.addr()
		}
	}
	return n.listeners[0].addr()
}

// Ready tells where the node serves.
func (n *Node) Ready() Ready { return n.ready }

// Clock is the time that the protocol sees.
func (n *Node) Clock() *clock.Clock { return n.o.Clock }

// Failed is closed when something inside has failed that can't be repaired; what remains
// is to Stop.
func (n *Node) Failed() <-chan struct{} {
	return n.inner.Failed()
}

// Stop ends the node in order: no new connections, running requests to their end, long
// polls answered empty, loops, log flushed, files closed. What is not done when ctx ends
// is cut. It returns the first failure that the node had; later calls return the same.
func (n *Node) Stop(ctx context.Context) error {
	n.stopOnce.Do(func() { n.stopped = n.stop(ctx) })
	return n.stopped
}

func (n *Node) stop(ctx context.Context) error {
	n.standing.stops()
	if n.o.ReadyFile != "" {
		_ = os.Remove(n.o.ReadyFile)
	}
	err := n.edge.Stop()
	n.parts.answerWaiting()
	err = errors.Join(err, n.drain(ctx), n.inner.Stop())
	n.standing.closing()
	return errors.Join(err, n.parts.close(), n.pages.Stop(), n.data.close())
}

// drain lets running requests end.
func (n *Node) drain(ctx context.Context) error {
	var err error
	if n.grpc != nil {
		n.grpc.Leave() // else there are always calls of those who do not know
		err = n.parts.grpcFront.Drain(ctx)
		n.grpc.Stop(ctx)
	}
	for _, s := range []*transport.Server{n.remoting, n.vip} {
		err = errors.Join(err, s.Shutdown(ctx))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		n.log.Warn("requests were cut that had not ended in time")
		return nil
	}
	return err
}

// abandon closes whatever a failed Start has opened.
func (n *Node) abandon() {
	_ = n.edge.Stop()
	closeAll(n.listeners)
	if n.metrics != nil {
		_ = n.metrics.Close()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if n.grpc != nil {
		n.grpc.Stop(ctx)
	}
	for _, s := range []*transport.Server{n.remoting, n.vip} {
		if s != nil {
			_ = s.Shutdown(ctx)
		}
	}
	_ = n.inner.Stop()
	_ = n.parts.close()
	_ = n.pages.Stop()
	if n.data != nil {
		_ = n.data.close()
	}
}

func (o *Options) fill() {
	if o.Data == "" {
		o.Data = DefaultData
	}
	if o.Began.IsZero() {
		o.Began = time.Now()
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
}

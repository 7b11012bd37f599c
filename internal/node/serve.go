package node

import (
	"context"
	"crypto/tls"

	"github.com/bolidemq/bolide/internal/wire/h2"
	"github.com/bolidemq/bolide/internal/wire/listen"
	"github.com/bolidemq/bolide/internal/wire/poll"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// serve puts everything behind every listener: first bytes decide between gRPC and
// Remoting, in plain text and under TLS; the code decides between broker and name server.
func (n *Node) serve(certificate *tls.Config) {
	poller := n.startPoller()
	var round transport.Round
	if n.parts.broker != nil {
		round = n.parts.broker
	}
	options := transport.Options{Handler: n.parts.handle, OnClose: n.parts.closed, Round: round, Poller: poller, Log: n.log}
	n.remoting = transport.NewServer(options)
	options.Handler = n.parts.handleVIP
	n.vip = transport.NewServer(options)
	if n.parts.grpcFront != nil {
		n.grpc = h2.NewServer(h2.Options{Round: round, Poller: poller, Log: n.log})
		n.parts.grpcFront.Register(n.grpc)
	}
	for _, l := range n.listeners {
		name := l.names[0]
		split := listen.New(l, certificate)
		split.Log = n.log
		remotingServer := n.remoting
		if l.has(listenerVIP) {
			remotingServer = n.vip
		}
		n.edge.Go(name+" Remoting", func(ctx context.Context) error {
			return remotingServer.Serve(ctx, split.Remoting())
		})
		if n.grpc != nil {
			n.edge.Go(name+" gRPC", func(ctx context.Context) error {
				return n.grpc.Serve(ctx, split.GRPC())
			})
		}
		n.edge.Go(name+" listener", split.Run)
	}
}

// Disconnect cuts the connections that are open now, without a farewell: what they have asked
// for may still be done, and is not answered. They may come again at once.
func (n *Node) Disconnect() {
	if n.grpc != nil {
		n.grpc.Cut()
	}
	for _, s := range []*transport.Server{n.remoting, n.vip} {
		for _, c := range s.Conns() {
			c.Close()
		}
	}
}

// startPoller starts what reads the connections of all ports, if there can be one here.
func (n *Node) startPoller() *poll.Poller {
	p, err := poll.New(n.log)
	if err != nil {
		n.log.Warn("connections are read by a goroutine each", "err", err)
	}
	if p != nil {
		n.inner.Go("poller", p.Run)
	}
	return p
}

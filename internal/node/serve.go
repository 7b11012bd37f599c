package node

import (
	"context"
	"crypto/tls"
	"errors"
	"net"

	"google.golang.org/grpc"

	"github.com/bolidemq/bolide/internal/front/grpcv2"
	"github.com/bolidemq/bolide/internal/wire/listen"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// serve puts everything behind every listener: first bytes decide between gRPC and
// Remoting, in plain text and under TLS; the code decides between broker and name server.
func (n *Node) serve(certificate *tls.Config) {
	options := transport.Options{Handler: n.parts.handle, OnClose: n.parts.closed, Log: n.log}
	n.remoting = transport.NewServer(options)
	options.Handler = n.parts.handleVIP
	n.vip = transport.NewServer(options)
	if n.parts.grpcFront != nil {
		n.grpc = grpc.NewServer(grpcv2.ServerOptions()...)
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
				return serveGRPC(ctx, n.grpc, split.GRPC())
			})
		}
		n.edge.Go(name+" listener", split.Run)
	}
}

// serveGRPC accepts until ctx ends; the connections go on until the server is stopped.
func serveGRPC(ctx context.Context, s *grpc.Server, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	err := s.Serve(l)
	if ctx.Err() != nil || errors.Is(err, grpc.ErrServerStopped) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

package node

import (
	"context"

	"github.com/bolidemq/bolide/internal/wire/transport"
)

// serve puts everything behind every listener: the code decides between broker and name
// server.
func (n *Node) serve() {
	options := transport.Options{Handler: n.parts.handle, OnClose: n.parts.closed, Log: n.log}
	n.remoting = transport.NewServer(options)
	options.Handler = n.parts.handleVIP
	n.vip = transport.NewServer(options)
	for _, l := range n.listeners {
		remotingServer := n.remoting
		if l.has(listenerVIP) {
			remotingServer = n.vip
		}
		n.edge.Go(l.names[0]+" Remoting", func(ctx context.Context) error {
			return remotingServer.Serve(ctx, l)
		})
	}
}

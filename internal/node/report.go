package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// report prints the start-up lines: what listens where, what is announced, and since when
// it has been ready.
func (n *Node) report(warnings []string) {
	for _, l := range n.listeners {
		fmt.Fprintf(n.o.Out, "listening on %s (%s: %s)\n", l.Addr(), strings.Join(l.names, ", "), l.says)
	}
	if n.o.Roles.Broker {
		fmt.Fprintf(n.o.Out, "announces %s (%s)\n", n.announced, n.announced.why)
	}
	fmt.Fprintf(n.o.Out, "data folder %s (format %d)\n", n.data.dir, DataFormat)
	if beyondLoopback(n.listeners) {
		warnings = append(warnings, "listening beyond this machine without access control: whoever reaches these ports may read and write; configuration is changed from this machine only")
	}
	for _, w := range warnings {
		n.log.Warn(w)
	}
	fmt.Fprintf(n.o.Out, "ready in %d ms\n", time.Since(n.o.Began).Milliseconds())
}

// configurationUpdates are the codes that change how the server runs.
var configurationUpdates = map[int32]bool{
	remoting.ReqUpdateBrokerConfig:  true,
	remoting.ReqUpdateNamesrvConfig: true,
}

// refuseFromAfar answers configuration updates that come from another machine: until there
// is access control, only who is on this machine may change how the server runs.
func refuseFromAfar(r *transport.Request) bool {
	if !configurationUpdates[r.Code] || r.Conn.RemoteAddr().Addr().IsLoopback() {
		return false
	}
	r.Responder().Reply(remoting.ResNoPermission,
		"configuration is changed from the server's own machine only, not from "+r.Conn.RemoteAddr().Addr().String(), nil, nil)
	return true
}

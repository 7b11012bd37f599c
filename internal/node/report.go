package node

import (
	"fmt"
	"strings"
	"time"
)

// report prints the start-up lines: what listens where, what is announced, and since when
// it has been ready.
func (n *Node) report(warnings []string) {
	for _, l := range n.listeners {
		fmt.Fprintf(n.o.Out, "listening on %s (%s: %s)\n", l.Addr(), strings.Join(l.names, ", "), l.says)
	}
	if n.metrics != nil && n.o.Roles.Broker {
		fmt.Fprintf(n.o.Out, "metrics on http://%s/metrics\n", n.metrics.Addr())
	} else if n.metrics != nil {
		fmt.Fprintf(n.o.Out, "readiness on http://%s/ready\n", n.metrics.Addr())
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

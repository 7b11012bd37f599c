package main

import (
	"fmt"
	"io"
	"time"

	"github.com/bolidemq/bolide/test/load"
	"github.com/bolidemq/bolide/test/servers"
)

// write prints the report and says whether every promise was kept.
func write(w io.Writer, o options, loaded time.Duration, c load.Counts, causes map[load.Fate]int) bool {
	name := "Bolide"
	if o.server == "apache" {
		name = "Apache RocketMQ " + servers.ApacheVersion
	}
	row := func(what string, n int, more string, args ...any) {
		fmt.Fprintf(w, "%-36s %9d", what, n)
		if more != "" {
			fmt.Fprintf(w, "   "+more, args...)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "%s, %s, %v of load, %d messages per second, %d consumers of each protocol, seed %d\n\n",
		name, o.flush, loaded.Round(time.Second), o.rate, o.consumers, o.seed)
	row("sent", c.Sent, "with OK; %d sends without one", c.SentUnanswered)
	total := 0
	for _, n := range c.Deliveries {
		total += n
	}
	row("delivered", total, "of %d messages; %d over Remoting, %d over gRPC", c.Delivered, c.Deliveries["Remoting"], c.Deliveries["gRPC"])
	row("acknowledged", c.Acked, "with OK; %d refused, %d without a clear answer", c.AckRefused, c.AckUnanswered)
	row("extended", c.Extended, "")
	row("handed back", c.HandedBack, "")
	row("killed", c.Killed, "kill -9 of the broker; %d clean stops", c.Stopped)
	row("disconnected", c.Disconnects, "")
	fmt.Fprintln(w)
	row("lost", c.Lost, "")
	row("acknowledged, then redelivered", c.Redelivered, "")
	row("refused in time", c.InTimeRefused, "the receipt was good and the broker had not died")
	row("OK for a replaced receipt", c.StaleAcked, "a later delivery was in another's hands")
	fmt.Fprintln(w)
	row("duplicates", c.Duplicates, "")
	for _, f := range load.Causes(causes) {
		fmt.Fprintf(w, "  %9d  %s\n", causes[f], f)
	}
	return c.Lost == 0 && c.Redelivered == 0 && c.InTimeRefused == 0 && c.StaleAcked == 0 && causes[load.NoCause] == 0
}

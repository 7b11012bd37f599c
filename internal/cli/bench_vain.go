package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
)

// benchRun is a run as the command line has it.
type benchRun struct {
	*workloadFlags
	*benchFlags
	workload string
}

func (r benchRun) is(workloads ...string) bool { return slices.Contains(workloads, r.workload) }

// grpc tells whether the load goes over gRPC.
func (r benchRun) grpc() bool { return r.protocol == "grpc" || r.is("lite") }

// stays tells whether a timer run only stores what stays pending.
func (r benchRun) stays() bool { return r.is("timer") && r.rate == 0 && !r.together }

// atRate tells whether the rate says how many messages there are.
func (r benchRun) atRate() bool {
	return r.is("latency", "transaction", "lite") || r.is("lapse") && r.rate > 0
}

// vain is flags that have no effect in some runs, and why.
type vain struct {
	flags []string
	when  func(benchRun) bool
	why   string
}

// vainFlags is every flag that a run may not heed: given nevertheless it is refused, so that
// nobody takes figures for those of another load. No other place does.
var vainFlags = []vain{
	{[]string{"grpc", "tls"}, func(r benchRun) bool { return !r.grpc() }, "the load goes over Remoting without --protocol grpc"},
	{[]string{"protocol"}, func(r benchRun) bool { return r.is("lite") && r.protocol != "grpc" }, "lite topics are of gRPC"},
	{[]string{"topic"}, func(r benchRun) bool { return r.is("idle", "lite") }, "the run makes its topics itself"},
	{[]string{"queues"}, func(r benchRun) bool { return r.benchFlags.options.Topic != "" && r.benchFlags.options.Namesrv != "" }, "--topic has the queues that it has"},
	{[]string{"in-flight"}, func(r benchRun) bool { return r.is("pull") }, "there is one pull a queue"},
	{[]string{"in-flight"}, func(r benchRun) bool {
		return r.is("transaction") || r.is("latency") && (r.grpc() || r.waiting != "pop")
	},
		"sends are at --rate, and consumers have as many requests as they need"},
	{[]string{"warmup"}, func(r benchRun) bool { return !r.is("send") }, "it is for send"},
	{[]string{"count"}, func(r benchRun) bool { return r.is("idle") }, "--transactions and --pending say how many messages there are"},
	{[]string{"count"}, func(r benchRun) bool { return r.is("timer") && !r.together }, "it is for timers --together: --rate, --duration and --pending say how many messages there are otherwise"},
	{[]string{"count"}, benchRun.atRate, "--rate and --duration say how many messages there are"},
	{[]string{"rate", "duration"}, func(r benchRun) bool { return r.is("timer") && r.together }, "with --together --count says how many messages there are"},
	{[]string{"duration"}, func(r benchRun) bool { return r.is("lapse") && r.rate == 0 }, "without --rate all lapse in one moment"},
	{[]string{"duration", "ahead", "beside", "waiting"}, benchRun.stays, "with --rate 0 timers are only stored, and stay"},
	{[]string{"waiting"}, benchRun.grpc, "over gRPC consumers wait with receives"},
}

// checkVain refuses what the run does not heed.
func (r benchRun) checkVain(c *cobra.Command) error {
	for _, v := range vainFlags {
		for _, flag := range v.flags {
			if c.Flags().Changed(flag) && v.when(r) {
				return fmt.Errorf("--%s says nothing here: %s", flag, v.why)
			}
		}
	}
	return nil
}

package cli

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestBenchDefaults: no workload's flag writes its default over another's.
func TestBenchDefaults(t *testing.T) {
	for _, c := range benchCommand().Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.String() != f.DefValue {
				t.Errorf("%s --%s is %s, and is said to be %s", c.Name(), f.Name, f.Value, f.DefValue)
			}
		})
	}
}

// TestBenchRefusesAtTheStart: what a run cannot be asked for is refused with the flag and its
// range, before any server is asked for anything.
func TestBenchRefusesAtTheStart(t *testing.T) {
	for line, says := range map[string]string{
		"latency --rate 0":                 "--rate is 1 to 1000000, not \"0\"",
		"transaction --rate 0":             "--rate is 1 to",
		"lite --rate -1":                   "--rate is 1 to",
		"latency --duration -5s":           "--duration is 1ms to 720h",
		"send --duration -1s":              "--duration is 0 to 720h",
		"pop --batch 0":                    "--batch is 1 to 32",
		"send --size 3":                    "--size is 24 to 16777216",
		"send --size 99999999999":          "--size is 24 to 16777216",
		"send --size 99999999999999999999": "--size is 24 to 16777216",
		"send --queues 0":                  "--queues is 1 to 65535",
		"send --queues abc":                "--queues is a whole number, 1 to 65535, not \"abc\"",
		"send --connections 0":             "--connections is 1 to",
		"send --in-flight 0":               "--in-flight is 1 to",
		"send --count 0":                   "--count is 1 to",
		"send --server-pid 999999999":      "--server-pid 999999999: /proc",
		"send --server-pid me":             "--server-pid is a list of whole numbers",
		"latency --duration 2":             "--duration is a time with its unit, such as 500ms, 2s",
		"latency --count 5":                "--count says nothing here: --rate and --duration",
		"idle --count 5":                   "--transactions and --pending",
		"idle --topic t":                   "--topic says nothing here: the run makes its topics itself",
		"lite --topic t":                   "--topic says nothing here",
		"lite --protocol remoting":         "--protocol says nothing here: lite topics are of gRPC",
		"send --grpc h:1":                  "--grpc says nothing here: the load goes over Remoting without --protocol grpc",
		"pop --tls":                        "--tls says nothing here",
		"send --topic t --queues 3":        "--queues says nothing here: --topic has the queues that it has",
		"pull --in-flight 3":               "--in-flight says nothing here: there is one pull a queue",
		"latency --in-flight 3":            "--in-flight says nothing here",
		"latency --in-flight 3 --waiting pop --protocol grpc": "--in-flight says nothing here",
		"transaction --in-flight 3":                           "--in-flight says nothing here",
		"pop --warmup 3":                                      "--warmup says nothing here: it is for send",
		"timer --together --rate 3":                           "--rate says nothing here: with --together",
		"timer --together --duration 3s":                      "--duration says nothing here: with --together",
		"lapse --duration 3s":                                 "--duration says nothing here: without --rate all lapse in one moment",
		"timer --rate 0 --pending 5 --ahead 3s":               "--ahead says nothing here: with --rate 0",
		"timer --rate 0 --pending 5 --beside 3":               "--beside says nothing here",
		"latency --protocol grpc --waiting pop":               "--waiting says nothing here: over gRPC",
		"timer --count 5":                                     "--together",
		"lapse --count 5 --rate 10":                           "--count says nothing here",
		"latency --rate 1000000 --duration 700h":              "more than 1000000000 messages",
		"pull --sql-one-in -1":                                "--sql-one-in is 0 to",
		"pop --invisible -1s":                                 "--invisible is 0 to 72h",
		"send --tls=maybe":                                    "--tls is true or false",
		"send --topic":                                        "--topic needs a TOPIC",
	} {
		_, errs, code := run(t, "", append([]string{"bench"}, strings.Fields(line)...)...)
		if code != 1 || !strings.HasPrefix(errs, "bolide: --") || !strings.Contains(errs, says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("bench %s: %d, %q", line, code, errs)
		}
	}
}

// TestVainFlags: each rule is about flags that there are, and what the figures in the documents
// are made with is heeded.
func TestVainFlags(t *testing.T) {
	bench := benchCommand()
	for _, v := range vainFlags {
		for _, flag := range v.flags {
			found := bench.PersistentFlags().Lookup(flag) != nil
			for _, c := range bench.Commands() {
				found = found || c.Flags().Lookup(flag) != nil
			}
			if !found {
				t.Errorf("there is no --%s", flag)
			}
		}
	}
	for _, line := range []string{
		"send --protocol grpc --grpc h:1 --tls --topic t --warmup 3 --duration 3s --in-flight 3",
		"send --protocol grpc --namesrv= --topic t --queues 3",
		"pull --orderly --queues 64 --count 5 --batch 3 --connections 3", "pull --sql-one-in 1000",
		"pop --protocol grpc --ack batch --in-flight 3 --invisible 3s", "latency --rate 5 --duration 2s --waiting pop --in-flight 3",
		"latency --orderly --queues 64 --rate 5", "lapse --count 5 --in-flight 3", "lapse --rate 5 --duration 2s --in-flight 3",
		"timer --pending 5 --rate 20 --duration 2s --beside 3 --waiting pop", "timer --together --count 5 --ahead 20s --beside 5",
		"timer --rate 0 --pending 5 --rest 2s", "lite --grpc h:1 --lite-topics 5 --clients 2 --in-flight 3",
		"lite --protocol grpc", "idle --transactions 5 --pending 5 --rest 2s --queues 3 --in-flight 3", "transaction --rate 5 --topic t",
	} {
		words := strings.Fields(line)
		if _, errs, _ := run(t, "", append([]string{"bench", "--server-pid", "999999999"}, words...)...); !strings.Contains(errs, "--server-pid 999999999") {
			t.Errorf("bench %s: %s", line, errs) // it is looked at after the flags, before any server is
		}
	}
}

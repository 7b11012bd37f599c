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
		"latency --rate 0":                       "--rate is 1 to 1000000, not \"0\"",
		"transaction --rate 0":                   "--rate is 1 to",
		"lite --rate -1":                         "--rate is 1 to",
		"latency --duration -5s":                 "--duration is 1ms to 720h",
		"send --duration -1s":                    "--duration is 0 to 720h",
		"pop --batch 0":                          "--batch is 1 to 32",
		"send --size 3":                          "--size is 24 to 16777216",
		"send --size 99999999999":                "--size is 24 to 16777216",
		"send --size 99999999999999999999":       "--size is 24 to 16777216",
		"send --queues 0":                        "--queues is 1 to 65535",
		"send --queues abc":                      "--queues is a whole number, 1 to 65535, not \"abc\"",
		"send --connections 0":                   "--connections is 1 to",
		"send --in-flight 0":                     "--in-flight is 1 to",
		"send --count 0":                         "--count is 1 to",
		"send --server-pid 999999999":            "--server-pid 999999999: /proc",
		"send --server-pid me":                   "--server-pid is a list of whole numbers",
		"latency --duration 2":                   "--duration is a time with its unit, such as 500ms, 2s",
		"latency --count 5":                      "--count says nothing here: --rate and --duration",
		"idle --count 5":                         "--transactions and --pending",
		"timer --count 5":                        "--together",
		"lapse --count 5 --rate 10":              "--count says nothing here",
		"latency --rate 1000000 --duration 700h": "more than 1000000000 messages",
		"pull --sql-one-in -1":                   "--sql-one-in is 0 to",
		"pop --invisible -1s":                    "--invisible is 0 to 72h",
		"send --tls=maybe":                       "--tls is true or false",
		"send --topic":                           "--topic needs a TOPIC",
	} {
		_, errs, code := run(t, "", append([]string{"bench"}, strings.Fields(line)...)...)
		if code != 1 || !strings.HasPrefix(errs, "bolide: --") || !strings.Contains(errs, says) || strings.Count(errs, "\n") != 1 {
			t.Errorf("bench %s: %d, %q", line, code, errs)
		}
	}
}

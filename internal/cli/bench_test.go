package cli

import (
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

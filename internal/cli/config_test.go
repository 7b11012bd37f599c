package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigCheck: what is wrong with a file is told line by line, in their order.
func TestConfigCheck(t *testing.T) {
	for _, c := range []struct {
		text, says string
		code       int
	}{
		{"# one\nfileReservedTime=48\n", ": 1 setting, and it is sound\n", 0},
		{"fileReservedTime=48\ndeleteWhen=\\\n  04\n", ": 2 settings, all of them sound\n", 0},
		{"zzz=1\n\nnoequals\ndeleteWhen=\\\n  99\naaa=1\n", `: line 1: unknown setting "zzz"; line 3: "noequals" is not KEY=VALUE; ` +
			`line 4: illegal value of deleteWhen: "99" is not an hour of the day, 00 to 23; line 6: unknown setting "aaa"` + "\n", 1},
	} {
		path := filepath.Join(t.TempDir(), "b.conf")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := run(t, "", "config", "--check", path)
		want := path + c.says
		if c.code == 1 {
			want = "bolide: " + want
		}
		if code != c.code || out+errs != want {
			t.Errorf("%q: %d %q, want %q", c.text, code, out+errs, want)
		}
	}
}

// TestSettingsOfApacheAlone: who sets what only Apache has learns how its files are taken.
func TestSettingsOfApacheAlone(t *testing.T) {
	_, errs, code := run(t, "", "server", "--data", t.TempDir(), "--set", "brokerRole=ASYNC_MASTER")
	if code != 1 || !strings.Contains(errs, `unknown setting "brokerRole"`) || !strings.Contains(errs, "--apache-config takes") {
		t.Errorf("%d %q", code, errs)
	}
}

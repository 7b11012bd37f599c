package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestConfigCheck: what is wrong with a file is told line by line, in their order; the first of it
// in the words of a start.
func TestConfigCheck(t *testing.T) {
	for _, c := range []struct {
		text, out, errs string
		code            int
	}{
		{"# one\nfileReservedTime=48\n", "FILE: 1 setting, and it is sound\n", "", 0},
		{"fileReservedTime=48\ndeleteWhen=\\\n  04\n", "FILE: 2 settings, all of them sound\n", "", 0},
		{"timerPrecisionMs=500\n", "FILE:1: setting timerPrecisionMs has no effect: times of delivery are kept to the millisecond\nFILE: 1 setting, and it is sound\n", "", 0},
		{"\nbrokerId=-1\n", "", "bolide: FILE:2: illegal value of brokerId: -1 is below the limit 0 (a number, 0 or more)\n", 1},
		{"zzz=1\n\nnoequals\ndeleteWhen=\\\n  99\naaa=1\n", "FILE:1: unknown setting \"zzz\"\nFILE:3: \"noequals\" is not KEY=VALUE\n" +
			"FILE:4: illegal value of deleteWhen: \"99\" is not an hour of the day, 00 to 23\nFILE:6: unknown setting \"aaa\"\n",
			"bolide: FILE:1: unknown setting \"zzz\" (and 3 more problems); " + aboutUnknown + "\n", 1},
	} {
		path := filepath.Join(t.TempDir(), "b.conf")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := run(t, "", "config", "--check", path)
		if out, errs = strings.ReplaceAll(out, path, "FILE"), strings.ReplaceAll(errs, path, "FILE"); code != c.code || out != c.out || errs != c.errs {
			t.Errorf("%q: %d %q %q, want %d %q %q", c.text, code, out, errs, c.code, c.out, c.errs)
		}
	}
}

// TestFilesThatAreNone: a file of settings that can't be read is told with its whole path and why.
func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, bytes.Repeat([]byte("# not a settings file\n"), 200_000), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"config", "--check"}, {"config", "--check-apache"}, {"server", "--data", dir, "--config"}, {"server", "--data", dir, "--apache-config"}} {
		flag := command[len(command)-1]
		if flag == "--check-apache" {
			flag = "--apache-config"
		}
		for path, want := range map[string]string{
			dir:                           flag + " " + dir + ": it is a folder, not a file",
			filepath.Join(dir, "no"):      flag + " " + filepath.Join(dir, "no") + ": there is no such file",
			filepath.Join(large, "under"): flag + " " + filepath.Join(large, "under") + ": not a directory",
			large:                         flag + " " + large + ": it has more than 4194304 bytes: that is no settings file",
			"":                            command[len(command)-1] + " is given and empty: it needs a FILE",
		} {
			if _, errs, code := run(t, "", append(slices.Clone(command), path)...); code != 1 || !strings.HasPrefix(errs, "bolide: "+want) || strings.Count(errs, "\n") != 1 {
				t.Errorf("%q %q: %d %q", command, path, code, errs)
			}
		}
	}
}

// TestFlagsThatSayNothing: where a script's variable is not set, the default does not take its place.
func TestFlagsThatSayNothing(t *testing.T) {
	for _, flag := range []string{"--data", "--namesrv-addr", "--broker-addr", "--advertise", "--tls-cert", "--ready-file", "--namesrv"} {
		_, errs, code := run(t, "", "server", flag, "")
		if code != 1 || !strings.HasPrefix(errs, "bolide: "+flag+" is given and empty") {
			t.Errorf("%s: %d %q", flag, code, errs)
		}
	}
	for _, path := range []string{"~/bolide", "$DATA", "/var/$HOME/x", " /tmp/x"} {
		if _, errs, code := run(t, "", "server", "--data", path); code != 1 || !strings.HasPrefix(errs, "bolide: --data "+strconv.Quote(path)) {
			t.Errorf("%s: %d %q", path, code, errs)
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

// TestCheckOfApachesFiles: all that a start would say of them is said, of each file.
func TestCheckOfApachesFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	broker := write("broker.conf", "namesrvAddr=ns1:9876\nauthenticationEnabled=true\nfileReservedTime=48\n")
	bad := write("bad.conf", "fileReservedTime=0\n")
	proxy := write("rmq-proxy.json", `{"grpcServerPort": 8081}`)
	unguarded := "this version has no access control, though the file asks for it: everybody who reaches it may read and write: authenticationEnabled\n"
	for _, c := range []struct {
		files, out, errs string
		code             int
	}{
		{broker, broker + ": settings that mean nothing here are passed over: namesrvAddr, authenticationEnabled\n" + broker + ": " + unguarded + broker + ": 1 setting, and it is sound\n", "", 0},
		{proxy, proxy + ": nothing is wrong with it\n", "", 0},
		{bad + "," + proxy, proxy + ": nothing is wrong with it\n", "bolide: " + bad + ":1: illegal value of fileReservedTime: 0 is below the limit 1 (hours, 1 to 876000)\n", 1},
	} {
		if out, errs, code := run(t, "", "config", "--check-apache", c.files); out != c.out || errs != c.errs || code != c.code {
			t.Errorf("%s: %d\n%s%s", c.files, code, out, errs)
		}
	}
}

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/config"
)

// fields are the settings of all options, each name once.
func fields() (all []reflect.StructField) {
	seen := make(map[string]bool)
	for _, typ := range []reflect.Type{reflect.TypeFor[config.Broker](), reflect.TypeFor[config.Store](), reflect.TypeFor[config.Namesrv](), reflect.TypeFor[config.Proxy]()} {
		for i := range typ.NumField() {
			if f := typ.Field(i); !seen[f.Tag.Get("prop")] {
				seen[f.Tag.Get("prop")] = true
				all = append(all, f)
			}
		}
	}
	return all
}

// ends are the least and the most that a number may be, where that is said.
func ends(f reflect.StructField) (low, high string) {
	return f.Tag.Get("min"), f.Tag.Get("max")
}

// values are what somebody may write for a setting, rightly or not.
func values(f reflect.StructField) []string {
	all := []string{"", "x", "x y", `"x"`, "'48'", "48 # two days", "-1", "-9", "0", "1", "4", "9", "1.5", "1GB", "10s", "75%", "0x10", "1e3", "true", "yes",
		"99999999999", "99999999999999999999", "SYNC_FLUSH", "sync_flush", "POP", "04;16", "04,16", "1s 5q", "a:1", "a:1;b", "é", `\u0000`, `C:\mq`, strings.Repeat("n", 300)}
	low, high := ends(f)
	for _, end := range []struct {
		text string
		step int64
	}{{low, -1}, {high, 1}} {
		if n, err := strconv.ParseInt(end.text, 10, 64); err == nil {
			all = append(all, end.text, strconv.FormatInt(n+end.step, 10))
		}
	}
	return all
}

// TestCheckAndStartAgree asks `bolide config --check` and a start about every setting with all
// kinds of values: both take it, or both refuse it in the same words, with file, line and name. A
// start that takes it fails at what comes next, its ready file; whether one with odd values
// really serves, TestStartsWithTheLimits asks.
func TestCheckAndStartAgree(t *testing.T) {
	dir := t.TempDir()
	path, nowhere := filepath.Join(dir, "b.conf"), filepath.Join(dir, "no", "ready.json")
	goesOn := "bolide: ready file " + nowhere + " can't be written: "
	refused, asked := make(map[string]int), 0
	ask := func(name, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, checked, code := run(t, "", "config", "--check", path)
		asked++
		for _, command := range []string{"server", []string{"namesrv", "broker", "proxy"}[asked%3]} {
			var errs strings.Builder
			Main(t.Context(), []string{command, "--data", filepath.Join(dir, "data"), "--config", path, "--ready-file", nowhere}, strings.NewReader(""), &strings.Builder{}, &errs)
			switch said := errs.String(); {
			case code == 0 && !strings.HasPrefix(said, goesOn):
				t.Errorf("%q: the check takes it, a start of %s says %q", text, command, said)
			case code != 0 && said != checked:
				t.Errorf("%q: the check says\n%sa start of %s\n%s", text, checked, command, said)
			case code != 0 && (!strings.HasPrefix(said, "bolide: "+path+":2: ") || !strings.Contains(said, name) || strings.Count(said, "\n") != 1):
				t.Errorf("%q: not one line with file, line and name: %s", text, said)
			}
		}
		if code != 0 {
			refused[name]++
		}
	}
	for _, f := range fields() {
		name := f.Tag.Get("prop")
		for _, value := range values(f) {
			ask(name, "# here\n"+name+"="+value+"\n")
		}
		ask(name, "# here\n"+name+"X=1\n")
		if f.Type.Kind() != reflect.String && refused[name] < 15 {
			t.Errorf("%s: only %d values are refused", name, refused[name])
		}
	}
	for _, text := range []string{"# here\nbare\n", "# here\n=x\n", "# here\nlistenPort=1\n", "brokerName=a\nbrokerName=b\n", "# here\nmaxInvisibleTimeMills=5000\n"} {
		ask("", text)
	}
}

// TestStartsWithTheLimits: a server really serves with every number at its least, and at its most, and with
// texts as odd as they may be.
func TestStartsWithTheLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		more string
		pick func(f reflect.StructField) string
	}{
		{"least", "", func(f reflect.StructField) string { low, _ := ends(f); return low }},
		// The two sizes of files at their most are files of gigabytes, which a start makes.
		{"most", "mappedFileSizeCommitLog=33554432\nmaxHashSlotNum=10000\nmaxIndexNum=40000\n", func(f reflect.StructField) string { _, high := ends(f); return high }},
		{"texts", "brokerName=b.1-_|%@\nbrokerClusterName=" + strings.Repeat("c", 127) + "\nmsgTraceTopicName=t|%-_\ntraceTopicEnable=TRUE\nregionId=\nnamesrvAddr=\n" +
			"deleteWhen=0;23\nmessageDelayLevel=0s 3650d\nbrokerPermission=0\nmappedFileSizeCommitLog=33554432\nmaxHashSlotNum=10000\nmaxIndexNum=40000\n",
			func(reflect.StructField) string { return "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			for _, f := range fields() {
				name := f.Tag.Get("prop")
				if value := c.pick(f); value != "" && !strings.Contains(c.more, name+"=") {
					fmt.Fprintf(&b, "%s=%s\n", name, value)
				}
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "b.conf")
			if err := os.WriteFile(path, []byte(b.String()+c.more), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, errs, code := run(t, "", "config", "--check", path); code != 0 {
				t.Fatal(out, errs)
			}
			ready := filepath.Join(dir, "ready.json")
			at, stop := serve(t, ready, []string{"server", "--data", filepath.Join(dir, "data"), "--config", path, "--ready-file", ready,
				"--namesrv-addr", "127.0.0.1:0", "--broker-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--proxy-addr", "127.0.0.1:0"})
			if out, errs, code := run(t, "", "admin", "topic", "create", "orders", "-n", at.Namesrv); code != 0 {
				t.Error(out, errs)
			}
			stop()
		})
	}
}

package cli

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/node"
)

// TestNameServersOfABroker: the flag wins over the files, these over the environment; a process
// that is a name server itself takes none from there.
func TestNameServersOfABroker(t *testing.T) {
	broker, server := node.Roles{Broker: true}, node.All
	files := map[string]string{"bolide.conf": "namesrvAddr=file:1\n", "none.conf": "namesrvAddr=\n", "broker.conf": "brokerName=b\nnamesrvAddr=apache:1;apache:2\n"}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		roles     node.Roles
		env, args string
		want      string
	}{
		{broker, "", "", ""},
		{broker, "env:1", "", "env:1"},
		{broker, "env:1;env:2", "", "env:1;env:2"},
		{node.Roles{Broker: true, Proxy: true}, "env:1", "", "env:1"},
		{server, "env:1", "", ""},
		{server, "env:1", "--namesrv flag:1", "flag:1"},
		{server, "env:1", "--config bolide.conf", "file:1"},
		{server, "env:1", "--apache-config broker.conf", ""}, // Apache's broker in that process finds its own
		{broker, "env:1", "--namesrv flag:1,flag:2", "flag:1;flag:2"},
		{broker, "env:1", "--namesrv flag:1;flag:2", "flag:1;flag:2"},
		{broker, "env:1", "--config bolide.conf", "file:1"},
		{broker, "env:1", "--set namesrvAddr=set:1 --config bolide.conf", "set:1"},
		{broker, "env:1", "--apache-config broker.conf", "apache:1;apache:2"},
		{broker, "env:1", "--apache-config broker.conf --config bolide.conf", "file:1"},
		{broker, "env:1", "--apache-config broker.conf --namesrv flag:1", "flag:1"},
		{broker, "env:1", "--config bolide.conf --namesrv flag:1", "flag:1"},
		{broker, "env:1", "--config none.conf", ""}, // said to be none
		{broker, "env", "", "NAMESRV_ADDR is HOST:PORT, such as 127.0.0.1:9876, not \"env\""},
		{broker, "env", "--namesrv flag:1", "flag:1"},
		{broker, "", "--set namesrvAddr=a:1;b", "--set: illegal value of namesrvAddr: \"b\" is not HOST:PORT, such as 127.0.0.1:9876"},
	} {
		t.Setenv("NAMESRV_ADDR", c.env)
		f := &serverFlags{}
		f.Roles, f.Log = c.roles, slog.New(slog.DiscardHandler)
		command := f.command("x", "")
		args := strings.Fields(c.args)
		for i, arg := range args {
			if strings.HasSuffix(arg, ".conf") {
				args[i] = filepath.Join(dir, arg)
			}
		}
		err := command.ParseFlags(args)
		if err == nil {
			err = f.readSettings(command)
		}
		if err == nil {
			err = f.nameServers(command)
		}
		taken, found := config.Take(f.Settings)
		if err == nil {
			err = found.Err()
		}
		got := taken.Broker.NamesrvAddr
		if err != nil {
			got = err.Error()
		}
		if got != c.want || len(f.Namesrvs) > 0 && err == nil {
			t.Errorf("%+v, NAMESRV_ADDR=%s, %q: %q, want %q", c.roles, c.env, c.args, got, c.want)
		}
	}
}

// TestNameServersOfTheEnvironment: with NAMESRV_ADDR alone a broker registers, and commands
// find it, also where the first name server of several is down.
func TestNameServersOfTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	_, stopNamesrv := serve(t, filepath.Join(dir, "ns.json"), []string{"namesrv", "--data", filepath.Join(dir, "ns"),
		"--namesrv-addr", "127.0.0.1:0", "--ready-file", filepath.Join(dir, "ns.json")})
	defer stopNamesrv()
	text, err := os.ReadFile(filepath.Join(dir, "ns.json"))
	if err != nil {
		t.Fatal(err)
	}
	var at struct{ Namesrv string }
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NAMESRV_ADDR", closedPort(t)+";"+at.Namesrv+"\n") // as some shells and secrets end it
	_, stop := serve(t, filepath.Join(dir, "b.json"), []string{"broker", "--data", filepath.Join(dir, "b"),
		"--broker-addr", "127.0.0.1:0", "--ready-file", filepath.Join(dir, "b.json")})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // the start does not wait for the registration
		_, errs, code := run(t, "", "admin", "topic", "create", "orders")
		if code == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(errs)
		}
	}
	if out, errs, code := run(t, "hello", "produce", "orders"); code != 0 || out == "" {
		t.Errorf("produce: %s%s", out, errs)
	}
	if out, errs, code := run(t, "", "consume", "orders", "--max", "1"); code != 0 || out != "hello\n" {
		t.Errorf("consume: %s%s", out, errs)
	}
	if said := stop(); !strings.Contains(said, "NAMESRV_ADDR=") {
		t.Errorf("the log does not say where the name servers come from:\n%s", said)
	}
}

// closedPort is an address where nothing listens.
func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

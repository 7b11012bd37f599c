package cli

import (
	"bytes"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// clientCommands are one of each kind of client command.
var clientCommands = [][]string{{"admin", "topic", "list"}, {"admin", "broker", "list"}, {"produce", "orders", "-b", "x"}, {"consume", "orders"}, {"bench", "send", "--count", "1"}}

// TestEnvironmentThatNamesNoServer: what NAMESRV_ADDR has is refused under its name, before anything is
// asked; where a flag takes its place, nobody looks at it.
func TestEnvironmentThatNamesNoServer(t *testing.T) {
	for _, bad := range []string{"foo", "127.0.0.1", ":9876", "127.0.0.1:1;foo", "host:99999"} {
		t.Setenv(namesrvVariable, bad)
		for _, args := range clientCommands {
			if out, errs, code := run(t, "", args...); code != 1 || out != "" || errs != "bolide: NAMESRV_ADDR is HOST:PORT, such as 127.0.0.1:9876, not \""+bad+"\"\n" {
				t.Errorf("%s, %q: %d %q %q", bad, args, code, out, errs)
			}
		}
		if _, errs, code := run(t, "", "version"); code != 0 || errs != "" {
			t.Errorf("version: %d %q", code, errs)
		}
	}
	f := startFake(t)
	if out, errs, code := run(t, "", "admin", "topic", "list", "-n", f.addr); code != 0 || out != "orders\n" || errs != "" {
		t.Errorf("with a flag: %d %q %q", code, out, errs)
	}
}

// TestWhereItGoesIsSaid: with an environment that leads elsewhere a command says at once where it goes; one that
// leads to this machine's name server is what would be anyway.
func TestWhereItGoesIsSaid(t *testing.T) {
	f := startFake(t)
	t.Setenv(namesrvVariable, f.addr)
	if out, errs, code := run(t, "", "admin", "topic", "list"); code != 0 || out != "orders\n" || errs != "bolide: name server "+f.addr+", from NAMESRV_ADDR\n" {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if out, errs, code := run(t, "", "admin", "topic", "list", "-n", f.addr); code != 0 || out != "orders\n" || errs != "" {
		t.Errorf("named by the flag, too: %d %q %q", code, out, errs)
	}
	root := newRoot()
	c, _, err := root.Find([]string{"produce"})
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	c.SetErr(&errs)
	for set, want := range map[string]string{"": "", "127.0.0.1:9876": "", "localhost:9876\n": "", "10.0.0.1:9876": "bolide: name server 10.0.0.1:9876, from NAMESRV_ADDR\n",
		"127.0.0.1:9876;b:1": "bolide: name server 127.0.0.1:9876;b:1, from NAMESRV_ADDR\n"} {
		t.Setenv(namesrvVariable, set)
		errs.Reset()
		if err := sayWhere(c, nil); err != nil || errs.String() != want {
			t.Errorf("%q: %v, %q", set, err, errs.String())
		}
	}
}

// TestWhoSaidThatItIsThere: where a server is not found, who has named its address is said.
func TestWhoSaidThatItIsThere(t *testing.T) {
	closed, other := closedPort(t), closedPort(t)
	_, port, _ := net.SplitHostPort(closed)
	for _, c := range []struct{ env, flag, says string }{
		{closed, "", "(the address is from NAMESRV_ADDR)"},
		{other + ";" + closed, "", "(the addresses are from NAMESRV_ADDR: " + other + ";" + closed + ")"},
		{"localhost:" + port, "", "(the address is from NAMESRV_ADDR)"},
		{"nowhere.invalid:9876", "", "(the address is from NAMESRV_ADDR)"},
		{other, closed, "(the address is from --namesrv)"},
		{"", closed, "(the address is from --namesrv)"},
		{"", other + ";" + closed, "(the addresses are from --namesrv: " + other + ";" + closed + ")"},
	} {
		t.Setenv(namesrvVariable, c.env)
		for _, args := range clientCommands {
			if c.flag != "" {
				args = append(args[:len(args):len(args)], "-n", c.flag)
			}
			_, errs, code := run(t, "", args...)
			last := errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:]
			if code != 1 || !strings.HasPrefix(last, "bolide: ") || !strings.HasSuffix(last, " "+c.says+"\n") {
				t.Errorf("%+v, %q: %d %q", c, args, code, errs)
			}
		}
	}
	root := newRoot()
	command, _, err := root.Find([]string{"bench", "send"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(namesrvVariable, "")
	if err := command.ParseFlags(nil); err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]string{"127.0.0.1:9876": " (the address is the default of --namesrv)", "127.0.0.1:8081": " (the address is the default of --grpc)",
		"10.0.0.9:10911": " (the address is what the name server says; --advertise of that broker sets another)"} {
		to := &net.TCPAddr{}
		if to, err = net.ResolveTCPAddr("tcp", addr); err != nil {
			t.Fatal(err)
		}
		if got := origin(command, &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: net.ErrClosed}); got != want {
			t.Errorf("%s: %q", addr, got)
		}
	}
}

// TestServersThatAreNoNameServer: the reason of a broker without the name server's requests is printed without
// the blank that it begins with, in Apache's answers as in ours, and with what that may mean.
func TestServersThatAreNoNameServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := transport.NewServer(transport.Options{Handler: func(r *transport.Request) {
		r.Responder().Reply(remoting.ResRequestCodeNotSupported, " request type 206 not supported", nil, nil)
	}})
	go s.Serve(t.Context(), l)
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	_, errs, code := run(t, "", "admin", "topic", "list", "-n", l.Addr().String())
	if want := "bolide: " + l.Addr().String() + " answers REQUEST_CODE_NOT_SUPPORTED (3): request type 206 not supported; is a name server there? (the address is from --namesrv)\n"; code != 1 || errs != want {
		t.Errorf("%d %q, want %q", code, errs, want)
	}
	_, errs, code = run(t, "", "bench", "send", "-n", l.Addr().String(), "--count", "1")
	if code != 1 || strings.Contains(errs, "  ") {
		t.Errorf("%d %q", code, errs)
	}
	dir := t.TempDir()
	at, stop := serve(t, filepath.Join(dir, "b.json"), []string{"broker", "--data", filepath.Join(dir, "b"), "--broker-addr", "127.0.0.1:0", "--ready-file", filepath.Join(dir, "b.json")})
	defer stop()
	if _, errs, code := run(t, "", "admin", "topic", "list", "-n", at.Broker); code != 1 || !strings.Contains(errs, "(3): request type 206 not supported; is a name server there?") {
		t.Errorf("%d %q", code, errs)
	}
}

package cli

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A server that a supervisor has started tells it when every listener serves, and when it
// begins to stop; one whose supervisor can't be told serves all the same.
func TestSupervisorIsTold(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no supervisors that set NOTIFY_SOCKET; runs on Unix")
	}
	dir, err := os.MkdirTemp("", "s") // a socket's name is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket, ready := filepath.Join(dir, "notify"), filepath.Join(dir, "ready.json")
	t.Setenv("NOTIFY_SOCKET", socket)
	args := []string{"namesrv", "--data", filepath.Join(dir, "data"), "--namesrv-addr", "127.0.0.1:0", "--ready-file", ready}

	_, stop := serve(t, ready, args)
	if said := stop(); !strings.Contains(said, "NOTIFY_SOCKET") {
		t.Errorf("nothing is said of a supervisor that is not there:\n%s", said)
	}

	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	if err := told.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	next := func() string {
		t.Helper()
		text := make([]byte, 100)
		n, err := told.Read(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(text[:n])
	}
	_, stop = serve(t, ready, args)
	if got := next(); got != "READY=1" {
		t.Errorf("told %q", got)
	}
	if said := stop(); said != "" {
		t.Errorf("said %q", said)
	}
	if got := next(); got != "STOPPING=1" {
		t.Errorf("told %q", got)
	}
}

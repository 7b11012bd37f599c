package cli

import (
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/node"
)

// TestBrokerList: brokers are listed with what each says of itself, one that does not answer and
// one that was stopped as such.
func TestBrokerList(t *testing.T) {
	began := time.Now().Add(-time.Second)
	at := startNode(t)
	stop := startBrokerB(t, at)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	registerBroker(t, at, "broker-c", nobody)
	broker := client(t, at).brokerAddr(t)
	list := func() (all map[string]brokerLine) {
		t.Helper()
		all = map[string]brokerLine{}
		for line := range strings.Lines(runLine(t, 0, "admin", "broker", "list", "--json", "-n", at)) {
			var b brokerLine
			if err := json.Unmarshal([]byte(line), &b); err != nil {
				t.Fatal(err)
			}
			all[b.Broker] = b
		}
		return all
	}
	all := list()
	a, c := all["broker-a"], all["broker-c"]
	if len(all) != 3 || a.Address != broker || a.ID != 0 || a.Cluster != "DefaultCluster" || a.State != "up" || a.Since == nil || a.Since.Before(began) ||
		a.Version != "bolide "+node.Version() || a.Permission != "read, write" || a.In == nil || a.Out == nil || a.Error != "" {
		t.Errorf("%+v", a)
	}
	if all["broker-b"].State != "up" || c.State != "does not answer" || c.Address != nobody || !strings.Contains(c.Error, "nothing listens") || c.Since != nil {
		t.Errorf("%+v", all)
	}
	stop()
	b := list()["broker-b"]
	if b.State != "stopped" || b.Since == nil || b.Since.Before(began) || b.Version != "" || b.In != nil {
		t.Errorf("stopped: %+v", b)
	}
	text := runLine(t, 0, "admin", "broker", "list", "-n", at)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "BROKER    ID  CLUSTER         ADDRESS") || strings.Join(strings.Fields(lines[3]), " ") != "broker-c 0 DefaultCluster "+nobody+" does not answer - - - - - - -" {
		t.Errorf("table:\n%s", text)
	}
	if got := runLine(t, 1, "admin", "broker", "list", "more", "-n", at); !strings.Contains(got, "takes no arguments") {
		t.Error(got)
	}
}

func TestBrokerFlows(t *testing.T) {
	info := map[string]string{"putTps": "12.3456 7.0 1.0", "msgPutTotalTodayNow": "70", "msgPutTotalTodayMorning": "28"}
	if f := flowOf(info, "putTps", "msgPut"); f == nil || f.rate() != "12.3" || f.today() != "42" {
		t.Errorf("%+v", f)
	}
	info["putTps"] = "  " // as Apache's server has it before its first samples
	if f := flowOf(info, "putTps", "msgPut"); f.rate() != "-" || f.today() != "42" {
		t.Errorf("%+v", f)
	}
	if f := flowOf(info, "getTransferredTps", "msgGet"); f.rate() != "-" || f.today() != "-" {
		t.Errorf("%+v", f)
	}
	for text, want := range map[string]string{"6": "read, write", "4": "read", "2": "write", "0": "none", "x": ""} {
		if got := permission(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}

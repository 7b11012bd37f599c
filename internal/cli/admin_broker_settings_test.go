package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestBrokerSettings: what a running broker has is shown, what differs from the defaults first, as a file
// that a start would take; changes say what was and what is, and refusals are the broker's own.
func TestBrokerSettings(t *testing.T) {
	at := startNode(t)
	set := func(code int, args ...string) string {
		t.Helper()
		return runLine(t, code, append([]string{"admin", "broker", "set", "-n", at}, args...)...)
	}
	show := func(args ...string) string {
		t.Helper()
		return runLine(t, 0, append([]string{"admin", "broker", "config", "-n", at}, args...)...)
	}
	addr := client(t, at).brokerAddr(t)
	if got := show(); !strings.HasPrefix(got, "# ---- broker-a at "+addr+": not as by default: 0 settings\n#") || !strings.Contains(got, "\n#brokerPermission=6\n") {
		t.Error(got)
	}
	if got := set(0, "brokerPermission=4", " regionId = north "); got != "broker-a: brokerPermission is 4, was 6\nbroker-a: regionId is north, was DefaultRegion\n" {
		t.Error(got)
	}
	if got := set(0, "brokerPermission=04", "autoCreateTopicEnable=TRUE"); got != "broker-a: brokerPermission is 4 already\nbroker-a: autoCreateTopicEnable is true already\n" {
		t.Error(got)
	}
	got := show("broker-a")
	if want := "# ---- broker-a at " + addr + ": not as by default: 2 settings\n# by default 6\nbrokerPermission=4\n# by default DefaultRegion\nregionId=north\n#"; !strings.HasPrefix(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	file := filepath.Join(t.TempDir(), "bolide.conf")
	if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := runLine(t, 0, "config", "--check", file); got != file+": 2 settings, all of them sound\n" {
		t.Error(got)
	}
	var line struct {
		Broker, Address    string
		Settings, Defaults map[string]string
	}
	if err := json.Unmarshal([]byte(show("--json")), &line); err != nil || line.Broker != "broker-a" || line.Address != addr || line.Settings["regionId"] != "north" ||
		line.Settings["autoCreateTopicEnable"] != "true" || len(line.Defaults) != 2 || line.Defaults["brokerPermission"] != "6" {
		t.Errorf("%v: %+v", err, line)
	}
	// By its address it is found without a name server.
	nobody := closedPort(t)
	if got := runLine(t, 0, "admin", "broker", "set", "regionId=south", "--broker", addr, "-n", nobody); got != "broker-a: regionId is south, was north\n" {
		t.Error(got)
	}
	if got := runLine(t, 0, "admin", "broker", "config", addr, "-n", nobody); !strings.HasPrefix(got, "# ---- broker-a at "+addr+": ") {
		t.Error(got)
	}
	if got := set(1, "regionId=x", "--broker", nobody); !strings.HasPrefix(got, "bolide: what is missing is not changed: "+nobody+" did not answer (nothing listens on "+nobody) || strings.Contains(got, "advertise") {
		t.Error(got)
	}
	if got := set(0, "regionId="); got != "broker-a: regionId is nothing, was south\n" {
		t.Error(got)
	}
	for arg, want := range map[string]string{
		"brokerPermision=4":      addr + ` answers INVALID_PARAMETER (29): unknown setting "brokerPermision": did you mean brokerPermission?`,
		"brokerPermission=8":     addr + " answers INVALID_PARAMETER (29): illegal value of brokerPermission: 8 is over the limit 7 (a number, 0 to 7)",
		"brokerName=b":           addr + " answers NO_PERMISSION (16): setting can't be changed while the server runs: brokerName",
		"regionId":               `"regionId" is not KEY=VALUE`,
		"=4":                     `"=4" is not KEY=VALUE`,
		"regionId=a regionId=b":  "regionId is given twice",
		"regionId=a --broker= ":  "--broker is given and empty: it needs a NAME, or leave it out",
		"regionId=a --broker x":  "name server " + at + " knows no broker x; bolide admin broker list lists those that it does",
		"":                       "bolide admin broker set needs a KEY=VALUE: bolide admin broker set KEY=VALUE... [flags]",
		"a=b --all --broker b":   "--broker and --all: it is one broker or each",
		"regionId=a nothing=one": addr + ` answers INVALID_PARAMETER (29): unknown setting "nothing"`,
	} {
		if got := set(1, strings.Fields(arg)...); got != "bolide: "+want+"\n" {
			t.Errorf("%s: %s", arg, got)
		}
	}
	if got := show("--json"); !strings.Contains(got, `"regionId":""`) {
		t.Errorf("half of a change was taken: %s", got)
	}
}

// TestBrokerSetOfMany: a change is for one broker, or for each that is there by an extra word.
func TestBrokerSetOfMany(t *testing.T) {
	at := startNode(t)
	stop := startBrokerB(t, at)
	set := func(code int, args ...string) string {
		t.Helper()
		return runLine(t, code, append([]string{"admin", "broker", "set", "-n", at}, args...)...)
	}
	if got := set(1, "regionId=r"); got != "bolide: there are 2 brokers: --broker NAME says which, --all means each\n" {
		t.Error(got)
	}
	if got := set(0, "regionId=r", "--broker", "broker-b"); got != "broker-b: regionId is r, was DefaultRegion\n" {
		t.Error(got)
	}
	if got := set(0, "regionId=r", "--all"); got != "broker-a: regionId is r, was DefaultRegion\nbroker-b: regionId is r already\n" {
		t.Error(got)
	}
	stop()
	if got := set(1, "regionId=s", "--all"); !strings.HasPrefix(got, "broker-a: regionId is s, was r\nbolide: what is missing is not changed: broker-b was stopped at ") {
		t.Error(got)
	}
	if got := set(1, "regionId=s", "--broker", "broker-b"); !strings.HasPrefix(got, "bolide: broker broker-b was stopped at ") {
		t.Error(got)
	}
}

// TestBrokerSetOfOthers: Apache's brokers say nothing of what they pass over; that is seen afterwards.
func TestBrokerSetOfOthers(t *testing.T) {
	f := startFake(t)
	f.settings = []config.Property{{Name: "brokerPermission", Value: "6"}, {Name: "aclFile", Value: "x"}}
	if got := runLine(t, 0, "admin", "broker", "config", "-n", f.addr); got != "# ---- b at "+f.addr+": no bolide broker, so that its defaults are not known here\naclFile=x\nbrokerPermission=6\n" {
		t.Error(got)
	}
	got := runLine(t, 1, "admin", "broker", "set", "brokerPermission=x", "unheardOf=1", "-n", f.addr)
	if got != "bolide: b refuses nothing, and still has brokerPermission=6, and has no unheardOf\n" {
		t.Error(got)
	}
}

// TestBrokerIsDrained: with brokerPermission 4 no producer sends to a broker any more, and whatever is
// there reaches its consumers, timers, transactions and redeliveries too.
func TestBrokerIsDrained(t *testing.T) {
	at := startNode(t)
	startBrokerB(t, at)
	for topic, kind := range map[string]string{"orders": "normal", "reminders": "delay", "payments": "transaction"} {
		runLine(t, 0, "admin", "topic", "create", topic, "--type", kind, "--queues", "1", "-n", at)
	}
	r := client(t, at)
	brokers, err := r.masters(t.Context())
	if err != nil || brokers[0].broker != "broker-a" {
		t.Fatal(brokers, err)
	}
	a := brokers[0].addr
	send := func(topic, body string, sysFlag int32, properties string) error {
		_, err := r.call(t.Context(), a, remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: topic, DefaultTopic: "TBW102",
			SysFlag: sysFlag, Properties: properties}, []byte(body))
		return err
	}
	due := strconv.FormatInt(time.Now().Add(1500*time.Millisecond).UnixMilli(), 10)
	err = errors.Join(send("orders", "was popped", 0, ""), send("orders", "lay there", 0, ""), send("orders", "was delayed", 0, "DELAY\x011\x02"), send("reminders", "waited", 0, "TIMER_DELIVER_MS\x01"+due+"\x02"),
		send("payments", "was undecided", message.SysTransactionPrepared, "TRAN_MSG\x01true\x02PGROUP\x01p\x02"))
	if err != nil {
		t.Fatal(err)
	}
	r.must(t, a, remoting.ReqPopMessage, &remoting.PopMessageRequest{ConsumerGroup: "billing", Topic: "orders", QueueID: -1,
		MaxMsgNums: 1, InvisibleTime: 1000, PollTime: 10_000, ExpType: filter.KindTag, Exp: "*"}, nil)

	runLine(t, 0, "admin", "broker", "set", "brokerPermission=4", "--broker", "broker-a", "-n", at)
	eventually(t, "route without queues to write to", func() bool {
		route, err := r.route(t.Context(), "orders")
		return err == nil && len(route) == 2 && route[0] == queues{broker: "broker-a", addr: a, read: 1} && route[1].write == 1
	})
	if got := runLine(t, 0, "admin", "broker", "list", "--json", "-n", at); !strings.Contains(got, `"permission":"read"`) {
		t.Error(got)
	}
	for range 3 {
		if sent := produceJSON(t, at, "orders"); sent.Broker != "broker-b" {
			t.Errorf("sent to %+v", sent)
		}
	}
	if err := send("orders", "too late", 0, ""); !refusedWith(err, remoting.ResNoPermission) {
		t.Errorf("a send to the broker that is drained: %v", err)
	}

	ids := ""
	eventually(t, "undecided transaction", func() bool {
		ids = runLine(t, 0, "admin", "txn", "list", "--topic", "payments", "-n", at)
		return strings.Contains(ids, "1 undecided on broker-a")
	})
	runLine(t, 0, "admin", "txn", "commit", strings.Fields(strings.Split(ids, "\n")[2])[0], "-n", at)
	consume := func(topic string, n int, want string) {
		t.Helper()
		out, errs, code := run(t, "", "consume", topic, "--group", "billing", "--max", strconv.Itoa(n), "-n", at)
		lines := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(out, " ", "-"), "x\n", ""))
		slices.Sort(lines)
		if got := strings.Join(lines, " "); code != 0 || got != want {
			t.Errorf("%s: %d %q %s", topic, code, got, errs)
		}
	}
	consume("orders", 6, "lay-there was-delayed was-popped") // and three of broker-b
	consume("reminders", 1, "waited")
	consume("payments", 1, "was-undecided")
	eventually(t, "group without lag", func() bool { return strings.Contains(show(t, 0, at, "billing"), "\nlag 0\n") })

	runLine(t, 0, "admin", "broker", "set", "brokerPermission=6", "--broker", "broker-a", "-n", at)
	eventually(t, "route with queues to write to", func() bool {
		route, err := r.route(t.Context(), "orders")
		return err == nil && len(route) == 2 && route[0].write == 1
	})
}

package lite_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// do runs one command of a transcript, words as in its files.
func (tr *transcript) do(line string) string {
	tr.t.Helper()
	words := strings.Fields(line)
	d := &datadriven.TestData{Cmd: words[0]}
	for _, w := range words[1:] {
		key, value, given := strings.Cut(w, "=")
		a := datadriven.CmdArg{Key: key}
		if given {
			a.Vals = strings.Split(value, ",")
		}
		d.CmdArgs = append(d.CmdArgs, a)
	}
	return tr.command(tr.t, d)
}

// A log that can't be read for a while loses no event: neither of a message that is new nor of
// one that comes again, whoever waits at that time; no later message makes them events.
func TestReadFaultLosesNoEvent(t *testing.T) {
	var broken atomic.Bool
	tr := &transcript{t: t, handles: map[string]receipt.Handle{}, b: brokertest.Open(t, brokertest.Options{Wrap: func(fs *vfs.MemFS) vfs.FS {
		return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, "commitlog") && broken.Load() {
				return errorfs.ErrInjected
			}
			return nil
		}))
	}})}
	for _, line := range []string{"topic", "group name=g", "send lite=a body=a0", "restart", "subscribe client=c lites=a"} {
		if out := tr.do(line); out != "ok\n" {
			t.Fatalf("%s: %s", line, out)
		}
	}
	want := func(line, out string) {
		t.Helper()
		if got := tr.do(line); got != out {
			t.Fatalf("%s: %s, want %s", line, got, out)
		}
	}
	broken.Store(true)
	want("receive client=c", "POLLING_TIMEOUT\n")
	broken.Store(false)
	want("receive client=c", "a: a/0 a0, attempt 1\n")

	broken.Store(true)
	want("advance 31s", "")
	want("receive client=c", "POLLING_TIMEOUT\n")
	want("receive client=c wait", "waits\n")
	broken.Store(false)
	want("send lite=b body=b0", "ok\n")
	tr.b.LongPoll.WakeIf(func(*longpoll.Waiter) bool { return true })
	if out := tr.answers(); out != "c is answered\nb: a/0 a0, attempt 2\n" {
		t.Fatal(out)
	}
	want("ack b", "b: ok\n")
}

// A client's events are as many as its subscriptions; lite.sub.client.max.event.cnt does nothing.
func TestDiffEventsHaveNoLimit(t *testing.T) {
	tr := &transcript{t: t, handles: map[string]receipt.Handle{}, b: brokertest.Open(t, brokertest.Options{})}
	d := &datadriven.TestData{Cmd: "group", CmdArgs: []datadriven.CmdArg{{Key: "name", Vals: []string{"g"}}}, Input: "lite.sub.client.max.event.cnt=10\n"}
	if out := tr.do("topic") + tr.run(d); out != "ok\nok\n" {
		t.Fatal(out)
	}
	const n = 25
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint("l", i))
	}
	tr.do("subscribe client=c lites=" + strings.Join(all, ","))
	for _, lite := range all {
		tr.do("send lite=" + lite + " body=x")
	}
	if out := tr.do("receive client=c"); strings.Count(out, "attempt 1") != n {
		t.Errorf("received %s", out)
	}
}

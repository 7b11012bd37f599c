package lite_test

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Who pops a lite topic by its queue's name gets it in order, whatever was asked for: there is
// no retry topic for what lapses.
func TestPopByTheQueuesNameIsInOrder(t *testing.T) {
	tr := &transcript{t: t, handles: map[string]receipt.Handle{}, b: brokertest.Open(t, brokertest.Options{})}
	for _, d := range []*datadriven.TestData{
		{Cmd: "topic"},
		{Cmd: "group", CmdArgs: []datadriven.CmdArg{{Key: "name", Vals: []string{"g"}}}},
		{Cmd: "send", CmdArgs: []datadriven.CmdArg{{Key: "lite", Vals: []string{"a"}}, {Key: "body", Vals: []string{"x"}}}},
	} {
		if out := tr.run(d); out != "ok\n" {
			t.Fatalf("%s: %s", d.Cmd, out)
		}
	}
	type answer struct {
		status pop.Status
		order  bool
		err    error
	}
	done := make(chan answer, 1)
	tr.b.Pop.Pop(pop.Request{Group: "g", Topic: names.Lite("P", "a"), Max: 1, Invisible: 30_000, InitMode: pop.InitMin}, func(res pop.Result, err error) {
		defer res.Release()
		done <- answer{res.Status, res.Order, err}
	})
	if a := <-done; a.err != nil || a.status != pop.Found || !a.order {
		t.Errorf("%+v", a)
	}
}

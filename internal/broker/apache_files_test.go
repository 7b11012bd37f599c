package broker_test

import (
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
)

// Another server has deleted a topic, or somebody has taken it out of topics.json by hand: it is
// gone with the next start, and so is what POP knew of it. The others stay as they are.
func TestTopicIsGoneFromItsFile(t *testing.T) {
	const path = "data/config/topics.json"
	fs := vfs.NewCrashableMem()
	b := brokertest.Open(t, brokertest.Options{FS: fs})
	for _, name := range []string{"stays", "goes"} {
		if err := b.Topics.Put(&topic.Config{Name: name, ReadQueues: 1, WriteQueues: 1, Perm: 6, FilterType: topic.SingleTag}); err != nil {
			t.Fatal(err)
		}
		sent := make(chan error, 1)
		sendHeld(t, b, name, func(_ storage.Placed, err error) { sent <- err })
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		b.Dispatched()
		b.Pop.Pop(pop.Request{Group: "g", Topic: name, QueueID: -1, Max: 1, Invisible: 60_000}, func(r pop.Result, err error) {
			if err != nil || len(r.Batches) != 1 {
				t.Errorf("popped from %s: %d batches, %v", name, len(r.Batches), err)
			}
			r.Release()
		})
	}
	b.Stop()

	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if f, err = fs.Create(path, vfs.WriteCategoryUnspecified); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(strings.ReplaceAll(string(text), `"goes"`, `"comes"`))); err != nil {
		t.Fatal(err)
	}
	f.Close()

	b = b.Restart()
	for name, want := range map[string]bool{"stays": true, "goes": false, "comes": true} {
		if _, ok := b.Topics.Get(name); ok != want {
			t.Errorf("topic %s is there: %t", name, ok)
		}
	}
	inFlight := map[string]int{}
	for _, f := range b.Pop.Figures(nil) {
		inFlight[f.Topic] += f.InFlight
	}
	if len(inFlight) != 1 || inFlight["stays"] != 1 {
		t.Errorf("in flight are %v", inFlight)
	}
}

package pop

import (
	"testing"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// An ack that has found the window of a lite topic just before it is let go of is answered as
// it would have been before.
func TestAckWhileItsWindowIsLetGoOf(t *testing.T) {
	b := newTestBroker(t, false)
	b.open(false)
	defer b.close()
	k := windowKey{group: "g", topic: names.Lite("P", "a")}
	rows := b.db.NewBatch()
	rows.Put(state.PopWindows, appendWindowKey(nil, k), appendWindowValue(nil, windowRow{id: 7, next: 5}))
	b.fatal(b.db.Commit(rows))
	p := b.pop
	w := p.windowOrRevisit(k)
	for !w.gone() {
		p.ForgetIdle()
	}
	now := p.now()
	got := p.lockWindow(w, k)
	if got == nil || got == w {
		t.Fatalf("%v is locked; the window that was let go of is %v", got, w)
	}
	_, err := p.judgeLocked(got, Delivery{Group: k.group, Topic: k.topic, Offset: 3, PopTime: now, Invisible: 30_000}, now)
	if got.mu.Unlock(); err != nil {
		t.Errorf("an ack that is said again: %v", err)
	}
	unknown := windowKey{group: "other", topic: k.topic}
	if p.lockWindow(nil, unknown) != nil || p.lockWindow(w, unknown) != nil {
		t.Error("a group that never came has a window")
	}
}

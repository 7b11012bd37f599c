package timer

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Export is the text of Apache's delayOffset.json.
func (t *Timer) Export() ([]byte, error) {
	return append(remoting.Marshal(&remoting.DelayOffsetTable{OffsetTable: t.Offsets()}), '\n'), nil
}

// Import replaces the progress of all levels by that of a delayOffset.json. A level that
// is not in it has delivered nothing.
func (t *Timer) Import(text []byte) error {
	var in remoting.DelayOffsetTable
	if err := remoting.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("read delay offsets: %w", err)
	}
	if in.OffsetTable == nil {
		return errors.New("read delay offsets: there is no offsetTable")
	}
	t.mu.Lock()
	for n := range in.OffsetTable { // more than are delivered now, maybe
		t.have(min(int(n), config.MostDelays))
	}
	for i := range t.mu.level {
		l := &t.mu.level[i]
		l.done = max(0, in.OffsetTable[int32(i+1)])
		if n := l.forgetBefore(l.done); n > 0 {
			t.o.Log.Warn("another server has passed delayed messages whose log file was gone; they are given up", "level", i+1, "messages", n)
		}
		l.next, l.ahead, l.changed = l.done, nil, true
	}
	t.mu.Unlock()
	b := t.o.State.NewBatch()
	t.Collect(b)
	return t.o.State.Commit(b)
}

var _ state.Source = (*Timer)(nil)

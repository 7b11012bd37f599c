package offset

import (
	"fmt"
	"strings"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Consumed is how far a group has come in one queue.
type Consumed struct {
	Group, Topic string
	Queue        int32
	Offset       int64
}

// Remoting is the whole table in the protocol's form: answer to request 43 and Apache's
// consumerOffset.json. more are offsets that are kept elsewhere (POP's lowest offset not
// done); where both are known the lower counts: repeats, never losses.
func (t *Table) Remoting(more []Consumed) remoting.ConsumerOffsetTable {
	out := remoting.ConsumerOffsetTable{OffsetTable: make(map[string]map[int32]int64)}
	t.mu.RLock()
	for k, e := range t.mu.entries {
		e.mu.Lock()
		if len(e.offsets) > 0 {
			queues := make(map[int32]int64, len(e.offsets))
			for q, off := range e.offsets {
				queues[q] = off
			}
			out.OffsetTable[k.topic+"@"+k.group] = queues
		}
		e.mu.Unlock()
	}
	t.mu.RUnlock()
	for _, c := range more {
		name := c.Topic + "@" + c.Group
		queues := out.OffsetTable[name]
		if queues == nil {
			queues = make(map[int32]int64)
			out.OffsetTable[name] = queues
		}
		if old, ok := queues[c.Queue]; !ok || c.Offset < old {
			queues[c.Queue] = c.Offset
		}
	}
	return out
}

// Export is the text of consumerOffset.json.
func (t *Table) Export(more []Consumed) ([]byte, error) {
	table := t.Remoting(more)
	return append(remoting.Marshal(&table), '\n'), nil
}

// Import replaces the table by that of a consumerOffset.json.
func (t *Table) Import(text []byte) error {
	var in remoting.ConsumerOffsetTable
	if err := remoting.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("read consumer offsets: %w", err)
	}
	if in.OffsetTable == nil {
		return fmt.Errorf("read consumer offsets: there is no offsetTable")
	}
	entries := make(map[key]*entry, len(in.OffsetTable))
	for name, queues := range in.OffsetTable {
		topic, group, ok := strings.Cut(name, "@")
		if !ok || topic == "" || group == "" || strings.ContainsRune(name, 0) {
			t.o.Log.Warn("an entry of consumerOffset.json is left out", "entry", name)
			continue
		}
		e := &entry{offsets: make(map[int32]int64, len(queues))}
		for q, off := range queues {
			if q >= 0 && off >= 0 {
				e.offsets[q] = off
			}
		}
		entries[key{group, topic}] = e
	}
	return t.replace(entries)
}

// replace makes entries the whole table, in the database first.
func (t *Table) replace(entries map[key]*entry) error {
	t.flushing.Lock()
	defer t.flushing.Unlock()
	if t.o.State != nil {
		b := t.o.State.NewBatch()
		b.DeletePrefix(state.Offsets, nil)
		for k, e := range entries {
			for q := range e.offsets {
				e.put(b, k, q)
			}
		}
		if err := t.o.State.Commit(b); err != nil {
			return fmt.Errorf("store consumer offsets: %w", err)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.mu.entries {
		e.mu.Lock()
		e.gone = true
		e.mu.Unlock()
	}
	t.mu.entries = entries
	t.mu.dirty = make(map[key]struct{})
	return nil
}

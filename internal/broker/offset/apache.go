package offset

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Remoting is the whole table in the protocol's form, the answer to request 43.
func (t *Table) Remoting() remoting.ConsumerOffsetTable {
	out := remoting.ConsumerOffsetTable{OffsetTable: make(map[string]map[int32]int64)}
	t.Each(func(group, topic string, offsets map[int32]int64) { out.OffsetTable[topic+"@"+group] = offsets })
	return out
}

// Export is the text of consumerOffset.json. There may be a hundred thousand entries, so it is
// written as it comes.
func (t *Table) Export() ([]byte, error) {
	keys := t.sorted()
	out := append(make([]byte, 0, 64*(1+len(keys))), `{"offsetTable":{`...)
	comma := false
	for _, k := range keys {
		e := t.find(k.group, k.topic)
		if e == nil {
			continue // deleted meanwhile
		}
		e.mu.Lock()
		if e.known() {
			if comma {
				out = append(out, ',')
			}
			out, comma = e.export(out, k), true
		}
		e.mu.Unlock()
	}
	return append(out, "}}\n"...), nil
}

// ExportLMQ is the text of lmqConsumerOffset.json, in which a broker with enableLmq keeps all
// offsets. It wants its second table, of groups that are light queues, to be there.
func (t *Table) ExportLMQ() ([]byte, error) {
	text, err := t.Export()
	return append(bytes.TrimSuffix(text, []byte("}\n")), ",\"lmqOffsetTable\":{}}\n"...), err
}

// sorted is the keys in the order of their names in the file.
func (t *Table) sorted() []key {
	t.mu.RLock()
	keys := slices.AppendSeq(make([]key, 0, len(t.mu.entries)), maps.Keys(t.mu.entries))
	t.mu.RUnlock()
	slices.SortFunc(keys, func(a, b key) int { return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.group, b.group)) })
	return keys
}

// export appends one entry; its lock is held.
func (e *entry) export(out []byte, k key) []byte {
	out = remoting.AppendString(out, k.topic+"@"+k.group)
	out = append(out, ":{"...)
	comma := false
	e.each(func(s *spot) {
		if comma {
			out = append(out, ',')
		}
		comma = true
		out = append(strconv.AppendInt(out, int64(s.queue), 10), ':')
		out = strconv.AppendInt(out, s.offset, 10)
	})
	return append(out, '}')
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
		e := &entry{}
		for q, off := range queues {
			if q >= 0 && off >= 0 {
				s := e.at(q)
				s.offset, s.has = off, hasOffset
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
			e.each(func(s *spot) { e.put(b, k, s.queue) })
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
	t.mu.dirty = nil
	return nil
}

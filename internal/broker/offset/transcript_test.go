package offset

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestTranscript runs testdata/*.txt: one command a line, the whole table below.
func TestTranscript(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.Contains(path, "fuzz") {
			return
		}
		fs := vfs.NewMem()
		db := openState(t, fs)
		table := open(t, Options{State: db})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for line := range strings.Lines(d.Input) {
				var group, topic string
				var queue int32
				var off int64
				f := strings.Fields(line)
				fmt.Sscan(strings.Join(f[1:], " "), &group, &topic, &queue, &off)
				switch f[0] {
				case "advance":
					table.Advance(group, topic, queue, off)
				case "commit":
					if err := table.Commit(group, topic, queue, off); err != nil {
						fmt.Fprintln(&out, err)
					}
				case "reset":
					table.Reset(group, topic, queue, off)
				case "take":
					off, ok := table.TakeReset(group, topic, queue)
					fmt.Fprintln(&out, off, ok)
				case "delete-group":
					check(t, table.DeleteGroup(group))
				case "delete-topic":
					check(t, table.DeleteTopic(group))
				case "flush":
					check(t, table.Flush())
				case "restart":
					check(t, db.Close())
					db = openState(t, fs)
					table = open(t, Options{State: db})
				default:
					t.Fatalf("unknown command %s", f[0])
				}
			}
			return out.String() + table.dump()
		})
	})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// dump is the whole table, sorted.
func (t *Table) dump() string {
	var lines []string
	t.mu.RLock()
	defer t.mu.RUnlock()
	for k, e := range t.mu.entries {
		e.mu.Lock()
		e.each(func(s *spot) {
			line := fmt.Sprintf("%s %s %d: %d", k.group, k.topic, s.queue, s.offset)
			if r, ok := e.get(s.queue, hasReset); ok {
				line += fmt.Sprintf(" (reset to %d waits)", r)
			}
			lines = append(lines, line+"\n")
		})
		e.mu.Unlock()
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

package storage_test

import (
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Keys that all have one hash cost an append nothing, and a query at most a look at each
// record: reads of the oldest grow with their number, not faster. The long form, a million
// of them on the built binary, is in test/scale.
func TestKeysOfOneHash(t *testing.T) {
	key := func(i int) string { // Aa and BB have one hash in Java
		var k strings.Builder
		for bit := range 13 {
			k.WriteString([]string{"Aa", "BB"}[i>>bit&1])
		}
		return k.String()
	}
	reads := func(many int) (appends, oldest int64) {
		var n atomic.Int64
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileRead || op.Kind == errorfs.OpFileReadAt {
				n.Add(1)
			}
			return nil
		}))
		s := storetest.Open(t, storage.Options{FS: fs, LogSegmentSize: 256 << 10, IndexEntries: 50_000})
		before := n.Load()
		for i := range many {
			m := storetest.Message("orders", 0, i, 100)
			m.Properties = message.Properties("KEYS\x01" + key(i) + "\x02")
			s.MustAppend(m)
		}
		awaitCheckpoint(t, s)
		appends = n.Load() - before
		for _, i := range []int{many - 1, many / 2, 0} {
			before = n.Load()
			found, err := s.QueryKey("orders", key(i), 10, 0, math.MaxInt64/2)
			if err != nil || len(found) != 1 || found[0].QueueOffset != int64(i) {
				t.Fatalf("key %d of %d: %d found, %v", i, many, len(found), err)
			}
		}
		return appends, n.Load() - before
	}
	few, fewOldest := reads(1000)
	many, manyOldest := reads(8000)
	t.Logf("reads of the appends %d and %d, of the query for the oldest key %d and %d", few, many, fewOldest, manyOldest)
	if many > 9*few+9 || manyOldest > 9*fewOldest+9 {
		t.Error("eight times the keys take more than eight times the reads")
	}
}

package storage_test

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Any bytes in the log, in a queue and in the index: the start neither panics nor fails,
// the store takes messages, reads and queries, and opens again.
func FuzzStart(f *testing.F) {
	const segment, queueFile, indexFile = 4096, 16 * 20, 40 + 10*4 + 20*20
	var log []byte
	for i := range 5 {
		m := storetest.Message("orders", 0, i, 30)
		m.QueueOffset, m.PhysicalOffset, m.StoreTimestamp = int64(i), int64(len(log)), 1_700_000_000_000
		log, _ = message.AppendStored(log, m)
	}
	f.Add(log, []byte{}, []byte{}, true)
	f.Add(message.AppendBlank(log[:len(log):len(log)], int32(segment-len(log))), make([]byte, 40), make([]byte, 100), false)
	f.Add(log[:len(log)-3], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100}, []byte{}, true)
	f.Add([]byte{0, 0, 0, 200, 0xda, 0xa3, 0x20, 0xa7}, []byte{}, []byte{}, false)
	f.Fuzz(func(t *testing.T, log, queue, index []byte, clean bool) {
		fs := vfs.NewMem()
		file := func(dir, name string, data []byte, size int) {
			if err := fs.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, size)
			copy(b, data)
			put(t, fs, dir+"/"+name, b)
		}
		file("store/commitlog", "00000000000000000000", log, segment)
		file("store/consumequeue/orders/0", "00000000000000000000", queue, queueFile)
		file("store/index", "20260101000000000", index, indexFile)
		if !clean {
			put(t, fs, "store/abort", []byte("1"))
		}
		o := storage.Options{FS: fs, LogSegmentSize: segment, QueueFileEntries: 16, IndexSlots: 10, IndexEntries: 20}
		for range 2 {
			s, err := storetest.TryOpen(t, o)
			if err != nil {
				t.Fatal(err)
			}
			p := s.MustAppend(storetest.Message("new", 0, 0, 30))
			s.AwaitDispatch(p.PhysicalOffset + int64(p.Size))
			for _, topic := range []string{"new", "orders"} {
				r := s.Read(storage.ReadRequest{Topic: topic, Offset: s.MaxOffset(topic, 0) - 1})
				if topic == "new" && r.Status != storage.Found {
					t.Fatalf("the new record: %v", r.Status)
				}
				r.Release()
				s.OffsetByTime(topic, 0, 1_700_000_000_000, false)
			}
			if _, err := s.QueryKey("orders", "k1", 5, 0, 1<<60); err != nil {
				t.Fatal(err)
			}
			if err := s.StopClose(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

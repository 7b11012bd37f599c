package storage_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
)

func readAll(t *testing.T, s *storetest.Store, topic string, queue int32, f *filter.Expression) []string {
	t.Helper()
	var got []string
	for at := s.MinOffset(topic, queue); ; {
		r := s.Read(storage.ReadRequest{Topic: topic, QueueID: queue, Offset: at, Filter: f})
		for _, rec := range r.Records {
			var m message.Message
			if _, err := message.DecodeStored(rec.Bytes, &m); err != nil {
				t.Fatal(err)
			}
			if m.QueueOffset != rec.QueueOffset || m.PhysicalOffset != rec.PhysicalOffset || m.Topic != topic || m.QueueID != queue {
				t.Fatalf("read %+v for record %+v of %s/%d", m, rec, topic, queue)
			}
			if f == nil && rec.QueueOffset != at {
				t.Fatalf("offset %d where %d was next", rec.QueueOffset, at)
			}
			at = rec.QueueOffset + 1
			got = append(got, m.Properties.Value(message.PropertyUniqKey))
		}
		if at = r.Next; r.Status == storage.OffsetOverflowOne {
			return got
		}
		if r.Status != storage.Found && r.Status != storage.NoMatchedMessage {
			t.Fatalf("%v at %d", r.Status, at)
		}
		r.Release()
	}
}

func fill(t *testing.T, s *storetest.Store, topic string, from, n int) (last storage.Placed) {
	t.Helper()
	for i := from; i < from+n; i++ {
		last = s.MustAppend(storetest.Message(topic, int32(i%2), i, 300+i%200))
	}
	s.AwaitDispatch(last.PhysicalOffset + int64(last.Size))
	return last
}

func TestAppendReadReopen(t *testing.T) {
	o := storetest.Small(storage.Options{})
	s, err := storetest.TryOpen(t, o)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, "orders", 0, 1000)
	for round := range 3 {
		for queue := range int32(2) {
			got := readAll(t, s, "orders", queue, nil)
			if len(got) != 500 || got[499] != fmt.Sprintf("orders-%d-%d", queue, 998+queue) {
				t.Fatalf("round %d: read %d, last %v", round, len(got), got[len(got)-1])
			}
		}
		tag, _ := filter.Compile("TAG", "t1")
		if got := readAll(t, s, "orders", 0, tag); len(got) < 160 || len(got) > 170 {
			t.Fatalf("%d records of a third of 500", len(got))
		}
		for _, key := range []string{"orders-1-777", "k777"} {
			found, err := s.QueryKey("orders", key, 10, 0, math.MaxInt64/2)
			if err != nil || len(found) != 1 || found[0].QueueOffset != 388 {
				t.Fatalf("query %s: %v %v", key, found, err)
			}
		}
		if found, _ := s.QueryKey("orders", "all", 64, 0, math.MaxInt64/2); len(found) != 64 {
			t.Fatalf("%d found of 64", len(found))
		}
		s.CloseChecked()
		if s, err = storetest.TryOpen(t, o); err != nil {
			t.Fatal(err)
		}
	}
	fill(t, s, "orders", 1000, 100)
	s.CloseChecked()
}

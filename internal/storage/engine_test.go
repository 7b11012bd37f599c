package storage_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

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

func sql(t *testing.T, text string) *filter.Expression {
	t.Helper()
	e, err := filter.Compile(filter.KindSQL92, text)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// What a filter by properties can't want is passed without being read, as long as the
// process remembers; after a restart it is read, with the same result.
func TestScanReadsWhatIsPossible(t *testing.T) {
	var reads atomic.Int64
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.Contains(op.Path, "commitlog") && op.Kind == errorfs.OpFileReadAt {
			reads.Add(1)
		}
		return nil
	}))
	const n = 3000
	o := storage.Options{FS: fs, LogSegmentSize: 256 << 10}
	s := storetest.Open(t, o)
	var last storage.Placed
	for i := range n {
		m := storetest.Message("orders", 0, i, 2000)
		m.Properties = m.Properties.With("n", fmt.Sprint(i))
		last = s.MustAppend(m)
	}
	s.AwaitDispatch(last.PhysicalOffset + int64(last.Size))
	ask := func(s *storetest.Store) int64 {
		before := reads.Load()
		if got := readAll(t, s, "orders", 0, sql(t, "n = 123")); len(got) != 1 {
			t.Errorf("%d records, want 1", len(got))
		}
		return reads.Load() - before
	}
	if got := ask(s); got > n/10 { // bits that coincide by chance
		t.Errorf("%d reads of the log for a filter that one of %d messages passes", got, n)
	}
	s.CloseChecked()
	if got := ask(storetest.Open(t, o)); got < 10 {
		t.Errorf("%d reads of the log by a process that knows nothing", got)
	}
}

// A filter that asks for properties reads through everything, across files and rounds, and
// says where it stopped.
func TestReadBySQL(t *testing.T) {
	s := storetest.Open(t, storage.Options{})
	const n = 2000
	var last storage.Placed
	for i := range n {
		m := storetest.Message("orders", 0, i, 100+i%300)
		m.Properties = m.Properties.With("n", fmt.Sprint(i))
		last = s.MustAppend(m)
	}
	s.AwaitDispatch(last.PhysicalOffset + int64(last.Size))
	for _, c := range []struct {
		text string
		want int
	}{{"n = 1234", 1}, {"n >= 0", n}, {"n BETWEEN 700 AND 1299", 600}, {"absent = 1", 0}} {
		if got := readAll(t, s, "orders", 0, sql(t, c.text)); len(got) != c.want {
			t.Errorf("%s: %d records, want %d", c.text, len(got), c.want)
		}
	}
	read := func(r storage.ReadRequest) string {
		r.Topic = "orders"
		res := s.Read(r)
		defer res.Release()
		out := fmt.Sprintf("%v next %d:", res.Status, res.Next)
		for _, rec := range res.Records {
			out += fmt.Sprintf(" %d", rec.QueueOffset)
		}
		return out
	}
	for _, c := range []struct {
		r    storage.ReadRequest
		want string
	}{
		{storage.ReadRequest{Filter: sql(t, "n IN ('3','5','9','700')"), MaxMessages: 2}, "FOUND next 9: 3 5"},
		{storage.ReadRequest{Filter: sql(t, "n IN ('3','5','9','700')"), Offset: 9}, "FOUND next 809: 9 700"},
		{storage.ReadRequest{Filter: sql(t, "n > 5"), MaxMessages: 100, MaxBytes: 1}, "FOUND next 7: 6"},
		{storage.ReadRequest{Filter: sql(t, "n = 900")}, "NO_MATCHED_MESSAGE next 800:"},
		{storage.ReadRequest{Filter: sql(t, "n = 900"), MaxMessages: 1000}, "FOUND next 1000: 900"},
		{storage.ReadRequest{Filter: sql(t, "n = 900"), Offset: n}, "OFFSET_OVERFLOW_ONE next 2000:"},
	} {
		if got := read(c.r); got != c.want {
			t.Errorf("%s from %d: %s, want %s", c.r.Filter.Text(), c.r.Offset, got, c.want)
		}
	}
	p, ok := s.PropertiesAt(last.PhysicalOffset, last.Size)
	if got, _ := p.Get("n"); !ok || got != fmt.Sprint(n-1) {
		t.Errorf("properties %q", p)
	}
	if _, ok := s.PropertiesAt(last.PhysicalOffset+1, last.Size); ok {
		t.Error("properties of what is no record")
	}
}

// Two tags of one hash: the entry lets both pass, the record decides.
func TestReadByTagOfSameHash(t *testing.T) {
	s := storetest.Open(t, storage.Options{})
	var last storage.Placed
	for i, tag := range []string{"Aa", "BB", "BB", "Aa"} {
		m := storetest.Message("orders", 0, i, 100)
		m.Properties = m.Properties.With(message.PropertyTags, tag)
		last = s.MustAppend(m)
	}
	s.AwaitDispatch(last.PhysicalOffset + int64(last.Size))
	only, err := filter.Compile(filter.KindTag, "Aa")
	if err != nil {
		t.Fatal(err)
	}
	res := s.Read(storage.ReadRequest{Topic: "orders", Filter: only})
	if len(res.Records) != 2 || res.Records[1].QueueOffset != 3 || res.Next != 4 || res.Bytes != len(res.Records[0].Bytes)+len(res.Records[1].Bytes) {
		t.Errorf("%+v", res)
	}
	res.Release()
	if res := s.Read(storage.ReadRequest{Topic: "orders", Offset: 1, MaxMessages: 2, Filter: only}); res.Status != storage.NoMatchedMessage || res.Next != 3 || len(res.Records) != 0 {
		t.Errorf("%+v", res)
	}
}

// RecordCRC is Apache's enabledAppendPropCRC: every record carries a checksum of all its
// bytes, and another one of it is not sound.
func TestRecordsWithAChecksumOfAllBytes(t *testing.T) {
	s := storetest.Open(t, storage.Options{RecordCRC: true})
	placed := s.MustAppend(storetest.Message("orders", 0, 1, 100))
	record, err := s.ReadAt(placed.PhysicalOffset)
	if err != nil {
		t.Fatal(err)
	}
	var m message.Message
	if _, err := message.DecodeStored(record, &m); err != nil || m.Properties.Value(message.PropertyCRC) == "" {
		t.Fatalf("%q, %v", m.Properties, err)
	}
	if err := message.CheckCRC(record); err != nil {
		t.Error(err)
	}
	at := bytes.Index(record, []byte("KEYS"))
	record[at]++
	if err := message.CheckCRC(record); err == nil {
		t.Error("another property, and the checksum does not notice")
	}
}

package storage_test

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
)

func openOnDisk(b *testing.B, flush storage.FlushPolicy) *storage.Engine {
	e, err := storage.Open(storage.Options{FS: vfs.Default, Dir: b.TempDir(), Flush: flush})
	if err != nil {
		b.Fatal(err)
	}
	g := lifecycle.New(slog.Default())
	for _, l := range e.Loops() {
		g.Go(l.Name, l.Run)
	}
	b.Cleanup(func() {
		if err := g.Stop(); err != nil {
			b.Error(err)
		}
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return e
}

// benchMessages are messages of 1 KiB of body with the properties that clients send.
func benchMessages(n int) []*message.Message {
	ms := make([]*message.Message, n)
	for i := range ms {
		ms[i] = &message.Message{
			Topic: "BenchmarkTest", QueueID: int32(i % 8), Body: make([]byte, 1024), BornTimestamp: 1,
			BornHost:  netip.MustParseAddrPort("127.0.0.1:5000"),
			StoreHost: netip.MustParseAddrPort("127.0.0.1:10911"),
			Properties: message.Properties(fmt.Sprintf(
				"MSG_REGION\x01DefaultRegion\x02UNIQ_KEY\x017F0000010A2B4C5D6E7F%012X\x02CLUSTER\x01DefaultCluster\x02WAIT\x01true\x02TRACE_ON\x01true\x02", i)),
		}
	}
	return ms
}

// BenchmarkAppend is the whole cost of a send in the store, dispatch to queues and index
// included, with 64 in flight.
func BenchmarkAppend(b *testing.B) {
	for _, policy := range []struct {
		name  string
		flush storage.FlushPolicy
	}{{"async", storage.Async}, {"sync", storage.Sync}} {
		for _, inFlight := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/%d", policy.name, inFlight), func(b *testing.B) {
				e := openOnDisk(b, policy.flush)
				ms := benchMessages(1 << 16)
				free := make(chan struct{}, inFlight)
				var failed atomic.Int64
				done := func(_ storage.Placed, err error) {
					if err != nil {
						failed.Add(1)
					}
					free <- struct{}{}
				}
				for range inFlight {
					free <- struct{}{}
				}
				b.ReportAllocs()
				b.SetBytes(1024)
				cpu := cpuTime()
				b.ResetTimer()
				for i := range b.N {
					<-free
					e.Append(ms[i%len(ms)], done)
				}
				for range inFlight {
					<-free
				}
				b.StopTimer()
				b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
				if failed.Load() > 0 {
					b.Fatal(failed.Load(), " appends failed")
				}
			})
		}
	}
}

// BenchmarkScan asks an SQL92 filter that one record of 1,000 passes, queue by queue as
// BenchmarkReadBacklog reads; one op is one record that was asked.
func BenchmarkScan(b *testing.B) {
	e := openOnDisk(b, storage.Async)
	ms := benchMessages(8000)
	for i, m := range ms {
		m.Properties = m.Properties.With("part", strconv.Itoa(i/8))
	}
	fillBench(e, ms, 200_000)
	one, err := filter.Compile(filter.KindSQL92, "part = 0")
	if err != nil {
		b.Fatal(err)
	}
	readBench(b, e, 8, one)
}

// BenchmarkReadBacklog reads records of 1 KiB, 32 at a time, from the start of a queue
// that lies in the log between seven others; the log is in the page cache.
func BenchmarkReadBacklog(b *testing.B) {
	e := openOnDisk(b, storage.Async)
	fillBench(e, benchMessages(1<<16), 200_000)
	readBench(b, e, 8, nil)
}

// BenchmarkReadSideBySide is BenchmarkReadBacklog with 64 queues, so that the records of each
// lie far apart and all want the same parts of the log.
func BenchmarkReadSideBySide(b *testing.B) { readOf64(b, 64) }

// BenchmarkReadAlone reads one of such queues, and nobody wants what lies between its records.
func BenchmarkReadAlone(b *testing.B) { readOf64(b, 1) }

func readOf64(b *testing.B, queues int) {
	e := openOnDisk(b, storage.Async)
	ms := benchMessages(1 << 16)
	for i, m := range ms {
		m.QueueID = int32(i % 64)
	}
	fillBench(e, ms, 200_000)
	readBench(b, e, queues, nil)
}

// readBench goes through the queues in turn, again and again; one op is one record that was
// passed or found.
func readBench(b *testing.B, e *storage.Engine, queues int, f *filter.Expression) {
	b.ReportAllocs()
	b.SetBytes(1024)
	b.ResetTimer()
	cpu := cpuTime()
	next := make([]int64, queues)
	for n := 0; n < b.N; {
		for q := range next {
			r := e.Read(storage.ReadRequest{Topic: "BenchmarkTest", QueueID: int32(q), Offset: next[q], MaxMessages: 32, Filter: f})
			n += int(r.Next - next[q])
			if next[q] = r.Next; r.Status == storage.OffsetOverflowOne {
				next[q] = 0
			}
			r.Release()
		}
	}
	b.StopTimer()
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// fillBench appends total messages, those of ms in turn.
func fillBench(e *storage.Engine, ms []*message.Message, total int) {
	free := make(chan struct{}, 64)
	for i := range total {
		if i >= 64 {
			<-free
		}
		e.Append(ms[i%len(ms)], func(storage.Placed, error) { free <- struct{}{} })
	}
	for range 64 {
		<-free
	}
}

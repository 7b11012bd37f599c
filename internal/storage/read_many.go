package storage

import (
	"slices"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
)

// RecordPlace is where a record lies in the log.
type RecordPlace struct {
	Physical int64
	Size     int32
}

// ReadMany reads the records at several places of the log, in any order, with few reads of
// its files. What can't be read is nil in its place. The records are valid until release is
// called.
func (e *Engine) ReadMany(places []RecordPlace) (records [][]byte, release func()) {
	records = make([][]byte, len(places))
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(places[a].Physical - places[b].Physical) })
	spans := make([]commitlog.Span, len(places))
	for i, at := range order {
		spans[i] = commitlog.Span{Offset: places[at].Physical, Size: places[at].Size}
	}
	lease := new(commitlog.Lease)
	for done := 0; done < len(spans); done++ { // the one that stopped a round is passed over
		n, _ := e.log.Read(spans[done:], lease)
		for i := done; i < done+n; i++ {
			records[order[i]] = spans[i].Bytes
		}
		done += n
	}
	return records, lease.Release
}

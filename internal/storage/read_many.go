package storage

import (
	"errors"
	"slices"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/segment"
)

// RecordPlace is where a record lies in the log.
type RecordPlace struct {
	Physical int64
	Size     int32
}

// PlaceRead is what lies at a place: a record, ErrNotFound when there is none and never will be,
// or why it can't be read now.
type PlaceRead struct {
	Bytes []byte
	Err   error
}

// ReadMany reads the records at several places of the log, in any order, with few reads of
// its files. The records are valid until release is called.
func (e *Engine) ReadMany(places []RecordPlace) (records []PlaceRead, release func()) {
	records = make([]PlaceRead, len(places))
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
	for done := 0; done < len(spans); {
		n, err := e.log.Read(spans[done:], lease)
		for i := done; i < done+n; i++ {
			records[order[i]].Bytes = spans[i].Bytes
		}
		if done += n; err == nil {
			continue
		}
		// The fault may be of a neighbour that was to be read with it.
		if n, err = e.log.Read(spans[done:done+1], lease); n == 1 {
			records[order[done]].Bytes = spans[done].Bytes
		} else {
			records[order[done]].Err = notFound(err)
		}
		done++
	}
	return records, lease.Release
}

// notFound is ErrNotFound for what says that there is no record.
func notFound(err error) error {
	if errors.Is(err, commitlog.ErrNoRecord) || errors.Is(err, segment.ErrNoFile) {
		return ErrNotFound
	}
	return err
}

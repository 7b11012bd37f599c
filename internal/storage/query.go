package storage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/keyindex"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// The index knows hashes of keys, so a query reads every record whose key has the hash of the
// one that it asks for. By chance no other key has it, but who sends chooses the keys, and can
// give any number of messages keys of one hash. So a query has an end: it looks at no more
// records than Options.QueryRecords, and does no more work for each of them than for an
// ordinary one. The work is counted, not timed: what is found does not depend on what else the
// machine does. What comes to one slice of work is done by whoever asks. The rest is done a
// slice at a time by a loop of its own, in turn with other queries that take long, so that
// neither a connection nor a query for an ordinary key waits for it; the loop rests as long as
// it works, and leaves a query that nobody waits for any more.
const (
	// maxQuery is Apache's maxMsgsNumBatch.
	maxQuery = 64

	stepEntries  = 1 << 8 // between two looks at the time
	longestSlice = 5 * time.Millisecond

	entriesPerRecord = 40       // of Options.QueryRecords: four million
	bytesPerRecord   = 10 << 10 // a GiB

	longestWait  = 15 * time.Second // Apache's clients wait 18 s for the answer
	mostSearches = 16               // under way at a time, beside those of one slice
)

// work is what a query does: it goes through entries of the index, reads records, and some
// bytes of them in vain.
type work struct{ entries, records, bytes int }

// sliceWork takes a millisecond or two where what is read is in memory.
var sliceWork = work{entries: 1 << 14, records: 1 << 10, bytes: 16 << 20}

func (w work) done() bool { return w.entries <= 0 || w.records <= 0 || w.bytes <= 0 }

// KeyQuery asks for the records of a topic that have a key: their unique key, or a word of
// their KEYS.
type KeyQuery struct {
	Topic, Key string
	Max        int   // 64, when zero or above it
	Begin, End int64 // of the store time, ms, inclusive

	Gone func() bool // reports whether nobody waits for the answer any more; may be nil
}

// QueryKey finds records by key, newest first; they are copies. It does no more than one
// slice of work, however long that takes: with ErrCrowdedHash the records are those that it
// came to.
func (e *Engine) QueryKey(topic, key string, max int, begin, end int64) ([]Record, error) {
	s := e.newSearch(KeyQuery{Topic: topic, Key: key, Max: max, Begin: begin, End: end})
	over, err := s.slice(time.Time{})
	if err == nil && !over {
		err = s.crowded()
	}
	return s.found, err
}

// FindKey is QueryKey for who can wait: it looks at as many records as a query may. done is
// called once, before FindKey returns where little has to be done.
func (e *Engine) FindKey(q KeyQuery, done func([]Record, error)) {
	s := e.newSearch(q)
	now := time.Now()
	over, err := s.slice(now.Add(longestSlice))
	if err == nil && !over {
		s.done, s.waits = done, now.Add(longestWait)
		err = e.searches.add(s)
	}
	if err != nil || over {
		done(s.found, err)
	}
}

// search is a query under way.
type search struct {
	e      *Engine
	q      KeyQuery
	birth  int64
	cursor *keyindex.Cursor
	found  []Record
	looked int  // at so many records
	left   work // that it may still do
	done   func([]Record, error)
	waits  time.Time // until then somebody waits for the answer
}

func (e *Engine) newSearch(q KeyQuery) *search {
	if q.Max <= 0 || q.Max > maxQuery {
		q.Max = maxQuery
	}
	n := e.opt.QueryRecords
	return &search{e: e, q: q, birth: e.opt.Birth(q.Topic), left: work{entries: n * entriesPerRecord, records: n, bytes: n * bytesPerRecord},
		cursor: e.index.Find(keyindex.Hash(keyindex.TopicHash(q.Topic), q.Key), q.Begin, q.End)}
}

// slice does one slice of the work, until a time if that is set, and reports whether that was
// the last.
func (s *search) slice(until time.Time) (over bool, err error) {
	if s.q.Key == "" {
		return true, nil
	}
	for w := sliceWork; !w.done() && !s.cursor.Over() && (until.IsZero() || time.Now().Before(until)); {
		if s.left.entries <= 0 {
			return false, s.crowded()
		}
		steps := min(w.entries, s.left.entries, stepEntries)
		unused := steps
		offset, found, err := s.cursor.Next(&unused)
		w.entries -= steps - unused
		s.left.entries -= steps - unused
		if err != nil {
			return false, err
		}
		if !found || s.passed(offset) {
			continue
		}
		if s.left.done() {
			return false, s.crowded()
		}
		wasted, err := s.look(offset)
		if err != nil {
			return false, err
		}
		if len(s.found) == s.q.Max {
			return true, nil
		}
		w.records--
		w.bytes -= wasted
		s.left.records--
		s.left.bytes -= wasted
	}
	return s.cursor.Over(), nil
}

// passed reports whether there is no need to read a record: it has gone, it is of an earlier
// topic of the name, or another of its keys has led to it.
func (s *search) passed(offset int64) bool {
	return offset < s.e.log.Min() || offset < s.birth ||
		slices.ContainsFunc(s.found, func(r Record) bool { return r.PhysicalOffset == offset })
}

// look reads a record and keeps it if it is one of those that are asked for; else it tells how
// much was read in vain.
func (s *search) look(offset int64) (wasted int, err error) {
	s.looked++
	rec, err := s.e.log.ReadAt(offset)
	if errors.Is(err, commitlog.ErrNoRecord) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var m message.Message
	if _, err := message.DecodeStored(rec, &m); err != nil || m.Topic != s.q.Topic ||
		m.StoreTimestamp < s.q.Begin || m.StoreTimestamp > s.q.End || !hasKey(&m, s.q.Key) {
		return len(rec), nil
	}
	s.found = append(s.found, Record{QueueOffset: m.QueueOffset, PhysicalOffset: offset,
		TagsCode: message.TagsCode(m.Properties.Value(message.PropertyTags)), Bytes: rec})
	return 0, nil
}

func hasKey(m *message.Message, key string) bool {
	if m.Properties.Value(message.PropertyUniqKey) == key {
		return true
	}
	for word := range strings.FieldsFuncSeq(m.Properties.Value(message.PropertyKeys), isSpace) {
		if word == key {
			return true
		}
	}
	return false
}

// crowded is why a query ends before it has looked everywhere.
func (s *search) crowded() error {
	return fmt.Errorf("%w: the newest %d of topic %s that have the hash of %.64q were looked at, and there may be more; a narrower range of time looks at others",
		ErrCrowdedHash, s.looked, s.q.Topic, s.q.Key)
}

// searches are the queries that take more than one slice of work.
type searches struct {
	mu struct {
		sync.Mutex
		waiting []*search
		closed  bool
	}
	wake chan struct{}
}

// add has the loop go on with a query, or says why not.
func (w *searches) add(s *search) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.mu.closed:
		return ErrClosed
	case len(w.mu.waiting) >= mostSearches:
		return fmt.Errorf("%w: %d", ErrManySearches, mostSearches)
	}
	w.mu.waiting = append(w.mu.waiting, s)
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return nil
}

// next takes out the query whose turn it is, nil when there is none.
func (w *searches) next() *search {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.mu.waiting) == 0 {
		return nil
	}
	s := w.mu.waiting[0]
	w.mu.waiting = slices.Delete(w.mu.waiting, 0, 1)
	return s
}

// again puts a query behind the others.
func (w *searches) again(s *search) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.waiting = append(w.mu.waiting, s)
}

// close takes no more and returns those that wait.
func (w *searches) close() []*search {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.closed = true
	left := w.mu.waiting
	w.mu.waiting = nil
	return left
}

// search does the work of the queries that take long.
func (e *Engine) search(ctx context.Context) error {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		select {
		case <-ctx.Done():
		case <-rest.C:
		}
		s := e.searches.next()
		switch {
		case ctx.Err() != nil:
			for _, left := range e.searches.close() {
				left.done(nil, ErrClosed)
			}
			if s != nil {
				s.done(nil, ErrClosed)
			}
			return nil
		case s == nil:
			select {
			case <-ctx.Done():
			case <-e.searches.wake:
			}
			rest.Reset(0)
		default:
			began := time.Now()
			if !s.goOn(began) {
				e.searches.again(s)
			}
			rest.Reset(time.Since(began))
		}
	}
}

// goOn does a slice of the work, and reports whether the query has been answered.
func (s *search) goOn(now time.Time) bool {
	if s.q.Gone != nil && s.q.Gone() {
		s.done(nil, ErrNobodyWaits)
		return true
	}
	over, err := false, error(nil)
	if now.Before(s.waits) {
		over, err = s.slice(now.Add(longestSlice))
	} else {
		err = s.crowded()
	}
	if err == nil && !over {
		return false
	}
	s.done(s.found, err)
	return true
}

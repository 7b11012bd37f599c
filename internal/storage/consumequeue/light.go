package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/cockroachdb/errors/oserror"

	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// A light queue is the queue of a lite topic. There may be a hundred thousand, most of them
// asleep, so it has no file of its own: its entries lie in the state database in rows of
// rowEntries, and of those that are there it keeps nothing in memory. Everything else is as
// with other queues: entries come in log order, those behind the last checkpoint are not
// trusted, and the log can say all of them again. docs/decisions/0080 says why.
//
// Unlike another one a light queue may end and begin anew under its name, when its topic has
// expired: an entry with a lower number behind one that is further in the log is the first
// of a new life.

// Shelf keeps the rows of light queues.
type Shelf interface {
	Get(key []byte) ([]byte, error) // none when there is none
	Scan(prefix []byte, each func(key, row []byte) error) error
	Write(f func(put func(key, row []byte), remove, removeAll func(key []byte))) error // all of it, or an error
	Sync() error
}

// rowEntries is how many entries one row has.
const rowEntries = 64

func lightKey(dst []byte, topic string, row int64) []byte {
	dst = append(append(dst, topic...), 0)
	return binary.BigEndian.AppendUint64(dst, uint64(row))
}

func parseLightKey(key []byte) (topic string, row int64, ok bool) {
	if len(key) < 9 || key[len(key)-9] != 0 {
		return "", 0, false
	}
	return string(key[:len(key)-9]), int64(binary.BigEndian.Uint64(key[len(key)-8:])), true
}

// isLight reports whether a queue of this topic is a light one here.
func (s *Store) isLight(topic string) bool { return s.opt.Lights != nil && names.IsLite(topic) }

// row gives a row's entries; none when it is not there.
func (s *Store) row(topic string, row int64) ([]byte, error) {
	return s.opt.Lights.Get(lightKey(make([]byte, 0, len(topic)+9), topic, row))
}

// readLight appends the entries [from, to), which are in the database, to dst.
func (v *view) readLight(dst []Entry, from, to int64) ([]Entry, error) {
	for from < to {
		row, err := v.q.store.row(v.q.Topic.Name, from/rowEntries)
		if err != nil {
			return dst, err
		}
		at := int(from%rowEntries) * EntrySize
		if at+EntrySize > len(row) {
			return dst, segment.ErrNoFile
		}
		for ; from < to && at+EntrySize <= len(row); at += EntrySize {
			dst = append(dst, DecodeEntry(row[at:]))
			from++
			if from%rowEntries == 0 {
				break
			}
		}
	}
	return dst, nil
}

// flushLight puts the entries that are in memory only into rows and reports whether there
// were any. They are let go of by flushedLight, once that is committed.
func (q *Queue) flushLight(put func(key, row []byte)) (end int64, any bool, err error) {
	q.mu.Lock()
	q.mu.dirty = false
	at, end, gone := q.mu.flushed, q.mu.max, q.mu.gone
	tail := q.mu.tail[(at-q.mu.first)*EntrySize : (end-q.mu.first)*EntrySize]
	q.mu.Unlock()
	if gone || at == end {
		return end, false, nil
	}
	for at < end {
		var row []byte
		if n := int(at%rowEntries) * EntrySize; n > 0 {
			if row, err = q.store.row(q.Topic.Name, at/rowEntries); err != nil {
				return end, false, err
			}
			if len(row) < n {
				return end, false, fmt.Errorf("light queue %s: row %d has %d bytes, not %d", q.Topic.Name, at/rowEntries, len(row), n)
			}
			row = row[:n]
		}
		n := min(rowEntries-at%rowEntries, end-at) * EntrySize
		row = append(row, tail[:n]...)
		put(lightKey(nil, q.Topic.Name, at/rowEntries), row)
		tail = tail[n:]
		at += n / EntrySize
	}
	return end, true, nil
}

// flushedLight lets go of the entries before end: they are in the database now.
func (q *Queue) flushedLight(end int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.gone || end < q.mu.first || end > q.mu.max {
		return // it has begun anew meanwhile
	}
	q.mu.flushed = end
	rest := q.mu.tail[(end-q.mu.first)*EntrySize:]
	q.mu.first, q.mu.tail = end, append([]byte(nil), rest...)
}

// flushLights writes the light queues of a flush, all of them together.
func (s *Store) flushLights(queues []*Queue) (err error) {
	ends := make([]int64, len(queues))
	for _, q := range queues {
		q.flushing.Lock()
		defer q.flushing.Unlock()
	}
	var failed error
	written := false
	err = s.opt.Lights.Write(func(put func(key, row []byte), _, _ func([]byte)) {
		for i, q := range queues {
			end, any, err := q.flushLight(put)
			if ends[i] = end; !any {
				ends[i] = -1
			}
			written = written || any
			failed = errors.Join(failed, err)
		}
	})
	if err = errors.Join(err, failed); err != nil {
		for _, q := range queues {
			q.retry()
		}
		return err
	}
	for i, q := range queues {
		if ends[i] >= 0 {
			q.flushedLight(ends[i])
		}
	}
	s.unsynced.Lock()
	s.unsynced.lights = s.unsynced.lights || written
	s.unsynced.Unlock()
	return nil
}

// again begins a new life of a light queue: what it held goes.
func (q *Queue) again() error {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	if err := q.store.dropRows(q.Topic.Name); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.first, q.mu.flushed, q.mu.max, q.mu.lowest, q.mu.min, q.mu.minFor, q.mu.last = 0, 0, 0, 0, 0, 0, 0
	q.mu.tail = nil
	return nil
}

// Again makes the entry at the first of a new life of a light queue, where it has a lower
// number than the last one and lies further in the log.
func (q *Queue) Again(at, physical int64) error {
	if !q.light || at >= q.Max() {
		return nil
	}
	v := q.view()
	last, err := v.entry(v.max - 1)
	if err != nil || last.Physical >= physical {
		return err
	}
	return q.again()
}

func (s *Store) dropRows(topic string) error {
	return s.opt.Lights.Write(func(_ func(key, row []byte), _, removeAll func([]byte)) {
		removeAll(append([]byte(topic), 0))
	})
}

// DropLights forgets all light queues, and reports whether there were any: another server
// has written the log since.
func (s *Store) DropLights() (any bool, err error) {
	if s.opt.Lights == nil {
		return false, nil
	}
	errSome := errors.New("there are some")
	switch err := s.opt.Lights.Scan(nil, func(_, _ []byte) error { return errSome }); {
	case errors.Is(err, errSome):
		return true, s.DeleteLights("")
	default:
		return false, err
	}
}

// DeleteLights removes the light queues whose names begin with prefix.
func (s *Store) DeleteLights(prefix string) error {
	s.EachLight(prefix, func(q *Queue) bool {
		s.forgetLight(q.Topic.Name)
		return true
	})
	if s.opt.Lights == nil {
		return nil
	}
	return s.opt.Lights.Write(func(_ func(key, row []byte), _, removeAll func([]byte)) { removeAll([]byte(prefix)) })
}

// LoadLights finds the light queues in the database. Entries that point to trusted or
// beyond, and those of an earlier topic of their parent's name, are taken out.
func (s *Store) LoadLights(trusted int64, birth func(topic string) int64) error {
	if s.opt.Lights == nil {
		return nil
	}
	var failed error
	err := s.opt.Lights.Write(func(put func(key, row []byte), remove, _ func([]byte)) {
		var last *Queue
		failed = s.opt.Lights.Scan(nil, func(key, row []byte) error {
			if last == nil || string(key[:len(key)-8]) != last.Topic.Name+"\x00" {
				topic, _, ok := parseLightKey(key)
				parent, _, named := names.OfLite(topic)
				if !ok || !named || birth(parent) > 0 && birth(parent) >= trusted {
					remove(key)
					return nil
				}
				last = s.Make(topic, 0)
			}
			switch n := last.loadRow(key, row, trusted); {
			case n == 0:
				remove(key)
			case n < len(row):
				put(key, row[:n])
			}
			return nil
		})
	})
	return errors.Join(err, failed)
}

// loadRow takes a row of the queue and returns how many bytes of it are trusted.
func (q *Queue) loadRow(key, row []byte, trusted int64) int {
	first := int64(binary.BigEndian.Uint64(key[len(key)-8:])) * rowEntries
	n := sort.Search(len(row)/EntrySize, func(i int) bool {
		e := DecodeEntry(row[i*EntrySize:])
		return e.Size <= 0 || e.Physical < 0 || e.Physical >= trusted
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.minFor == 0 && n > 0 { // the first row
		q.mu.lowest, q.mu.max = first, first
	}
	q.mu.minFor = -1
	if q.mu.max != first {
		return 0 // a row is missing before it, or the end of that one was not trusted
	}
	q.mu.max += int64(n)
	q.mu.flushed, q.mu.first = q.mu.max, q.mu.max
	return n * EntrySize
}

// removeLight removes the rows whose records are all gone from the log, but for the last.
func (q *Queue) removeLight(logMin int64) error {
	first := q.Min(logMin)
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	low, high := q.mu.lowest/rowEntries, min(first, q.mu.max-1, q.mu.flushed)/rowEntries
	gone := q.mu.gone
	q.mu.Unlock()
	if gone || low >= high {
		return nil
	}
	err := q.store.opt.Lights.Write(func(_ func(key, row []byte), remove, _ func([]byte)) {
		for row := low; row < high; row++ {
			remove(lightKey(nil, q.Topic.Name, row))
		}
	})
	if err != nil {
		return err
	}
	q.mu.Lock()
	q.mu.lowest = high * rowEntries
	q.mu.Unlock()
	return nil
}

// foreignLights removes the folders that another server has for queues that are light here, or
// that were written for one, and reports whether there were any: the log says what is in them.
func (s *Store) foreignLights(folder string) (bool, error) {
	if !s.isLight(folder) {
		return false, nil
	}
	fs := s.opt.Pool.FS()
	err := fs.RemoveAll(fs.PathJoin(s.opt.Dir, folder))
	if oserror.IsNotExist(err) {
		err = nil
	}
	return true, err
}

// ExportLights writes the light queues as files for another server, which has no others. This
// one removes them when it starts, see foreignLights.
func (s *Store) ExportLights() (err error) {
	any := false
	s.EachLight("", func(q *Queue) bool {
		if q.Max() == 0 {
			return true
		}
		any, err = true, q.export()
		return err == nil
	})
	if err != nil || !any {
		return err
	}
	_, err = segment.SyncFileSystem(s.opt.Pool.FS(), s.opt.Dir)
	return err
}

// export writes one light queue.
func (q *Queue) export() error {
	set, err := segment.OpenSet(q.store.opt.Pool, q.store.dir(q.Topic.Name, q.ID), q.store.fileSize())
	if err != nil {
		return err
	}
	defer set.Close()
	at, end, perFile := q.First(), q.Max(), int64(q.store.opt.FileEntries)
	var entries []Entry
	var data []byte
	for at < end {
		base := at - at%perFile
		if entries, err = q.Entries(entries[:0], at, int(min(end, base+perFile)-at)); err != nil {
			return fmt.Errorf("light queue %s: %w", q.Topic.Name, err)
		}
		data = data[:0]
		for range at - base { // of the first file
			data = AppendEntry(data, Filler)
		}
		for _, e := range entries {
			data = AppendEntry(data, e)
		}
		if err := set.Create(base*EntrySize, false); err != nil {
			return err
		}
		if err := set.WriteAt(data, base*EntrySize); err != nil {
			return fmt.Errorf("writing light queue %s: %w", q.Topic.Name, err)
		}
		at = base + perFile
	}
	return nil
}

// EachLight calls f for the light queues whose names begin with prefix, in no order, until
// it returns false.
func (s *Store) EachLight(prefix string, f func(*Queue) bool) {
	s.mu.RLock()
	queues := make([]*Queue, 0, len(s.mu.lights))
	for name, q := range s.mu.lights {
		if strings.HasPrefix(name, prefix) {
			queues = append(queues, q)
		}
	}
	s.mu.RUnlock()
	for _, q := range queues {
		if !f(q) {
			return
		}
	}
}

// Lights is the number of queues that messages get into beside their own: light ones, and
// those with a light queue's name that have files.
func (s *Store) Lights() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.mu.lights) + s.mu.filed
}

// deleteLight removes one light queue.
func (s *Store) deleteLight(topic string) error {
	s.forgetLight(topic)
	return s.dropRows(topic)
}

func (s *Store) forgetLight(topic string) {
	s.mu.Lock()
	q := s.mu.lights[topic]
	delete(s.mu.lights, topic)
	s.mu.Unlock()
	if q == nil {
		return
	}
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.gone = true
	q.mu.tail = nil
	q.mu.first, q.mu.flushed, q.mu.max, q.mu.min, q.mu.lowest, q.mu.last = 0, 0, 0, 0, 0, 0
}

// Stored notes when the last record of a light queue was stored, if the queue still ends at end.
func (q *Queue) Stored(end, ms int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.max == end {
		q.mu.last = ms
	}
}

// Last is the end of a light queue and when its last record was stored; 0: not known.
func (q *Queue) Last() (end, ms int64) {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.mu.max, q.mu.last
}

// checkLight compares what the database has with what the queue is.
func (q *Queue) checkLight() error {
	v := q.view()
	var have int64 = -1
	err := q.store.opt.Lights.Scan(append([]byte(q.Topic.Name), 0), func(key, row []byte) error {
		_, at, _ := parseLightKey(key)
		have = at*rowEntries + int64(len(row)/EntrySize)
		return nil
	})
	if err == nil && have > v.first {
		err = errors.New("it is longer there")
	}
	if err != nil {
		return fmt.Errorf("light queue %s has %d entries, %d of them in the database: %w", q.Topic.Name, v.max, v.first, err)
	}
	return nil
}

package consumequeue

import (
	"errors"
	"sort"
	"strconv"

	"github.com/cockroachdb/errors/oserror"

	"github.com/bolidemq/bolide/internal/storage/segment"
)

// Load reads what the folder holds. Entries that point to trusted or beyond, with all
// that follows them, are not taken: the log says them again. The folder of a topic whose
// birth lies at or after trusted is of an earlier topic of that name: it is not read, and
// goes when the topic gets its first queue. expected says where a queue probably ends,
// which saves the search. It returns the queues whose files do not fit
// together; they are empty and their files removed, and the log has to say all of them.
func (s *Store) Load(trusted int64, birth func(topic string) int64, expected func(topic string, id int32) int64) (damaged []*Queue, err error) {
	fs := s.opt.Pool.FS()
	topics, err := fs.List(s.opt.Dir)
	if oserror.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sort.Strings(topics)
	for _, topic := range topics {
		if foreign, err := s.foreignLights(topic); foreign || err != nil {
			if s.Foreign = true; err != nil {
				return nil, err
			}
			continue
		}
		born := birth(topic)
		if born > 0 && born >= trusted {
			s.mu.Lock()
			s.mu.stale[topic] = true
			s.mu.Unlock()
			continue
		}
		ids, err := fs.List(fs.PathJoin(s.opt.Dir, topic))
		if err != nil {
			if info, statErr := fs.Stat(fs.PathJoin(s.opt.Dir, topic)); statErr == nil && !info.IsDir() {
				continue
			}
			return nil, err
		}
		for _, name := range ids {
			id, err := strconv.ParseInt(name, 10, 32)
			if err != nil || strconv.FormatInt(id, 10) != name {
				continue
			}
			q := s.Make(topic, int32(id))
			sound, err := q.load(trusted, born, expected(topic, int32(id)))
			if err != nil {
				return nil, err
			}
			if !sound {
				if err := q.Reset(); err != nil {
					return nil, err
				}
				damaged = append(damaged, q)
			}
		}
	}
	return damaged, nil
}

// load finds the end of the queue in its files.
func (q *Queue) load(trusted, born, expected int64) (sound bool, err error) {
	fs := q.store.opt.Pool.FS()
	set, err := segment.OpenSet(q.store.opt.Pool, q.store.dir(q.Topic.Name, q.ID), q.store.fileSize())
	if err != nil {
		if info, statErr := fs.Stat(q.store.dir(q.Topic.Name, q.ID)); statErr == nil && !info.IsDir() {
			return false, nil
		}
		return false, err
	}
	q.mu.Lock()
	q.mu.set = set
	q.mu.Unlock()
	files := set.Files()
	if len(files) == 0 {
		return true, nil
	}
	for i, f := range files {
		size, err := f.Size()
		if err != nil {
			return false, err
		}
		wrongSize := size != set.FileSize() && i < len(files)-1
		if wrongSize || size > set.FileSize() || f.Base%set.FileSize() != 0 || (i > 0 && f.Base != files[i-1].Base+set.FileSize()) {
			return false, nil
		}
	}
	// A power cut may lose the first file and keep a later one: a queue that begins behind 0
	// is believed only where its beginning is trusted.
	if files[0].Base > 0 {
		e, err := readEntry(set, files[0].Base/EntrySize)
		if err != nil && !errors.Is(err, segment.ErrNoFile) {
			return false, err
		}
		if err != nil || e.Size <= 0 || e.Physical >= trusted {
			return false, nil
		}
	}
	end, err := q.findEnd(set, trusted, expected)
	if err != nil {
		return false, err
	}
	if sound, err = q.ends(set, end, born); !sound {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.max, q.mu.flushed, q.mu.first = end, end, end
	q.mu.min, q.mu.minFor = 0, -1
	return true, nil
}

// ends reports whether the first and the last entry of every file are there: the ones
// that a file which was zeroed, or is of an earlier topic of this name, has not.
func (q *Queue) ends(set *segment.Set, end, born int64) (bool, error) {
	perFile := set.FileSize() / EntrySize
	for _, f := range set.Files() {
		first := f.Base / EntrySize
		if first >= end {
			break
		}
		for _, at := range []int64{first, min(first+perFile, end) - 1} {
			e, err := readEntry(set, at)
			if err != nil {
				return false, err
			}
			if e.Size <= 0 || (e.Physical < born && !e.IsFiller()) {
				return false, nil
			}
		}
	}
	return true, nil
}

// findEnd is the number of the first entry that is not to be trusted. Trusted entries
// have no such entry before them, which makes both searches sound.
func (q *Queue) findEnd(set *segment.Set, trusted, expected int64) (int64, error) {
	var failed error
	good := func(at int64) bool {
		e, err := readEntry(set, at)
		if err != nil && !errors.Is(err, segment.ErrNoFile) { // which says: the file is short
			failed = err
		}
		return err == nil && e.Size > 0 && e.Physical >= 0 && e.Physical < trusted
	}
	files := set.Files()
	if expected > 0 && good(expected-1) && !good(expected) && failed == nil {
		return expected, nil
	}
	i := len(files) - 1
	for ; i >= 0; i-- {
		if good(files[i].Base / EntrySize) {
			break
		}
	}
	if i < 0 {
		return files[0].Base / EntrySize, failed
	}
	first := files[i].Base / EntrySize
	n := sort.Search(int(set.FileSize()/EntrySize), func(n int) bool { return !good(first + int64(n)) })
	return first + int64(n), failed
}

// Cut zeroes what the files hold behind the last entry, so that it can never be taken
// for entries again, and makes that durable. What they hold in the place of entries that
// are in memory only is overwritten by the next Flush.
func (q *Queue) Cut() (int64, error) {
	if q.light {
		return 0, nil
	}
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.RLock()
	set, end := q.mu.set, q.mu.max
	q.mu.RUnlock()
	if err := set.Grow(); err != nil {
		return 0, err
	}
	return set.ZeroFrom(end * EntrySize)
}

// Replay is Append while the log is read again. verify compares an entry that is there
// with the one that the log says; one that differs, or a gap, makes the queue Broken.
func (q *Queue) Replay(at int64, e Entry, verify bool) error {
	v := q.view()
	if verify && at < v.max && at >= v.firstStored() {
		have, err := v.entry(at)
		if err != nil {
			return err
		}
		if have != e {
			q.broken = true
			return &Gap{Topic: q.Topic.Name, ID: q.ID, Max: v.max, Got: at}
		}
		return nil
	}
	if q.broken {
		return nil
	}
	err := q.Append(at, e)
	q.broken = err != nil
	return err
}

// Broken reports whether Replay met a contradiction.
func (q *Queue) Broken() bool { return q.broken }

// Continue makes the queue go on at number at: with fillers where it has none of the
// entries before.
func (q *Queue) Continue(at int64) {
	if q.Max() == 0 {
		q.Begin(at)
		return
	}
	q.Fill(at)
}

// Reset removes the queue's files and makes it empty.
func (q *Queue) Reset() error {
	if q.light {
		q.broken = false
		return q.again()
	}
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.first, q.mu.flushed, q.mu.max, q.mu.min, q.mu.minFor = 0, 0, 0, 0, 0
	q.mu.tail = nil
	q.broken = false
	set := q.mu.set
	q.mu.set = segment.NewSet(q.store.opt.Pool, set.Dir(), set.FileSize())
	set.Forget()
	fs := q.store.opt.Pool.FS()
	if err := fs.RemoveAll(set.Dir()); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	if err := segment.SyncDir(fs, fs.PathDir(set.Dir())); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
}

// Drop forgets the entries that point to physical or beyond, and says whether there were
// any; Cut makes it so on disk.
func (q *Queue) Drop(physical int64) (bool, error) {
	v := q.view()
	at, err := v.search(physical)
	if err != nil {
		return false, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if at >= q.mu.max {
		return false, nil
	}
	q.mu.max = at
	if at < q.mu.first {
		q.mu.first, q.mu.tail = at, nil
	} else {
		q.mu.tail = append([]byte(nil), q.mu.tail[:(at-q.mu.first)*EntrySize]...)
	}
	q.mu.flushed = min(q.mu.flushed, at)
	q.mu.minFor = -1
	return true, nil
}

// Fill puts fillers where entries are missing before number at: the log itself has lost
// them.
func (q *Queue) Fill(at int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.mu.max < at {
		q.mu.tail = AppendEntry(q.mu.tail, Filler)
		q.mu.max++
	}
	if !q.mu.dirty {
		q.mu.dirty = true
		q.store.markDirty(q)
	}
}

// Dirty reports whether the files hold anything behind the entries that were written.
func (q *Queue) Dirty() (bool, error) {
	if q.light {
		return false, q.checkLight()
	}
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.RLock()
	set, end := q.mu.set, q.mu.max*EntrySize
	q.mu.RUnlock()
	dirty, err := set.Dirty(end)
	return dirty > end, err
}

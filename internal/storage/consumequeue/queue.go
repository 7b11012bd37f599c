package consumequeue

import (
	"fmt"
	"sort"
	"sync"

	"github.com/cockroachdb/errors/oserror"

	"github.com/bolidemq/bolide/internal/storage/segment"
)

// keepEntries is how many of the newest entries of a busy queue stay in memory for those
// who read at the end.
const keepEntries = 512

// Queue is the entries of one queue. An idle one costs its struct and no open file.
//
// mu guards everything in mu and is held for memory operations, and for reads of files;
// flushing guards the writes to files and is taken before mu.
type Queue struct {
	Topic *Topic
	ID    int32
	// Next is the offset that the next record of the queue gets. It is guarded by the
	// log's mutex, under which offsets are given out.
	Next int64

	store    *Store
	light    bool // see light.go
	broken   bool // recovery's: Replay met a contradiction
	flushing sync.Mutex
	mu       struct {
		sync.RWMutex
		set     *segment.Set // nil for a light queue
		lowest  int64        // of a light queue: number of the first entry in the database
		min     int64        // first entry whose record is still in the log, as of minFor
		minFor  int64        // the log's first offset that min was found for
		max     int64        // entries there are
		last    int64        // of a light queue: store time of the last record; 0: not known
		flushed int64        // entries that are in files
		first   int64        // number of the first entry of tail
		tail    []byte       // newest entries; bytes once written never change
		dirty   bool         // in the store's dirty list
		idle    bool         // nothing was appended since the last flush
		fresh   bool         // the folder or a file is new since the last sync
		gone    bool         // the topic was deleted
	}
}

// Max is the number of entries: the offset of the next one.
func (q *Queue) Max() int64 {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.mu.max
}

// First is the number of the oldest entry that is stored.
func (q *Queue) First() int64 {
	v := q.view()
	return v.firstStored()
}

// Gap says that an entry came that is not the next one.
type Gap struct {
	Topic    string
	ID       int32
	Max, Got int64
	Physical int64 // log offset that the last entry points to
}

// Error names the queue and the two offsets.
func (g *Gap) Error() string {
	return fmt.Sprintf("queue %s/%d has %d entries and got number %d", g.Topic, g.ID, g.Max, g.Got)
}

// Append adds the entry of number at. One that is there already is ignored, so that the
// log may be replayed; one that would leave a gap is refused, unless the queue is empty:
// then it begins there.
func (q *Queue) Append(at int64, e Entry) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.gone {
		return nil
	}
	if at != q.mu.max {
		if at < q.mu.max {
			return nil
		}
		if q.mu.max != 0 {
			v := q.viewLocked()
			last, _ := v.entry(q.mu.max - 1)
			return &Gap{Topic: q.Topic.Name, ID: q.ID, Max: q.mu.max, Got: at, Physical: last.Physical}
		}
		q.beginLocked(at)
	}
	q.mu.tail = AppendEntry(q.mu.tail, e)
	q.mu.max++
	q.mu.last = 0 // until Stored says it: what is new is never taken for old
	q.mu.idle = false
	if !q.mu.dirty {
		q.mu.dirty = true
		q.store.markDirty(q)
	}
	return nil
}

// Begin makes an empty queue start at number at, with fillers before it.
func (q *Queue) Begin(at int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.max != 0 || at == 0 {
		return
	}
	q.beginLocked(at)
	if !q.mu.dirty {
		q.mu.dirty = true
		q.store.markDirty(q)
	}
}

func (q *Queue) beginLocked(at int64) {
	perFile := int64(q.store.opt.FileEntries)
	if q.light {
		perFile = rowEntries
	}
	first := at - at%perFile
	if q.light {
		q.mu.lowest = first
	} else if files := q.mu.set.Files(); len(files) > 0 && files[0].Base != first*EntrySize {
		// Files without entries, left by a crash or by damage. Where one can't be removed, the
		// next start finds that it does not fit and makes the queue anew.
		_ = q.mu.set.RemoveFrom(0)
	}
	q.mu.first, q.mu.flushed, q.mu.max = first, first, at
	q.mu.min, q.mu.minFor = at, 0
	q.mu.tail = nil
	for range at - first {
		q.mu.tail = AppendEntry(q.mu.tail, Filler)
	}
}

// view is a queue at one moment. Its bytes do not change, so it is read without a lock.
type view struct {
	q          *Queue
	set        *segment.Set
	lowest     int64
	first, max int64
	tail       []byte
}

func (q *Queue) view() view {
	q.mu.RLock()
	defer q.mu.RUnlock()
	return q.viewLocked()
}

func (q *Queue) viewLocked() view {
	return view{q: q, set: q.mu.set, lowest: q.mu.lowest, first: q.mu.first, max: q.mu.max, tail: q.mu.tail}
}

// Entries appends up to n entries from number from on to dst.
func (q *Queue) Entries(dst []Entry, from int64, n int) ([]Entry, error) {
	v := q.view()
	to := min(from+int64(n), v.max)
	if from < v.first && from < to {
		var err error
		end := min(to, v.first)
		if dst, err = v.read(dst, from, end); err != nil {
			return dst, err
		}
		from = end
	}
	for ; from < to; from++ {
		dst = append(dst, DecodeEntry(v.tail[(from-v.first)*EntrySize:]))
	}
	return dst, nil
}

var readPool = sync.Pool{New: func() any { b := make([]byte, 800*EntrySize); return &b }}

func (v *view) read(dst []Entry, from, to int64) ([]Entry, error) {
	if v.q.light {
		return v.readLight(dst, from, to)
	}
	pooled := readPool.Get().(*[]byte)
	defer readPool.Put(pooled)
	for from < to {
		p := (*pooled)[:min(int64(len(*pooled)), (to-from)*EntrySize)]
		n, err := v.set.ReadAt(p, from*EntrySize)
		if err != nil {
			return dst, err
		}
		if n < EntrySize {
			return dst, segment.ErrNoFile
		}
		for i := 0; i+EntrySize <= n; i += EntrySize {
			dst = append(dst, DecodeEntry(p[i:]))
			from++
		}
	}
	return dst, nil
}

func (v *view) entry(at int64) (Entry, error) {
	if at >= v.first {
		return DecodeEntry(v.tail[(at-v.first)*EntrySize:]), nil
	}
	if v.q.light {
		e, err := v.readLight(nil, at, at+1)
		if err != nil {
			return Entry{}, err
		}
		return e[0], nil
	}
	return readEntry(v.set, at)
}

func readEntry(set *segment.Set, at int64) (Entry, error) {
	var p [EntrySize]byte
	n, err := set.ReadAt(p[:], at*EntrySize)
	if err == nil && n < EntrySize {
		err = segment.ErrNoFile
	}
	return DecodeEntry(p[:]), err
}

// Entry is one entry; false when it is not there.
func (q *Queue) Entry(at int64) (Entry, bool, error) {
	v := q.view()
	if at < v.firstStored() || at >= v.max {
		return Entry{}, false, nil
	}
	e, err := v.entry(at)
	return e, err == nil && !e.IsFiller(), err
}

// Mend replaces an entry that is damaged in its file, and reports whether it did: not what is in
// memory, which the file's damage does not touch. Nobody waits until it is durable: what a power cut
// takes of it is found to be damaged again.
func (q *Queue) Mend(at int64, e Entry) (bool, error) {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	set, filed := q.mu.set, at < q.mu.first
	q.mu.Unlock()
	if !filed {
		return false, nil
	}
	if err := set.WriteAt(AppendEntry(nil, e), at*EntrySize); err != nil {
		return false, fmt.Errorf("putting entry %d of queue %s/%d right: %w", at, q.Topic.Name, q.ID, err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.minFor = -1 // it may have been found with the damage
	return true, nil
}

// Min is the number of the first entry whose record lies at or after logMin, the
// number of entries when there is none.
func (q *Queue) Min(logMin int64) int64 {
	q.mu.RLock()
	lowest, known, v := q.mu.min, q.mu.minFor == logMin, q.viewLocked()
	q.mu.RUnlock()
	if known {
		return lowest
	}
	found, err := v.search(logMin)
	if err != nil {
		return lowest
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	// An entry that was appended meanwhile lies behind logMin too, and found is then
	// its number or less.
	if logMin >= q.mu.minFor {
		q.mu.min, q.mu.minFor = found, logMin
	}
	return found
}

// firstStored is the number of the oldest entry that a file or memory holds.
func (v *view) firstStored() int64 {
	if v.q.light {
		return min(v.lowest, v.first)
	}
	if files := v.set.Files(); len(files) > 0 {
		return min(files[0].Base/EntrySize, v.first)
	}
	return v.first
}

// search is the number of the first entry whose record lies at physical or behind it. An entry
// that is damaged may say anything of itself: what the search finds is asked of the neighbours,
// and where one of them says otherwise, the search goes on behind the entry that misled it.
func (v *view) search(physical int64) (int64, error) {
	var failed error
	behind := func(at int64) bool {
		e, err := v.entry(at)
		for ; err == nil && e.Size <= 0 && at+1 < v.max; e, err = v.entry(at) {
			at++ // of what was wiped out nothing is known but that it lies before the next one
		}
		if err != nil {
			failed = err
		}
		// No offset is negative: such an entry is damaged, and not of a record that is gone.
		return err != nil || (e.Size <= 0 || uint64(e.Physical) >= uint64(physical) && !e.IsFiller())
	}
	low, high := v.firstStored(), v.max
	for {
		at := low + int64(sort.Search(int(high-low), func(i int) bool { return behind(low + int64(i)) }))
		switch {
		case failed != nil:
			return at, failed
		case at-2 >= low && behind(at-2):
			high = at - 2
		case at+1 < high && !behind(at+1) && (at+2 >= high || !behind(at+2)):
			low = at + 2
		default:
			return at, failed
		}
	}
}

// flush writes the entries that are in memory only. from is the first byte written.
func (q *Queue) flush() (from int64, wrote bool, err error) {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	q.mu.dirty = false
	idle := q.mu.idle
	q.mu.idle = true
	at, end := q.mu.flushed, q.mu.max
	gone, set := q.mu.gone, q.mu.set
	defer func() {
		if err != nil {
			q.retry()
		}
	}()
	var data []byte
	if at < end {
		data = q.mu.tail[(at-q.mu.first)*EntrySize : (end-q.mu.first)*EntrySize]
	}
	q.mu.Unlock()
	if gone {
		return 0, false, nil
	}
	from = at * EntrySize
	for off := from; len(data) > 0; {
		base := set.Base(off)
		if !set.Has(off) {
			if err := set.Create(base, false); err != nil {
				return from, off > from, err
			}
			q.mu.Lock()
			q.mu.fresh = true
			q.mu.Unlock()
		}
		n := min(int64(len(data)), base+set.FileSize()-off)
		if err := set.WriteAt(data[:n], off); err != nil {
			return from, off > from, fmt.Errorf("writing queue %s/%d: %w", q.Topic.Name, q.ID, err)
		}
		off += n
		data = data[n:]
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.flushed = end
	q.trimLocked(idle)
	if !idle && !q.mu.dirty {
		// Come by once more, to drop the tail when nothing happens.
		q.mu.dirty = true
		q.store.markDirty(q)
	}
	return from, at < end, nil
}

// retry puts a queue whose flush has failed back into the store's dirty list, once: an
// append may have done so meanwhile.
func (q *Queue) retry() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.mu.dirty {
		q.mu.dirty = true
		q.store.markDirty(q)
	}
}

// trimLocked lets go of entries that are in a file: all of an idle queue's, all but the
// newest of a busy one's.
func (q *Queue) trimLocked(idle bool) {
	keep := int64(keepEntries)
	if idle && q.mu.idle {
		keep = 0
	}
	have := q.mu.max - q.mu.first
	if keep > 0 && have <= 2*keep {
		return
	}
	first := max(q.mu.first, min(q.mu.max-keep, q.mu.flushed))
	var rest []byte
	if n := q.mu.max - first; n > 0 {
		rest = make([]byte, n*EntrySize, (n+keepEntries)*EntrySize)
		copy(rest, q.mu.tail[(first-q.mu.first)*EntrySize:])
	}
	q.mu.first, q.mu.tail = first, rest
}

func (q *Queue) sync(from int64) (fresh bool, err error) {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	gone, set, end := q.mu.gone, q.mu.set, q.mu.flushed*EntrySize
	fresh = q.mu.fresh
	q.mu.fresh = false
	q.mu.Unlock()
	if gone {
		return false, nil
	}
	err = set.Sync(from, max(end, from+1))
	if err == nil && fresh {
		if err = segment.SyncDir(q.store.opt.Pool.FS(), set.Dir()); oserror.IsNotExist(err) {
			err = nil
		}
	}
	if err != nil && fresh {
		q.mu.Lock()
		q.mu.fresh = true
		q.mu.Unlock()
	}
	return fresh, err
}

func (q *Queue) removeBefore(logMin int64) error {
	q.mu.RLock()
	several := len(q.mu.set.Files()) > 1
	q.mu.RUnlock()
	if !several {
		return nil
	}
	first := q.Min(logMin)
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.gone {
		return nil
	}
	_, err := q.mu.set.RemoveBefore(first*EntrySize, len(q.mu.set.Files()))
	return err
}

// discard lets go of everything: the topic is being deleted.
func (q *Queue) discard() {
	q.flushing.Lock()
	defer q.flushing.Unlock()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.gone = true
	q.mu.set.Forget()
	q.mu.tail = nil
	q.mu.first, q.mu.flushed, q.mu.max, q.mu.min = 0, 0, 0, 0
}

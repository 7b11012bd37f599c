// Package keyindex is the hash index from message keys to log offsets, in Apache's file
// format.
//
// Invariants: written by the dispatcher alone; all keys of a record are in one file; a
// file's header counts only entries and slots that were synced before it; rebuilt from
// its entries and from the log where it is behind or damaged. Neighbours: storage.
package keyindex

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"sync"
	"time"

	"github.com/cockroachdb/errors/oserror"

	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Options is what an index needs.
type Options struct {
	Pool    *segment.Pool
	Dir     string
	Slots   int // of a file
	Entries int // of a file; number 0 is never used
	// SyncLog makes the log durable as far as the index knows it. It is called before a
	// header counts entries: an index that is ahead of the log after a power cut would take
	// the records that then get the same offsets for ones that it has. May be nil.
	SyncLog func() error
}

// Index is all index files, the newest of which grows.
//
// mu guards the list and the newest file's memory and is never held for file work;
// flushing is held for the whole of a Flush.
type Index struct {
	opt      Options
	flushing sync.Mutex
	mu       struct {
		sync.RWMutex
		files []*file // oldest first
	}
}

// Hash is the hash of a key of a topic, given the hash of the topic's name and a #: as
// Java hashes the joined string, without its sign.
func Hash(topicHash int32, key string) int32 {
	h := topicHash
	for i := 0; i < len(key); i++ {
		if key[i] >= 0x80 {
			return positive(hashWide(topicHash, key))
		}
		h = 31*h + int32(key[i])
	}
	return positive(h)
}

// hashWide hashes text outside ASCII, which Java holds in units of 16 bits:
// hash(a+b) = hash(a)·31^units(b) + hash(b).
func hashWide(h int32, key string) int32 {
	for _, r := range key {
		if r >= 0x10000 {
			h = 31*h + 0xD800 + (r-0x10000)>>10
			h = 31*h + 0xDC00 + (r-0x10000)&0x3FF
			continue
		}
		h = 31*h + r
	}
	return h
}

func positive(h int32) int32 {
	if h == math.MinInt32 {
		return 0
	}
	if h < 0 {
		return -h
	}
	return h
}

// TopicHash is what Hash wants to know of a topic.
func TopicHash(topic string) int32 { return message.JavaHash(topic + "#") }

// Open is the index over a folder; Load reads what is there.
func Open(o Options) *Index { return &Index{opt: o} }

func (x *Index) size() int64 {
	return headerSize + int64(x.opt.Slots)*slotSize + int64(x.opt.Entries)*entrySize
}

// FileInfo says how far a file of the index was when it was last made durable.
type FileInfo struct {
	Name  string
	Count int32
	Last  int64 // log offset of the last entry
}

// Load reads the folder. known are the files that have to be there, oldest first, unless
// all their records lie before logMin, nil when that is not known; the first file that is missing or unsound is removed with all later ones. clean says that
// the slots need no look. It returns the log offset behind which records have to be put
// in again: those up to it, inclusive, are there; -1 when all have to.
func (x *Index) Load(known []FileInfo, logMin int64, clean bool) (last int64, removed []string, err error) {
	fs := x.opt.Pool.FS()
	names, err := fs.List(x.opt.Dir)
	if err != nil && !oserror.IsNotExist(err) {
		return 0, nil, err
	}
	names = fileNames(names)
	want := map[string]FileInfo{}
	for _, k := range known {
		want[k.Name] = k
	}
	good := len(names)
	for i, name := range names {
		f := x.newFile(name)
		sound, err := f.load()
		if err != nil {
			return 0, nil, err
		}
		k, ok := want[name]
		if ok && (f.head.count < k.Count || f.head.lastOffset < k.Last) {
			sound = false
		}
		if !sound || missingBefore(known, names, i, logMin) {
			good = i
			break
		}
		x.mu.files = append(x.mu.files, f)
	}
	if good == len(names) {
		// All that are there are sound; perhaps the newest are not there at all.
		for _, k := range known {
			if k.Last >= logMin && (good == 0 || k.Name > names[good-1]) {
				removed = append(removed, k.Name)
			}
		}
	}
	for _, name := range names[good:] {
		if known == nil || (len(known) > 0 && known[len(known)-1].Name >= names[good]) {
			removed = append(removed, name)
		}
		// Otherwise it was begun after the last checkpoint, and a crash came before it was
		// whole: its records are read again anyway.
		if err := x.newFile(name).Remove(); err != nil {
			return 0, nil, err
		}
	}
	if len(x.mu.files) == 0 {
		return -1, removed, nil
	}
	newest := x.mu.files[len(x.mu.files)-1]
	if !clean {
		if err := newest.repairSlots(); err != nil {
			return 0, nil, err
		}
	}
	return newest.head.lastOffset, removed, nil
}

// DropNewerThan removes the files whose last entry is younger than ms: what Apache
// RocketMQ does after its own crash, when nothing better is known.
func (x *Index) DropNewerThan(ms int64) (last int64, err error) {
	n := len(x.mu.files)
	for n > 0 && x.mu.files[n-1].head.lastTime > ms {
		n--
	}
	for _, f := range x.mu.files[n:] {
		if err := f.Remove(); err != nil {
			return 0, err
		}
	}
	x.mu.files = x.mu.files[:n]
	if n == 0 {
		return -1, nil
	}
	return x.mu.files[n-1].head.lastOffset, nil
}

// missingBefore reports whether a known file should stand before names[i] and does not.
func missingBefore(known []FileInfo, names []string, i int, logMin int64) bool {
	for _, k := range known {
		if k.Name >= names[i] {
			break
		}
		if at := sort.SearchStrings(names, k.Name); names[at] != k.Name && k.Last >= logMin {
			return true
		}
	}
	return false
}

const nameLayout = "20060102150405"

func fileNames(names []string) []string {
	var found []string
	for _, n := range names {
		if len(n) != len(nameLayout)+3 {
			continue
		}
		if _, err := time.Parse(nameLayout, n[:len(nameLayout)]); err == nil {
			found = append(found, n)
		}
	}
	sort.Strings(found)
	return found
}

// nextName is the local time, moved on where needed to come behind the newest file.
func (x *Index) nextName(now time.Time) string {
	for {
		name := fmt.Sprintf("%s%03d", now.Format(nameLayout), now.Nanosecond()/1e6)
		if n := len(x.mu.files); n == 0 || x.mu.files[n-1].name < name {
			return name
		}
		now = now.Add(time.Millisecond)
		if n := len(x.mu.files); n > 0 {
			if t, err := time.ParseInLocation(nameLayout+".000", x.mu.files[n-1].name[:len(nameLayout)]+"."+x.mu.files[n-1].name[len(nameLayout):], now.Location()); err == nil && t.After(now) {
				now = t.Add(time.Millisecond)
			}
		}
	}
}

// Begin takes the index for a run of Puts; End gives it back.
func (x *Index) Begin() { x.mu.Lock() }

// End ends a run of Puts.
func (x *Index) End() { x.mu.Unlock() }

// Put adds the keys' hashes of the record at a log offset. Records come in log order; one
// that is there already is ignored, so that the log may be replayed.
func (x *Index) Put(offset, storeTime int64, hashes []int32) error {
	if len(hashes) > x.opt.Entries-1 {
		hashes = hashes[:x.opt.Entries-1]
	}
	var f *file
	if n := len(x.mu.files); n > 0 {
		f = x.mu.files[n-1]
		if offset <= f.head.lastOffset && f.head.count > 1 {
			return nil
		}
	}
	if f == nil || int(f.head.count)+len(hashes) > x.opt.Entries {
		f = x.newFile(x.nextName(time.Now()))
		f.head.count = 1
		f.fresh = true
		f.flushed = 1
		f.first = 1
		f.pages = make([]*page, (x.opt.Slots+pageSlots-1)/pageSlots)
		x.mu.files = append(x.mu.files, f)
	}
	for _, h := range hashes {
		if err := f.put(h, offset, storeTime); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes and syncs everything, and returns how far each file now is.
func (x *Index) Flush() ([]FileInfo, error) {
	x.flushing.Lock()
	defer x.flushing.Unlock()
	x.mu.RLock()
	files := append([]*file(nil), x.mu.files...)
	x.mu.RUnlock()
	infos := make([]FileInfo, 0, len(files))
	for i, f := range files {
		info, err := f.flush(i == len(files)-1)
		if err != nil {
			return nil, fmt.Errorf("key index %s: %w", f.name, err)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// RemoveBefore removes the files whose last entry lies before a log offset, but not the
// newest.
func (x *Index) RemoveBefore(logMin int64) error {
	x.flushing.Lock()
	defer x.flushing.Unlock()
	for {
		x.mu.Lock()
		if len(x.mu.files) < 2 || x.mu.files[0].head.lastOffset >= logMin {
			x.mu.Unlock()
			return nil
		}
		f := x.mu.files[0]
		x.mu.files = append([]*file(nil), x.mu.files[1:]...)
		x.mu.Unlock()
		if err := f.Remove(); err != nil {
			return err
		}
	}
}

// LastTime is the store time of the newest entry, 0 when there is none.
func (x *Index) LastTime() int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if n := len(x.mu.files); n > 0 {
		return x.mu.files[n-1].head.lastTime
	}
	return 0
}

// Close closes the files. What was not flushed is lost.
func (x *Index) Close() {
	for _, f := range x.mu.files {
		f.Close()
	}
}

var be = binary.BigEndian

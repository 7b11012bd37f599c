// Package consumequeue is the list of 20-byte entries of each topic and queue, which
// points into the commit log.
//
// The queues of lite topics have no files, see light.go.
//
// Invariants: entries are written in log order by the dispatcher alone; no entry points
// past the end of the log after recovery; what is not yet in a file is in memory, and the
// log can say it again; bytes behind the last entry are zero. Neighbours: storage.
package consumequeue

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/errors/oserror"

	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// EntrySize is the size of one entry: log offset, record size, tags code.
const EntrySize = 20

// Entry points to one record.
type Entry struct {
	Physical int64
	Size     int32
	TagsCode int64
}

// Filler is the entry that stands where a queue has none of its own: before its first
// record when that is not number 0.
var Filler = Entry{Physical: 0, Size: math.MaxInt32, TagsCode: 0}

// IsFiller reports whether e only fills a place.
func (e Entry) IsFiller() bool { return e == Filler }

// AppendEntry appends the 20 bytes of e.
func AppendEntry(dst []byte, e Entry) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.Physical))
	dst = binary.BigEndian.AppendUint32(dst, uint32(e.Size))
	return binary.BigEndian.AppendUint64(dst, uint64(e.TagsCode))
}

// DecodeEntry reads the first 20 bytes of p.
func DecodeEntry(p []byte) Entry {
	_ = p[EntrySize-1]
	return Entry{
		Physical: int64(binary.BigEndian.Uint64(p)),
		Size:     int32(binary.BigEndian.Uint32(p[8:])),
		TagsCode: int64(binary.BigEndian.Uint64(p[12:])),
	}
}

// Options is what the queues of a store need.
type Options struct {
	Pool        *segment.Pool
	Dir         string
	FileEntries int
	Lights      Shelf // holds the queues of lite topics; nil: they have files like others
}

// Store is all queues.
type Store struct {
	opt Options
	// Foreign says after Load that another server had files for what is light here.
	Foreign bool
	mu      struct {
		sync.RWMutex
		topics map[string]*Topic
		lights map[string]*Queue // of lite topics, by topic; their number is not that of topics
		filed  int               // of topics have a light queue's name
		stale  map[string]bool   // folders of topics that are no more
	}
	dirty struct {
		sync.Mutex
		queues []*Queue // have entries that are in no file
	}
	unsynced struct {
		sync.Mutex
		queues map[*Queue]int64 // first byte not yet synced; touched by the flusher alone
		lights bool             // light queues were written
	}
}

// Topic is the queues of one topic.
type Topic struct {
	Name string
	// KeyHash is the hash of the name and the # behind it, from which hashing of a key of
	// this topic goes on.
	KeyHash int32
	queues  atomic.Pointer[[]*Queue] // sorted by ID
}

// Open is an empty store over the folder; Load reads what is there.
func Open(o Options) *Store {
	s := &Store{opt: o}
	s.mu.topics = make(map[string]*Topic)
	s.mu.lights = make(map[string]*Queue)
	s.mu.stale = make(map[string]bool)
	s.unsynced.queues = make(map[*Queue]int64)
	return s
}

// Queue finds a queue; nil when it does not exist.
func (s *Store) Queue(topic string, id int32) *Queue {
	s.mu.RLock()
	t := s.mu.topics[topic]
	var q *Queue
	if t == nil && id == 0 {
		q = s.mu.lights[topic]
	}
	s.mu.RUnlock()
	if t == nil {
		return q
	}
	return t.queue(id)
}

func (t *Topic) queue(id int32) *Queue {
	p := t.queues.Load()
	if p == nil {
		return nil
	}
	qs := *p
	if int(id) < len(qs) && id >= 0 && qs[id].ID == id {
		return qs[id]
	}
	i := sort.Search(len(qs), func(i int) bool { return qs[i].ID >= id })
	if i < len(qs) && qs[i].ID == id {
		return qs[i]
	}
	return nil
}

// Make finds a queue or makes it in memory; its folder is made with its first file. The
// topic's name is copied.
func (s *Store) Make(topic string, id int32) *Queue {
	if q := s.Queue(topic, id); q != nil {
		return q
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isLight(topic) {
		q := s.mu.lights[topic]
		if q == nil {
			q = &Queue{Topic: &Topic{Name: strings.Clone(topic)}, store: s, light: true}
			s.mu.lights[q.Topic.Name] = q
		}
		return q
	}
	t := s.mu.topics[topic]
	if t == nil {
		name := strings.Clone(topic)
		if names.IsLight(name) {
			s.mu.filed++
		}
		if s.mu.stale[name] {
			delete(s.mu.stale, name)
			fs := s.opt.Pool.FS()
			// What stays because of an error is overwritten or found out by its offsets.
			_ = fs.RemoveAll(fs.PathJoin(s.opt.Dir, name))
		}
		t = &Topic{Name: name, KeyHash: message.JavaHash(name + "#")}
		s.mu.topics[name] = t
	} else if q := t.queue(id); q != nil {
		return q
	}
	q := &Queue{Topic: t, ID: id, store: s}
	q.mu.set = segment.NewSet(s.opt.Pool, s.dir(t.Name, id), s.fileSize())
	t.add(q)
	return q
}

func (t *Topic) add(q *Queue) {
	var old []*Queue
	if p := t.queues.Load(); p != nil {
		old = *p
	}
	qs := make([]*Queue, 0, len(old)+1)
	qs = append(append(qs, old...), q)
	sort.Slice(qs, func(i, j int) bool { return qs[i].ID < qs[j].ID })
	t.queues.Store(&qs)
}

// Queues are the topic's queues, sorted by ID.
func (t *Topic) Queues() []*Queue {
	if p := t.queues.Load(); p != nil {
		return *p
	}
	return nil
}

// Topics is all topics, sorted by name.
func (s *Store) Topics() []*Topic {
	s.mu.RLock()
	ts := make([]*Topic, 0, len(s.mu.topics))
	for _, t := range s.mu.topics {
		ts = append(ts, t)
	}
	s.mu.RUnlock()
	sort.Slice(ts, func(i, j int) bool { return ts[i].Name < ts[j].Name })
	return ts
}

// Each calls f for every queue, in the order of topics and IDs.
func (s *Store) Each(f func(*Queue)) {
	for _, t := range s.Topics() {
		for _, q := range t.Queues() {
			f(q)
		}
	}
}

func (s *Store) fileSize() int64 { return int64(s.opt.FileEntries) * EntrySize }

func (s *Store) dir(topic string, id int32) string {
	return s.opt.Pool.FS().PathJoin(s.opt.Dir, topic, strconv.Itoa(int(id)))
}

// ErrName is the error of a topic that can't be one folder below the store's.
var ErrName = errors.New("topic is not the name of a folder")

// Delete removes a topic with its queues and their folder, and makes that durable. It
// removes nothing outside of the store's folder, whatever the name.
func (s *Store) Delete(topic string) error {
	if topic == "" || topic == "." || topic == ".." || strings.ContainsAny(topic, "/\\\x00") {
		return fmt.Errorf("%w: %.200q", ErrName, topic)
	}
	if s.isLight(topic) {
		return s.deleteLight(topic)
	}
	s.mu.Lock()
	t := s.mu.topics[topic]
	if delete(s.mu.topics, topic); t != nil && names.IsLight(topic) {
		s.mu.filed--
	}
	s.mu.Unlock()
	if t != nil {
		for _, q := range t.Queues() {
			q.discard()
		}
	}
	fs := s.opt.Pool.FS()
	dir := fs.PathJoin(s.opt.Dir, topic)
	if err := fs.RemoveAll(dir); err != nil && !oserror.IsNotExist(err) {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	if err := segment.SyncDir(fs, s.opt.Dir); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
}

func (s *Store) markDirty(q *Queue) {
	s.dirty.Lock()
	s.dirty.queues = append(s.dirty.queues, q)
	s.dirty.Unlock()
}

// Flush writes what is in memory only to the files, without syncing. What fails stays in
// memory and is tried again by the next Flush.
func (s *Store) Flush() error {
	s.dirty.Lock()
	queues := s.dirty.queues
	s.dirty.queues = nil
	s.dirty.Unlock()
	var failed error
	var lights []*Queue
	for _, q := range queues {
		if q.light {
			lights = append(lights, q)
			continue
		}
		from, wrote, err := q.flush()
		if wrote {
			s.unsynced.Lock()
			if old, ok := s.unsynced.queues[q]; !ok || from < old {
				s.unsynced.queues[q] = from
			}
			s.unsynced.Unlock()
		}
		if err != nil {
			failed = err
		}
	}
	for len(lights) > 0 {
		n := min(len(lights), 1024)
		if err := s.flushLights(lights[:n]); err != nil {
			failed = err
		}
		lights = lights[n:]
	}
	return failed
}

// manyQueues is from how many queues on one sync of the whole file system is asked for
// instead of one for each file: ten thousand small ones take minutes.
const manyQueues = 64

// Sync makes durable what Flush has written.
func (s *Store) Sync() error {
	s.unsynced.Lock()
	defer s.unsynced.Unlock()
	if s.unsynced.lights {
		if err := s.opt.Lights.Sync(); err != nil {
			return err
		}
		s.unsynced.lights = false
	}
	fs := s.opt.Pool.FS()
	if len(s.unsynced.queues) >= manyQueues {
		if done, err := segment.SyncFileSystem(fs, s.opt.Dir); done || err != nil {
			if err == nil {
				clear(s.unsynced.queues)
			}
			return err
		}
	}
	folders := map[string]bool{}
	for q, from := range s.unsynced.queues {
		fresh, err := q.sync(from)
		if err != nil {
			return err
		}
		if fresh {
			folders[q.Topic.Name] = true
		}
		delete(s.unsynced.queues, q)
	}
	if len(folders) == 0 {
		return nil
	}
	for topic := range folders {
		if err := segment.SyncDir(fs, fs.PathJoin(s.opt.Dir, topic)); err != nil && !oserror.IsNotExist(err) {
			return err
		}
	}
	if err := segment.SyncDir(fs, s.opt.Dir); err != nil {
		return err
	}
	return segment.SyncDir(fs, fs.PathDir(s.opt.Dir))
}

// RemoveBefore removes the files of every queue that hold nothing at or after logMin.
func (s *Store) RemoveBefore(logMin int64) error {
	var failed error
	s.Each(func(q *Queue) {
		if err := q.removeBefore(logMin); err != nil {
			failed = err
		}
	})
	s.EachLight("", func(q *Queue) bool {
		if err := q.removeLight(logMin); err != nil {
			failed = err
		}
		return failed == nil
	})
	return failed
}

// Close closes the files of all queues.
func (s *Store) Close() {
	s.Each(func(q *Queue) { v := q.view(); v.set.Close() })
}

// Count is the number of queues.
func (s *Store) Count() int {
	n := 0
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, t := range s.mu.topics {
		n += len(t.Queues())
	}
	return n
}

// Idle reports whether there is nothing for Flush to do.
func (s *Store) Idle() bool {
	s.dirty.Lock()
	defer s.dirty.Unlock()
	return len(s.dirty.queues) == 0
}

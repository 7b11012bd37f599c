package storage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/storage/keyindex"
	"github.com/bolidemq/bolide/internal/storage/segment"
)

// checkpoint is Apache's checkpoint file: up to where log, queues and index are durable.
// docs/formats/checkpoint.md draws it.
type checkpoint struct {
	logTime, queueTime, indexTime int64 // ms, of the last durable record in each
	flushed                       int64 // log offset
	confirmed                     int64
	dispatched                    int64 // log offset before which queues and index are durable
}

const (
	checkpointSize = 4096
	// markAt is where Bolide repeats the six numbers with a checksum. Apache writes only
	// the numbers, so where they differ, another server was here since.
	markAt      = 2048
	markMagic   = "BOLIDE01"
	checkpoint6 = 48
)

func (c *checkpoint) fields() []*int64 {
	return []*int64{&c.logTime, &c.queueTime, &c.indexTime, &c.flushed, &c.confirmed, &c.dispatched}
}

func (c *checkpoint) encode() []byte {
	b := make([]byte, checkpointSize)
	for i, f := range c.fields() {
		binary.BigEndian.PutUint64(b[8*i:], uint64(*f))
	}
	mark := b[markAt:]
	n := copy(mark, markMagic)
	n += copy(mark[n:], b[:checkpoint6])
	binary.BigEndian.PutUint32(mark[n:], crc32.ChecksumIEEE(mark[:n]))
	return b
}

// decodeCheckpoint reads a checkpoint file; ours says whether Bolide wrote it last.
func decodeCheckpoint(b []byte) (c checkpoint, ours bool) {
	if len(b) < checkpoint6 {
		return c, false
	}
	for i, f := range c.fields() {
		*f = int64(binary.BigEndian.Uint64(b[8*i:]))
	}
	const length = len(markMagic) + checkpoint6
	if len(b) < markAt+length+4 {
		return c, false
	}
	mark := b[markAt:]
	ours = string(mark[:len(markMagic)]) == markMagic && bytes.Equal(mark[len(markMagic):length], b[:checkpoint6]) &&
		binary.BigEndian.Uint32(mark[length:]) == crc32.ChecksumIEEE(mark[:length])
	return c, ours
}

// Reached is when the last record was stored that the checkpoint of a store speaks of, 0 where
// Bolide has not written it last. It is for those who need the time before the store is open.
func Reached(fs vfs.FS, dir string) int64 {
	b, err := readFile(fs, fs.PathJoin(dir, "checkpoint"))
	if err != nil {
		return 0 // Open will say so
	}
	if c, ours := decodeCheckpoint(b); ours {
		return c.logTime
	}
	return 0
}

// snapshot is what queues and index files had at a checkpoint, so that a start notices
// what is missing. It may be older than the checkpoint: nothing but topics goes away.
type snapshot struct {
	queues []queueEnd
	index  []keyindex.FileInfo
}

type queueEnd struct {
	topic string
	id    int32
	first int64 // oldest entry stored
	max   int64
}

// end looks up where a queue ended; 0 for one that is not known.
func (s *snapshot) end() func(topic string, id int32) int64 {
	ends := make(map[queueEnd]int64, len(s.queues))
	for _, q := range s.queues {
		ends[queueEnd{topic: q.topic, id: q.id}] = q.max
	}
	return func(topic string, id int32) int64 { return ends[queueEnd{topic: topic, id: id}] }
}

const snapshotMagic = "BOLIDEQ1"

func (s *snapshot) encode() []byte {
	b := []byte(snapshotMagic)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.queues)))
	for _, q := range s.queues {
		b = binary.BigEndian.AppendUint16(b, uint16(len(q.topic)))
		b = append(b, q.topic...)
		b = binary.BigEndian.AppendUint32(b, uint32(q.id))
		b = binary.BigEndian.AppendUint64(b, uint64(q.first))
		b = binary.BigEndian.AppendUint64(b, uint64(q.max))
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.index)))
	for _, f := range s.index {
		b = append(b, byte(len(f.Name)))
		b = append(b, f.Name...)
		b = binary.BigEndian.AppendUint32(b, uint32(f.Count))
		b = binary.BigEndian.AppendUint64(b, uint64(f.Last))
	}
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// decodeSnapshot reads what encode wrote; anything else is no snapshot.
func decodeSnapshot(b []byte) (s snapshot, ok bool) {
	if len(b) < len(snapshotMagic)+12 || string(b[:len(snapshotMagic)]) != snapshotMagic {
		return s, false
	}
	body := b[:len(b)-4]
	if binary.BigEndian.Uint32(b[len(body):]) != crc32.ChecksumIEEE(body) {
		return s, false
	}
	r := reader{b: body[len(snapshotMagic):]}
	for n := r.uint(4); n > 0 && !r.short; n-- {
		s.queues = append(s.queues, queueEnd{topic: string(r.bytes(int(r.uint(2)))), id: int32(r.uint(4)), first: int64(r.uint(8)), max: int64(r.uint(8))})
	}
	for n := r.uint(4); n > 0 && !r.short; n-- {
		s.index = append(s.index, keyindex.FileInfo{Name: string(r.bytes(int(r.uint(1)))), Count: int32(r.uint(4)), Last: int64(r.uint(8))})
	}
	if r.short || len(r.b) > 0 {
		return snapshot{}, false
	}
	return s, true
}

type reader struct {
	b     []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.b) {
		r.short = true
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *reader) uint(n int) (v uint64) {
	for _, b := range r.bytes(n) {
		v = v<<8 | uint64(b)
	}
	return v
}

// save makes everything that is dispatched durable and says so in the checkpoint. all
// asks for the snapshot too, which is otherwise written now and then.
func (e *Engine) save(all bool) error {
	e.saving.Lock()
	defer e.saving.Unlock()
	if e.broken.Load() {
		return nil
	}
	var c checkpoint
	var ends []queueEnd
	withSnapshot := all || e.queues.Count() <= fewQueues || time.Since(e.saved.snapshotAt) > snapshotInterval
	// Between two batches: what the end is taken from is in memory at least, OnDispatch has
	// been told of it, and the queues end where the log is dispatched to. Entries behind the
	// checkpoint are not trusted by a start, and would be missed by it.
	e.dispatching.Lock()
	c.dispatched = e.log.Done()
	if withSnapshot {
		ends = e.queueEnds()
	}
	e.dispatching.Unlock()
	c.flushed = c.dispatched
	c.logTime = e.lastTime.Load()
	c.queueTime = c.logTime
	if err := e.syncLog(c.dispatched); err != nil {
		return err
	}
	if e.opt.Settle != nil {
		if err := e.opt.Settle(); err != nil {
			return fmt.Errorf("settling what was dispatched: %w", err)
		}
	}
	err := e.queues.Flush()
	if err == nil {
		err = e.queues.Sync()
	}
	files := e.saved.indexFiles
	if err == nil {
		files, err = e.index.Flush()
	}
	if err != nil {
		if errors.Is(err, segment.ErrSync) {
			e.breakDerived("queues and index", err)
		}
		return fmt.Errorf("flushing queues and index: %w", err)
	}
	c.indexTime = e.index.LastTime()
	if c.indexTime == 0 {
		c.indexTime = c.queueTime
	}
	e.saved.indexFiles = files
	if err := e.replaceFile("checkpoint", c.encode()); err != nil {
		return err
	}
	e.checkpointed.Store(c.dispatched)
	if !withSnapshot {
		return nil
	}
	// The snapshot comes second: an older one does no harm, a newer one would ask for more
	// than the checkpoint lets a start trust.
	e.saved.queues = ends
	return e.writeSnapshot("")
}

const (
	// fewQueues is for how many queues the snapshot is written with every checkpoint.
	fewQueues        = 2000
	snapshotInterval = time.Minute
)

func (e *Engine) queueEnds() (ends []queueEnd) {
	e.queues.Each(func(q *consumequeue.Queue) {
		if end := q.Max(); end > 0 {
			ends = append(ends, queueEnd{q.Topic.Name, q.ID, q.First(), end})
		}
	})
	return ends
}

// writeSnapshot writes the snapshot of all topics but one. The caller holds saving.
func (e *Engine) writeSnapshot(without string) error {
	s := snapshot{index: e.saved.indexFiles}
	for _, q := range e.saved.queues {
		if q.topic != without {
			s.queues = append(s.queues, q)
		}
	}
	e.saved.queues = s.queues
	e.saved.snapshotAt = time.Now()
	return e.replaceFile("queues.snapshot", s.encode())
}

// replaceFile writes a small file of the root so that it is there whole or not at all.
func (e *Engine) replaceFile(name string, data []byte) error {
	fs, path := e.opt.FS, e.path(name)
	err := writeFile(fs, path+".new", data)
	if err == nil {
		err = fs.Rename(path+".new", path)
	}
	if err == nil {
		err = segment.SyncDir(fs, e.opt.Dir)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

func writeFile(fs vfs.FS, path string, data []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// readFile gives a small file's bytes; none when it is not there.
func readFile(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if oserror.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// markRunning makes the abort file: while it is there, the last stop was not a clean one.
func (e *Engine) markRunning() error {
	return e.replaceFile("abort", []byte(strconv.Itoa(os.Getpid())))
}

func (e *Engine) unmarkRunning() error {
	if err := e.opt.FS.Remove(e.path("abort")); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return segment.SyncDir(e.opt.FS, e.opt.Dir)
}

package storage

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/cockroachdb/errors/oserror"

	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/storage/keyindex"
	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// recovery is one run of recover.
type recovery struct {
	e *Engine
	Recovery
	checkpoint checkpoint
	ours       bool  // Bolide wrote the checkpoint last: everything before dispatched is durable
	trusted    int64 // queue entries that point before it are taken as they are
	start      int64 // where reading begins
	relight    bool  // the light queues are to be read from the log
	news       int64 // where records begin that OnDispatch has not, or perhaps not, seen
	lastTime   int64
	damaged    map[*consumequeue.Queue]bool
	out        []Dispatched
}

// recover brings log, queues and index together and leaves the engine ready for appends.
//
// Everything before the checkpoint is durable in all three, so only the log behind it is
// read: each record is checked and dispatched, as far as queues and index do not have it.
// The first one that is not sound is the end. What is missing of queues and index before
// the checkpoint is told by their own files and by the snapshot, and read from the log.
// A store that another server has written last has no such checkpoint; its files are read
// from where Apache's own would be.
func (e *Engine) recover() (err error) {
	began := time.Now()
	r := &recovery{e: e, damaged: map[*consumequeue.Queue]bool{}}
	if err := segment.MkdirAll(e.opt.FS, e.opt.Dir); err != nil {
		return err
	}
	known, err := r.readMarks()
	if err != nil {
		return err
	}
	if err := r.checkFiles(); err != nil {
		return err
	}
	if err := e.markRunning(); err != nil {
		return err
	}
	if err := r.loadDerived(known); err != nil {
		return err
	}
	durable, err := r.syncLog()
	if err != nil {
		return err
	}
	if err := r.replay(); err != nil {
		return err
	}
	if err := r.finish(known, durable); err != nil {
		return err
	}
	r.Took = time.Since(began)
	if r.CutBytes > 0 || len(r.Rebuilt) > 0 || !r.Clean {
		e.opt.Log.Info("the store was recovered", "clean", r.Clean, "from", r.ScannedFrom, "end", r.End, "records", r.Records,
			"cut", r.CutBytes, "rebuilt", r.Rebuilt, "took", r.Took)
	}
	if r.CutBytes > 0 {
		e.opt.Log.Warn("the log's end was not whole: it was cut, with all that lay behind the damage", "at", r.End, "bytes", r.CutBytes)
	}
	if e.opt.Events.Recovered != nil {
		e.opt.Events.Recovered(r.Recovery)
	}
	return nil
}

// readMarks reads abort file, checkpoint and snapshot.
func (r *recovery) readMarks() (known snapshot, err error) {
	e := r.e
	abort, err := readFile(e.opt.FS, e.path("abort"))
	if err != nil {
		return known, err
	}
	_, statErr := e.opt.FS.Stat(e.path("abort"))
	r.Clean = abort == nil && statErr != nil
	data, err := readFile(e.opt.FS, e.path("checkpoint"))
	if err != nil {
		return known, err
	}
	r.checkpoint, r.ours = decodeCheckpoint(data)
	if !r.ours {
		return known, nil
	}
	data, err = readFile(e.opt.FS, e.path("queues.snapshot"))
	if err != nil {
		return known, err
	}
	known, ok := decodeSnapshot(data)
	if ok && known.index == nil {
		known.index = []keyindex.FileInfo{}
	}
	return known, nil
}

// checkFiles looks at the log's files before anything is touched: each of its full size,
// side by side. Only the last may be shorter, or empty.
func (r *recovery) checkFiles() error {
	e := r.e
	if _, err := e.opt.FS.Stat(e.path("consumequeue", "CURRENT")); err == nil {
		return fmt.Errorf("%w: its queues are in RocksDB, which is not supported; switch back to file queues first", ErrForeign)
	}
	files := e.log.Files().Files()
	if len(files) == 0 && r.ours && r.checkpoint.dispatched > 0 {
		return fmt.Errorf("%w: the log's files are gone, it had reached %d", ErrForeign, r.checkpoint.dispatched)
	}
	for i, f := range files {
		size, err := f.Size()
		if err != nil {
			return err
		}
		last := i == len(files)-1
		if size != e.opt.LogSegmentSize && (!last || size > e.opt.LogSegmentSize) {
			return fmt.Errorf("%w: log file %s has %d bytes, and by mappedFileSizeCommitLog it would have %d", ErrForeign, f.Path(), size, e.opt.LogSegmentSize)
		}
		if f.Base%e.opt.LogSegmentSize != 0 || (i > 0 && f.Base != files[i-1].Base+e.opt.LogSegmentSize) {
			return fmt.Errorf("%w: log file %s does not follow the one before it", ErrForeign, f.Path())
		}
	}
	return nil
}

func (r *recovery) logEnd() int64 {
	files := r.e.log.Files().Files()
	if len(files) == 0 {
		return 0
	}
	return files[len(files)-1].Base + r.e.opt.LogSegmentSize
}

// loadDerived loads queues and index and settles where reading begins.
func (r *recovery) loadDerived(known snapshot) error {
	e := r.e
	logMin, logEnd := e.log.Min(), r.logEnd()
	if logEnd == 0 {
		// Without a log there is nothing that queues and index could point to.
		if err := r.dropDerived(); err != nil {
			return err
		}
		if _, err := e.queues.DropLights(); err != nil {
			return err
		}
		known = snapshot{}
	}
	if r.ours && (r.checkpoint.dispatched < logMin || r.checkpoint.dispatched > logEnd) {
		e.opt.Log.Error("the log's files do not reach to the checkpoint", "checkpoint", r.checkpoint.dispatched, "first", logMin, "end", logEnd)
		r.ours = false
		known = snapshot{}
	}
	r.trusted = math.MaxInt64
	if r.ours {
		r.trusted = r.checkpoint.dispatched
	}
	if err := r.loadLights(); err != nil {
		return fmt.Errorf("loading the light queues: %w", err)
	}
	damaged, err := e.queues.Load(r.trusted, e.opt.Birth, known.end())
	if err != nil {
		return fmt.Errorf("loading the queues: %w", err)
	}
	for _, q := range damaged {
		r.damage(q)
	}
	for _, k := range known.queues {
		if born := e.opt.Birth(k.topic); born > 0 && born >= r.trusted {
			continue
		}
		q := e.queues.Make(k.topic, k.id)
		if q.Max() < k.max || q.First() > k.first {
			r.damage(q)
			if err := q.Reset(); err != nil {
				return err
			}
		}
	}
	indexed, removed, err := e.index.Load(known.index, logMin, r.ours && r.Clean)
	if err != nil {
		return fmt.Errorf("loading the key index: %w", err)
	}
	if r.ours {
		r.start = r.checkpoint.dispatched
	} else {
		if r.start, err = r.foreignStart(); err != nil {
			return err
		}
		if !r.Clean {
			if indexed, err = e.index.DropNewerThan(r.checkpoint.indexTime); err != nil {
				return err
			}
		}
	}
	r.news = r.start
	for _, name := range removed {
		r.Rebuilt = append(r.Rebuilt, "index/"+name)
	}
	if len(removed) > 0 || (!r.ours && (indexed < 0 || !r.Clean)) {
		r.start = min(r.start, max(indexed, logMin))
	}
	if len(r.damaged) > 0 || r.relight || e.queues.Foreign && !r.ours {
		r.start = logMin
	}
	r.start = max(r.start, logMin)
	r.ScannedFrom = r.start
	return nil
}

// loadLights loads the light queues. They are trusted as far as the checkpoint is; where it
// is not ours, nothing of them is.
func (r *recovery) loadLights() error {
	if r.ours {
		return r.e.queues.LoadLights(r.trusted, r.e.opt.Birth)
	}
	var err error
	r.relight, err = r.e.queues.DropLights()
	return err
}

// dropDerived removes queues and index.
func (r *recovery) dropDerived() error {
	fs := r.e.opt.FS
	for _, dir := range []string{"consumequeue", "index"} {
		if err := fs.RemoveAll(r.e.path(dir)); err != nil && !oserror.IsNotExist(err) {
			return err
		}
	}
	return segment.SyncDir(fs, r.e.opt.Dir)
}

func (r *recovery) damage(q *consumequeue.Queue) {
	if !r.damaged[q] {
		r.damaged[q] = true
		r.Rebuilt = append(r.Rebuilt, fmt.Sprintf("consumequeue/%s/%d", q.Topic.Name, q.ID))
	}
}

// foreignStart is the start of a log file from which on the log has to be read when the
// checkpoint is not ours. After a clean stop: the file that the newest queue entry points
// into. After a crash: the newest file whose first record is older than all that the
// checkpoint calls durable.
func (r *recovery) foreignStart() (int64, error) {
	e := r.e
	files := e.log.Files().Files()
	var reach int64 = -1
	if r.Clean {
		var failed error
		e.queues.Each(func(q *consumequeue.Queue) {
			if last, ok, err := q.Entry(q.Max() - 1); ok {
				reach = max(reach, last.Physical)
			} else if err != nil {
				failed = err
			}
		})
		if failed != nil {
			return 0, failed
		}
	}
	durable := min(r.checkpoint.logTime, r.checkpoint.queueTime) - 3000
	for i := len(files) - 1; i > 0; i-- {
		var head [message.HeaderSize]byte
		h, err := e.log.Head(files[i].Base, head[:])
		if err != nil {
			continue
		}
		if (r.Clean && files[i].Base <= reach) || (!r.Clean && h.StoreTimestamp > 0 && h.StoreTimestamp <= durable) {
			return files[i].Base, nil
		}
	}
	return e.log.Min(), nil
}

// syncLog makes durable what the log's files hold and returns how far that is. What a
// killed process wrote may be in the kernel alone, and whoever is told of a record deletes
// what it was born from (P6): a power cut during recovery must not take the record then.
func (r *recovery) syncLog() (durable int64, err error) {
	if r.ours && r.Clean {
		return r.checkpoint.flushed, nil
	}
	if r.ours {
		durable = r.checkpoint.flushed
	}
	return r.logEnd(), r.e.log.Files().Sync(durable, r.logEnd())
}

// replay reads the log from start to its end and dispatches what is missing.
func (r *recovery) replay() error {
	e := r.e
	// Before the checkpoint the records are known to be sound; damage there must not end
	// the log, only what it hits is lost.
	at := r.start
	for r.ours && at < r.checkpoint.dispatched {
		end, err := e.log.Scan(at, r.checkpoint.dispatched, false, r.dispatch)
		if err != nil {
			return err
		}
		if at = end; at < r.checkpoint.dispatched {
			if at, err = e.log.Resync(end, r.checkpoint.dispatched); err != nil {
				return err
			}
			e.opt.Log.Error("the log is damaged; the records there are lost", "from", end, "to", at)
		}
	}
	end, err := e.log.Scan(at, math.MaxInt64, true, r.dispatch)
	if err != nil {
		return err
	}
	r.tell()
	r.End = end
	return r.again()
}

// again reads the log once more for the queues whose entries turned out, while it was
// read, not to go together.
func (r *recovery) again() error {
	e := r.e
	bad := map[*consumequeue.Queue]bool{}
	for q := range r.damaged {
		if r.damaged[q] && q.Broken() {
			bad[q] = true
			if err := q.Reset(); err != nil {
				return err
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return e.scanPast(e.log.Min(), r.End, func(_ []byte, m *message.Message) error {
		if q := e.queues.Queue(m.Topic, m.QueueID); q != nil && bad[q] {
			var n note
			p := placedOf(m)
			if e.belongs(m) && e.describe(&n, m) != nil {
				e.enqueue(&n, &p)
			}
		}
		for _, l := range e.lightsOf(m) {
			if bad[l.queue] && e.belongs(m) {
				var n note
				p := placedOf(m)
				e.describe(&n, m)
				e.enqueueLight(l, &n, &p)
			}
		}
		return nil
	})
}

// scanPast reads the records of a part of the log, and goes on behind what is damaged there.
func (e *Engine) scanPast(from, to int64, each func(record []byte, m *message.Message) error) error {
	for from < to {
		end, err := e.log.Scan(from, to, false, each)
		if err != nil {
			return err
		}
		if from = end; from < to {
			if from, err = e.log.Resync(end, to); err != nil {
				return err
			}
		}
	}
	return nil
}

func placedOf(m *message.Message) Placed {
	return Placed{PhysicalOffset: m.PhysicalOffset, QueueOffset: m.QueueOffset, StoreTimestamp: m.StoreTimestamp, QueueID: m.QueueID, Size: m.StoreSize}
}

// maxQueueOffset is what no queue can have reached: no checksum covers a record's offset.
const maxQueueOffset = 1 << 50

// belongs reports whether a record is dispatched at all: not when it is older than its
// topic, not when its topic or its offset can't be true, and not when it is one of the kinds that
// Bolide does not write.
func (e *Engine) belongs(m *message.Message) bool {
	return isFolderName(m.Topic) && m.QueueOffset >= 0 && m.QueueOffset < maxQueueOffset && m.PhysicalOffset >= e.opt.Birth(m.Topic) && m.SysFlag&message.SysInnerBatch == 0
}

// isFolderName keeps what a damaged record says from becoming a path of its own.
func isFolderName(topic string) bool {
	return topic != "" && topic != "." && topic != ".." && !strings.ContainsAny(topic, "/\\\x00")
}

// dispatch deals with one record that was read.
func (r *recovery) dispatch(_ []byte, m *message.Message) error {
	e := r.e
	r.Records++
	r.lastTime = max(r.lastTime, m.StoreTimestamp)
	if !e.belongs(m) {
		return nil
	}
	var n note
	p := placedOf(m)
	q := e.describe(&n, m)
	d := n.dispatched(&p)
	if q != nil {
		entry := consumequeue.Entry{Physical: p.PhysicalOffset, Size: p.Size, TagsCode: d.TagsCode}
		err := q.Replay(p.QueueOffset, entry, !r.ours)
		var gap *consumequeue.Gap
		switch {
		case errors.As(err, &gap):
			r.damage(q)
		case err != nil:
			return err
		}
	}
	lights := e.lightsOf(m)
	for _, l := range lights {
		if err := r.replayLight(l, consumequeue.Entry{Physical: p.PhysicalOffset, Size: p.Size, TagsCode: d.TagsCode}); err != nil {
			return err
		}
	}
	if n.keys > 0 {
		e.index.Begin()
		e.addKeys(&n, &p)
		e.index.End()
	}
	if e.opt.OnDispatch != nil && p.PhysicalOffset >= r.news {
		r.out = append(r.out, d)
		for _, l := range lights {
			r.out = append(r.out, l.dispatched(d))
		}
		if len(r.out) >= 256 {
			r.tell()
		}
	}
	if r.Records%flushEvery == 0 {
		// Keeps memory small while a long log is read.
		if err := e.queues.Flush(); err != nil {
			return err
		}
		if _, err := e.index.Flush(); err != nil {
			return err
		}
	}
	return nil
}

const flushEvery = 2_000_000

// tell passes on what was collected for OnDispatch.
func (r *recovery) tell() {
	if len(r.out) > 0 {
		r.e.opt.OnDispatch(r.out)
	}
	r.out = r.out[:0]
}

// finish cuts what lies behind the end, makes everything durable and opens the log.
func (r *recovery) finish(known snapshot, durable int64) (err error) {
	e := r.e
	if err := e.log.Files().Grow(); err != nil {
		return err
	}
	if !r.untouched() {
		if r.CutBytes, err = e.log.Cut(r.End); err != nil {
			return fmt.Errorf("cutting the log at %d: %w", r.End, err)
		}
	}
	for _, k := range known.queues {
		// A queue all of whose records are gone from the log goes on where it was.
		if q := e.queues.Queue(k.topic, k.id); q != nil && r.damaged[q] && q.Max() < k.max {
			q.Continue(k.max)
		}
	}
	if err := r.cutQueues(); err != nil {
		return err
	}
	if r.ours {
		r.lastTime = max(r.lastTime, r.checkpoint.logTime)
	}
	r.settleTime()
	e.begun, e.begunAt = r.End, r.lastTime
	e.log.Start(r.End, min(durable, r.End), r.lastTime)
	e.lastTime.Store(r.lastTime)
	e.queues.Each(func(q *consumequeue.Queue) { q.Next = q.Max() })
	e.queues.EachLight("", func(q *consumequeue.Queue) bool { q.Next = q.Max(); return true })
	e.saved.indexFiles, e.saved.queues = known.index, known.queues
	e.checkpointed.Store(r.checkpoint.dispatched)
	switch {
	case r.untouched():
		return nil
	case r.ours && len(r.Rebuilt) == 0:
		// What was read again is in memory; making it durable can wait for the flusher, and
		// if that is not to be, it is read again.
		e.dirty <- struct{}{}
		return nil
	}
	return e.save(true)
}

// settleTime has the clock begin no earlier than the log has ended, and the log's stamps no later
// than the clock is. Stamps never run backwards, so where the machine's clock was set back, they
// would stand still until it has caught up, and whoever waits from one would not wait at all. From
// what another server has stamped, or what is too far ahead, nobody takes the time: stamps go back
// to the right one.
func (r *recovery) settleTime() {
	c := r.e.opt.Clock
	if r.ours {
		c.Reach(r.lastTime)
	}
	if now := c.NowMilli(); r.lastTime > now {
		r.e.opt.Log.Warn("the log's last records are from a clock that was ahead; new ones have the time of now",
			"ahead", time.Duration(r.lastTime-now)*time.Millisecond)
		r.lastTime = now
	}
}

// untouched reports whether the store is exactly as Close has left it.
func (r *recovery) untouched() bool {
	return r.ours && r.Clean && r.Records == 0 && len(r.Rebuilt) == 0
}

// cutQueues drops entries that point behind the end, and zeroes what lies behind the last
// entry in the files wherever the stop was not a clean one.
func (r *recovery) cutQueues() (err error) {
	e := r.e
	if !r.ours {
		e.queues.Each(func(q *consumequeue.Queue) {
			if _, derr := q.Drop(r.End); derr != nil {
				err = derr
			}
		})
	}
	if err != nil {
		return err
	}
	if r.untouched() {
		return nil
	}
	e.queues.Each(func(q *consumequeue.Queue) {
		if _, cerr := q.Cut(); cerr != nil && err == nil {
			err = fmt.Errorf("cutting queue %s/%d: %w", q.Topic.Name, q.ID, cerr)
		}
	})
	return err
}

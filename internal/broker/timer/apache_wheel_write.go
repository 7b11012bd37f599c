package timer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// WriteApache writes Apache's files anew, so that its server goes on where this one ends. It
// is called at a clean stop, when the loops have ended and the store is open still.
func (w *Wheel) WriteApache() error {
	a := &w.o.Files
	if a.FS == nil {
		return nil
	}
	high := w.o.Store.MaxOffset(names.WheelTimer, 0)
	old, err := a.read("config", "timercheck")
	if err != nil || high == 0 && old == nil {
		return err // no timer has ever been here
	}
	if err := w.o.State.Commit(w.o.State.NewBatch()); err != nil { // with what is collected
		return err
	}
	now := w.o.Clock.WallMilli()
	at := checkpoint{readTime: now / grain * grain, queueOffset: high, masterQueue: high}
	wheel, err := w.writeUnits(&at, now, high)
	if err == nil {
		err = a.writeWheel(wheel)
	}
	if err == nil {
		err = a.FS.MkdirAll(a.path("config"), 0o755)
	}
	if err == nil {
		err = a.replace(w.ExportCounts(), "config", "timermetrics")
	}
	text := at.text(now)
	if err == nil {
		err = w.remember(text)
	}
	if err == nil {
		err = a.replace(text, "config", "timercheck")
	}
	if err != nil {
		return fmt.Errorf("write Apache's files of the timers: %w", err)
	}
	return nil
}

// slot is a second of the wheel.
type slot struct {
	time, first, last int64
	count             int32
}

// writeUnits writes the timer log: a unit for each message that waits, chained by its second,
// and, as the last one, one for the last message of the queue, in a second that is over: from
// that Apache's server learns where in the queue to go on.
func (w *Wheel) writeUnits(at *checkpoint, now, high int64) (map[int64]*slot, error) {
	a := &w.o.Files
	log := &unitLog{a: a}
	if err := log.open(); err != nil {
		return nil, err
	}
	wheel := make(map[int64]*slot)
	base := now / grain * grain
	err := w.o.State.Scan(state.Wheel, keyOfEntries, func(key, value []byte) error {
		p, ok := placeOfKey(key)
		e, topic, whole := decodeEntry(p, value)
		if !ok || !whole {
			return nil
		}
		time, magic := slotOf(message.TimerOut(p.due), base)
		at.readTime = min(at.readTime, time)
		s := wheel[time]
		if s == nil {
			s = &slot{time: time, first: -1, last: -1}
			wheel[time] = s
		}
		pos, err := log.append(s.last, magic, base, time, e.physical, e.size, message.JavaHash(string(topic)))
		if s.first < 0 {
			s.first = pos
		}
		s.last = pos
		s.count++
		return err
	})
	if err == nil {
		err = w.writeLast(log, at, base, high)
	}
	return wheel, errors.Join(err, log.close())
}

// slotOf is the second in which Apache's server looks at a message, and how: what is due
// beyond its window is moved on the way.
func slotOf(out, base int64) (time int64, magic int32) {
	time = out / grain * grain
	switch ahead := time - base; {
	case ahead < rollWindow:
		return time, magicNormal
	case ahead-rollWindow < rollWindow/3:
		return base + rollWindow/2, magicNormal | magicRoll
	}
	return base + rollWindow, magicNormal | magicRoll
}

func (w *Wheel) writeLast(log *unitLog, at *checkpoint, base, high int64) error {
	last := entry{}
	if high > 0 {
		err := w.eachQueued(high-1, high, func(e *entry, m *message.Message) { last = *e })
		if err != nil {
			return err
		}
	}
	if last.size > 0 {
		over := at.readTime - 10*grain
		if _, err := log.append(-1, magicNormal, base, over, last.physical, last.size, message.JavaHash(last.topic)); err != nil {
			return err
		}
	}
	at.logEnd = log.end
	return nil
}

// unitLog writes Apache's timer log.
type unitLog struct {
	a    *ApacheFiles
	file vfs.File
	base int64 // of the file
	end  int64
	buf  []byte
}

func (a *ApacheFiles) logSize() int64 { return cmp.Or(a.Log, 100<<20) }

// open removes the log that is there and begins another.
func (l *unitLog) open() error {
	dir := l.a.path("timerlog")
	files, err := l.a.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, name := range files {
		if err := l.a.FS.Remove(l.a.path("timerlog", name)); err != nil {
			return err
		}
	}
	return l.a.FS.MkdirAll(dir, 0o755)
}

func (l *unitLog) append(prev int64, magic int32, base, time, physical int64, size, hash int32) (pos int64, err error) {
	room := l.a.logSize()
	if l.file != nil && l.end-l.base+unitSize+blankSize > room {
		l.buf = binary.BigEndian.AppendUint32(l.buf, uint32(room-(l.end-l.base)))
		l.buf = binary.BigEndian.AppendUint64(l.buf, 0)
		var blank int32 = blankMagic
		l.buf = binary.BigEndian.AppendUint32(l.buf, uint32(blank))
		if err := l.closeFile(); err != nil {
			return 0, err
		}
		l.base += room
		l.end = l.base
	}
	if l.file == nil {
		name := strconv.FormatInt(l.base, 10)
		for len(name) < 20 {
			name = "0" + name
		}
		if l.file, err = l.a.FS.Create(l.a.path("timerlog", name), vfs.WriteCategoryUnspecified); err != nil {
			return 0, err
		}
	}
	pos = l.end
	b := binary.BigEndian.AppendUint32(l.buf, unitSize)
	b = binary.BigEndian.AppendUint64(b, uint64(prev))
	b = binary.BigEndian.AppendUint32(b, uint32(magic))
	b = binary.BigEndian.AppendUint64(b, uint64(base))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(time-base)))
	b = binary.BigEndian.AppendUint64(b, uint64(physical))
	b = binary.BigEndian.AppendUint32(b, uint32(size))
	b = binary.BigEndian.AppendUint32(b, uint32(hash))
	l.buf = binary.BigEndian.AppendUint64(b, 0)
	l.end += unitSize
	if len(l.buf) >= 1<<20 {
		return pos, l.write()
	}
	return pos, nil
}

func (l *unitLog) write() error {
	_, err := l.file.Write(l.buf)
	l.buf = l.buf[:0]
	return err
}

// closeFile writes the rest and gives the file its full length.
func (l *unitLog) closeFile() error {
	written := l.end - l.base
	if len(l.buf) > 0 && len(l.buf)%unitSize != 0 {
		written += blankSize
	}
	err := l.write()
	if err == nil {
		err = extend(l.file, written, l.a.logSize())
	}
	if err == nil {
		err = l.file.Sync()
	}
	err = errors.Join(err, l.file.Close())
	l.file = nil
	return err
}

func (l *unitLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.closeFile()
}

// extend writes the last byte of a file that is to have a size.
func extend(f vfs.File, written, size int64) error {
	if written >= size {
		return nil
	}
	_, err := f.WriteAt([]byte{0}, size-1)
	return err
}

// writeWheel writes the timer wheel.
func (a *ApacheFiles) writeWheel(wheel map[int64]*slot) error {
	slots := cmp.Or(a.Slots, 2*7*24*3600)
	list := make([]*slot, 0, len(wheel))
	for _, s := range wheel {
		list = append(list, s)
	}
	index := func(s *slot) int64 { return s.time / grain % slots }
	slices.SortFunc(list, func(x, y *slot) int { return cmp.Compare(index(x), index(y)) })
	f, err := a.FS.Create(a.path("timerwheel"), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{0}, slots*slotSize-1)
	var b []byte
	for _, s := range list {
		if err != nil {
			break
		}
		b = binary.BigEndian.AppendUint64(b[:0], uint64(s.time/grain))
		b = binary.BigEndian.AppendUint64(b, uint64(s.first))
		b = binary.BigEndian.AppendUint64(b, uint64(s.last))
		b = binary.BigEndian.AppendUint32(b, uint32(s.count))
		b = binary.BigEndian.AppendUint32(b, 0)
		_, err = f.WriteAt(b, index(s)*slotSize)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// replace puts a text under a name so that a crash leaves the old or the new one.
func (a *ApacheFiles) replace(text []byte, elem ...string) error {
	path := a.path(elem...)
	f, err := a.FS.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := a.FS.Rename(path+".tmp", path); err != nil {
		return err
	}
	dir, err := a.FS.OpenDir(a.FS.PathDir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

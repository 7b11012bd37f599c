package timer

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Apache RocketMQ keeps the same messages in three places below the store's folder: the
// timer log has a unit for each, the timer wheel a slot for each second that chains its
// units, and timercheck says how far it has come: which second is delivered next, and which
// message of the timers' queue gets its unit next. docs/formats/timer.md draws them.
//
// timercheck decides who was here last. The sums of what this server has written are in the
// database; a file with another sum was written by Apache, and its state replaces the index.

// ApacheFiles is where Apache's files are and how large they are made.
type ApacheFiles struct {
	FS    vfs.FS // nil: there are none
	Dir   string // the store's folder
	Slots int64  // of the wheel; 0 = 1,209,600
	Log   int64  // size of a file of the timer log; 0 = 100 MiB
}

const (
	unitSize   = 52
	blankSize  = 16
	slotSize   = 32
	checkSize  = 4096
	checkHead  = 56
	blankMagic = -875286124 // 0xBBCCDDEE xor 1880681594

	magicNormal = 1
	magicRoll   = 2

	grain      = 1000            // of the wheel's slots, in milliseconds
	rollWindow = 172_800 * grain // what is due later than that is moved on its way
)

// checkpoint is what timercheck says.
type checkpoint struct {
	readTime    int64 // the second that is delivered next
	logEnd      int64 // of the timer log
	queueOffset int64 // of the message that gets its unit next
	masterQueue int64
}

// text is the file's, of which all but checkHead bytes are empty.
func (c *checkpoint) text(now int64) []byte {
	b := make([]byte, checkSize)
	for i, v := range []int64{c.readTime, c.logEnd, c.queueOffset, c.masterQueue, 0, now, 1} {
		binary.BigEndian.PutUint64(b[8*i:], uint64(v))
	}
	return b
}

// Checkpoint is how far the timers are, as Apache's broker says it to others: all before the
// second that is delivered next has left, and the whole queue is in the index.
func (w *Wheel) Checkpoint() []byte {
	now := w.o.Clock.WallMilli()
	w.mu.Lock()
	next, earliest := w.mu.next, min(now, w.mu.edge.due)
	if len(w.mu.near) > 0 {
		earliest = min(earliest, w.mu.near[0].due)
	}
	for p := range w.mu.claims { // which may come to nothing
		earliest = min(earliest, p.due)
	}
	for i := range w.mu.later {
		earliest = min(earliest, w.mu.later[i].due)
	}
	w.mu.Unlock()
	c := checkpoint{readTime: earliest / grain * grain, queueOffset: next, masterQueue: next}
	return c.text(now)[:checkHead]
}

// ExportCounts is the text of Apache's timermetrics.
func (w *Wheel) ExportCounts() []byte {
	now := w.o.Clock.WallMilli()
	w.mu.Lock()
	defer w.mu.Unlock()
	var c remoting.TimerCounts
	c.TimingCount = make(map[string]remoting.WaitingCount)
	for topic, n := range w.mu.counts {
		at := cmp.Or(w.mu.counted[topic], now)
		c.TimingCount[topic] = remoting.WaitingCount{Count: n, TimeStamp: at}
		c.DataVersion.Timestamp = max(c.DataVersion.Timestamp, at)
	}
	for topic := range w.mu.arrived {
		c.DataVersion.Counter += w.mu.arrived[topic] + w.mu.delivered[topic]
	}
	return remoting.Marshal(&c)
}

func (a *ApacheFiles) path(elem ...string) string {
	return a.FS.PathJoin(append([]string{a.Dir}, elem...)...)
}

func (a *ApacheFiles) read(elem ...string) ([]byte, error) {
	f, err := a.FS.Open(a.path(elem...))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(f)
	return text, errors.Join(err, f.Close())
}

var keyOfSums = []byte{'s'} // the newest first

const sumsKept = 4

// foreign reads timercheck and reports whether another server has written it.
func (w *Wheel) foreign() (at checkpoint, text []byte, yes bool, err error) {
	if w.o.Files.FS == nil {
		return at, nil, false, nil
	}
	text, err = w.o.Files.read("config", "timercheck")
	if err != nil || len(text) < 32 || len(strings.Trim(string(text), "\x00")) == 0 {
		return at, nil, false, err
	}
	known, _, err := w.o.State.Get(state.Wheel, keyOfSums)
	if err != nil {
		return at, nil, false, err
	}
	sum := sha256.Sum256(text)
	for ; len(known) >= len(sum); known = known[len(sum):] {
		if string(known[:len(sum)]) == string(sum[:]) {
			return at, text, false, nil
		}
	}
	long := func(i int) int64 { return int64(binary.BigEndian.Uint64(text[8*i:])) }
	return checkpoint{long(0), long(1), long(2), long(3)}, text, true, nil
}

// remember makes the sum of a timercheck known, durably.
func (w *Wheel) remember(text []byte) error {
	known, _, err := w.o.State.Get(state.Wheel, keyOfSums)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	next := append(sum[:], known...)
	b := w.o.State.NewBatch()
	b.Put(state.Wheel, keyOfSums, next[:min(len(next), sumsKept*sha256.Size)])
	if err := w.o.State.Commit(b); err != nil {
		return err
	}
	return w.o.State.Sync()
}

// unit is a message in Apache's timer log.
type unit struct {
	due, physical int64
	size          int32
	at            int64 // where the unit is
}

// takeOver replaces the index by what Apache's server had. It is called in recovery, and once
// more after a crash in it.
func (w *Wheel) takeOver(at checkpoint, text []byte) error {
	if err := w.reset(); err != nil {
		return err
	}
	units, last, err := w.o.Files.units()
	if err != nil {
		return fmt.Errorf("read Apache's timer log: %w", err)
	}
	units = slices.DeleteFunc(units, func(u unit) bool { return u.due < at.readTime })
	im := &importing{w: w, at: at, recalled: make(map[string]struct{})}
	if err := im.units(units, true); err != nil {
		return err
	}
	high := w.o.Store.MaxOffset(names.WheelTimer, 0)
	from := max(min(at.queueOffset, at.masterQueue), w.o.Store.MinOffset(names.WheelTimer, 0))
	if last != nil {
		e, m, err := im.read(*last)
		if err != nil {
			return err
		}
		if m != nil {
			from = max(from, e.offset+1)
		}
	}
	if err := w.eachQueued(from, high, func(e *entry, m *message.Message) { im.noteRecall(m) }); err != nil {
		return err
	}
	if err := im.units(units, false); err != nil {
		return err
	}
	now := w.o.Clock.WallMilli()
	if err := w.eachQueued(from, high, func(e *entry, m *message.Message) { im.add(e, m, e.due <= now) }); err != nil {
		return err
	}
	w.mu.Lock()
	w.mu.next = high
	w.mu.Unlock()
	w.o.Log.Info("took over the timers of another server", "messages", im.added, "recalled", len(im.recalled), "queue", high)
	w.Settle()
	return w.remember(text)
}

// reset forgets the index.
func (w *Wheel) reset() error {
	b := w.o.State.NewBatch()
	b.DeletePrefix(state.Wheel, keyOfEntries)
	b.DeletePrefix(state.Wheel, keyOfCounts)
	w.mu.Lock()
	m := &w.mu
	m.near, m.edge = nil, place{}
	clear(m.gone)
	clear(m.counts)
	clear(m.recounts)
	clear(m.puts)
	clear(m.dels)
	w.mu.Unlock()
	return w.o.State.Commit(b)
}

// importing is a take-over on its way.
type importing struct {
	w        *Wheel
	at       checkpoint
	recalled map[string]struct{} // what was taken back, by time and unique key
	added    int
}

// units adds the messages of Apache's units, or, first, notes which of them take others back.
func (im *importing) units(list []unit, recalls bool) error {
	w := im.w
	for len(list) > 0 {
		batch := list[:min(len(list), wheelWindow)]
		list = list[len(batch):]
		entries := make([]entry, len(batch))
		for i, u := range batch {
			entries[i] = entry{physical: u.physical, size: u.size}
		}
		records, release := w.o.Store.ReadMany(placesOf(entries))
		for i := range batch {
			e, m, err := unitRecord(&batch[i], records[i])
			if err != nil {
				release()
				return err
			}
			switch {
			case m == nil:
			case recalls:
				im.noteRecall(m)
			default:
				// Of the second that it was about to deliver it may have delivered some.
				im.add(e, m, batch[i].due <= im.at.readTime+grain)
			}
		}
		release()
	}
	return nil
}

func (im *importing) read(u unit) (*entry, *message.Message, error) {
	records, release := im.w.o.Store.ReadMany(placesOf([]entry{{physical: u.physical, size: u.size}}))
	defer release()
	return unitRecord(&u, records[0])
}

// unitRecord is the message of a unit; nil when retention has removed it, or it is none.
func unitRecord(u *unit, record storage.PlaceRead) (*entry, *message.Message, error) {
	if record.Err != nil && !errors.Is(record.Err, storage.ErrNotFound) {
		return nil, nil, fmt.Errorf("read the message of a unit at %d: %w", u.physical, record.Err)
	}
	e, m := decodeQueued(record.Bytes, u.physical)
	return e, m, nil
}

func recallKey(m *message.Message, key string) string {
	return m.Properties.Value(message.PropertyTimerOutMs) + " " + key
}

func (im *importing) noteRecall(m *message.Message) {
	if key, ok := m.Properties.Get(message.PropertyTimerDeleteUniqKey); ok {
		im.recalled[strings.Clone(recallKey(m, key))] = struct{}{}
	}
}

// add adds a message that waits. One that may have been delivered is looked for in its topic.
func (im *importing) add(e *entry, m *message.Message, perhaps bool) {
	key, topic := m.UniqueID(), m.Properties.Value(message.PropertyRealTopic)
	if m.Properties.Has(message.PropertyTimerDeleteUniqKey) || strings.HasPrefix(topic, names.ReviveTopicPrefix) {
		return // POP takes its own over
	}
	for _, of := range []string{key, topic + "+" + key} { // which of them is a setting there
		if _, ok := im.recalled[recallKey(m, of)]; ok {
			return
		}
	}
	if perhaps && im.delivered(m, topic, key) {
		return
	}
	w := im.w
	w.mu.Lock()
	w.addLocked(*e)
	many := w.manyLocked()
	w.mu.Unlock()
	w.changed(many)
	w.ring(e)
	im.added++
}

func (im *importing) delivered(m *message.Message, topic, key string) bool {
	out := m.Properties.Value(message.PropertyTimerOutMs)
	// With an error there are those that were found until then. What may have been delivered or not
	// is delivered.
	records, _ := im.w.o.Store.QueryKey(topic, key, 0, m.StoreTimestamp, 1<<62)
	for i := range records {
		if p, ok := message.PropertiesOf(records[i].Bytes); ok && p.Value(message.PropertyTimerOutMs) == out {
			return true
		}
	}
	return false
}

// decodeQueued is a record of the timers' queue; nil when it is none.
func decodeQueued(record []byte, physical int64) (*entry, *message.Message) {
	m := new(message.Message)
	if record == nil {
		return nil, nil
	}
	if _, err := message.DecodeStored(record, m); err != nil || m.Topic != names.WheelTimer {
		return nil, nil
	}
	due, ok := message.TimerDue(m.Properties)
	if !ok {
		return nil, nil
	}
	return &entry{place{due, m.QueueOffset}, physical, int32(len(record)), message.TimerDelayed(m.Properties), m.Properties.Value(message.PropertyRealTopic)}, m
}

// units reads Apache's timer log, and which unit is the last of it.
func (a *ApacheFiles) units() (list []unit, last *unit, err error) {
	files, err := a.FS.List(a.path("timerlog"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(files)
	for _, name := range files {
		base, err := strconv.ParseInt(name, 10, 64)
		if err != nil {
			continue
		}
		file, err := a.FS.Open(a.path("timerlog", name))
		if err != nil {
			return nil, nil, err
		}
		list, err = unitsOf(file, base, list)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, nil, err
		}
	}
	if len(list) > 0 {
		last = &unit{}
		*last = list[len(list)-1]
	}
	return list, last, nil
}

func unitsOf(file io.ReaderAt, base int64, list []unit) ([]unit, error) {
	buf := make([]byte, unitSize*16384)
	for at := int64(0); ; {
		n, err := file.ReadAt(buf, at)
		for b := buf[:n]; ; b = b[unitSize:] {
			if len(b) < unitSize {
				at += int64(n - len(b))
				break
			}
			magic := int32(binary.BigEndian.Uint32(b[12:]))
			if binary.BigEndian.Uint32(b) != unitSize || magic|0xf != 0xf {
				return list, nil // the blank at the end of the file, or the end of the log
			}
			due := int64(binary.BigEndian.Uint64(b[16:])) + int64(int32(binary.BigEndian.Uint32(b[24:])))
			list = append(list, unit{due, int64(binary.BigEndian.Uint64(b[28:])), int32(binary.BigEndian.Uint32(b[36:])), base + at + int64(n-len(b))})
		}
		if err == io.EOF || n < unitSize {
			return list, nil
		}
		if err != nil {
			return list, err
		}
	}
}

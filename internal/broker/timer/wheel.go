package timer

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// WheelStore is what the wheel asks of the storage engine.
type WheelStore interface {
	Store
	ReadMany(places []storage.RecordPlace) (records []storage.PlaceRead, release func())
	QueryKey(topic, key string, max int, begin, end int64) ([]storage.Record, error)
	CatchUp()
	LogEnd() int64
	LogSynced() int64
}

// WheelOptions is what a Wheel needs.
type WheelOptions struct {
	Store   WheelStore
	State   *state.DB
	Publish *publish.Publisher
	// Topic finds the topic that a message goes to.
	Topic  func(name string) (*topic.Config, bool)
	Broker *config.Live[config.Broker]
	// Round runs what appends, and does at its end what that has caused.
	Round  func(appends func())
	Host   netip.AddrPort // of the records that it makes
	Clock  *clock.Clock
	Events WheelEvents
	// Near is how many of the next messages are kept in memory; 0 = 32,768.
	Near int
	// Files are those of Apache RocketMQ.
	Files ApacheFiles
	Log   *slog.Logger
}

// WheelEvents tell what happened; each may be nil.
type WheelEvents struct {
	Delivered func(topic string, late time.Duration)
	Dropped   func(topic string) // the topic is gone, or what was to be delivered can't be read
}

// Wheel is the messages that are due at a time of their own. They lie in the topic of
// Apache's timer wheel in the log; where each of them is, by due time, is in the state
// database, and of the next ones in memory.
//
// A message is named by its place: due time and offset in the timers' queue. The index
// follows the dispatcher: a record that arrives adds its place, a record that names a place
// as its source ends it, be it the copy in the real topic, a recall, or the same message
// again, moved to the log's end. So what dispatch replays after a crash leaves the same
// index, whatever of it was stored before.
//
// What changes is collected and stored with a delay; a message that comes and goes within it
// is never stored. What the index says is never durable before the log is: see storing.
//
// mu guards everything below it and is held across neither a read nor an append. One
// goroutine delivers; recalls and moves claim a place first, and only one claim wins.
type Wheel struct {
	o     WheelOptions
	alarm *clock.Alarm
	moved chan struct{} // a place has ended
	flow  flow          // the loop's
	work  work          // the loop's, which no other goroutine touches
	// waveLeast is from how many on messages that have ended are a wave.
	waveLeast int
	// horizon is for who wants figures.
	horizon horizon
	mu      struct {
		sync.Mutex
		near               entries             // a heap: all that are due before edge and not claimed for delivery
		edge               place               // from here on they are in the database only
		gone               map[place]struct{}  // ended, and still in near
		claims             map[place]claim     // being delivered, recalled or moved
		later              []entry             // could not be written and are tried again at retryAt
		retryAt            int64               // by the protocol's time
		delays             delays              // how far takeDelays has come
		counts             map[string]int64    // by topic
		recounts           map[string]struct{} // counts to be stored
		counted            map[string]int64    // when a count was stored last
		arrived, delivered map[string]int64    // by topic, since the start
		next               int64               // offset in the timers' queue that the index goes up to
		changes                                // to be stored
		sent               storing
		loading            map[place]struct{}  // not nil while the window is loaded: ended since that began
		passed             changes             // stored since that began
		replay             bool                // recovery is not over: the database may know more than memory
		eager              bool                // changes are stored with the first commit that comes
		settle             bool                // and so are those of now
		storedAt           time.Time           // when changes were put together last
		names              map[string]string   // one copy of each topic's name
		sweeps             map[string]struct{} // topics that are gone, of what waits to be dropped
	}
}

// place names a message.
type place struct{ due, offset int64 }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.due, q.due), cmp.Compare(p.offset, q.offset))
}

var noEdge = place{math.MaxInt64, math.MaxInt64}

// entry is a message that waits.
type entry struct {
	place
	physical int64
	size     int32
	relative bool   // its sender has given a delay
	topic    string // where it goes
}

// claim is a place that somebody works on.
type claim struct {
	entry
	popped   bool // it is not in near
	delivery bool
	recalls  []func(error) // of a recall: who asked for it
}

const (
	nearMost   = 1 << 15
	nearOfWave = 64 // a wave is this part of what is kept in memory
)

// OpenWheel returns the wheel with what was stored of it. It is opened before the store.
func OpenWheel(o WheelOptions) (*Wheel, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Near == 0 {
		o.Near = nearMost
	}
	w := &Wheel{o: o, moved: make(chan struct{}, 1), waveLeast: max(o.Near/nearOfWave, 2)}
	m := &w.mu
	m.gone, m.claims = make(map[place]struct{}), make(map[place]claim)
	m.counted = make(map[string]int64)
	m.counts, m.recounts, m.names = make(map[string]int64), make(map[string]struct{}), make(map[string]string)
	m.puts, m.dels = make(map[place]entry), make(map[place]struct{})
	m.sweeps = make(map[string]struct{})
	m.arrived, m.delivered = make(map[string]int64), make(map[string]int64)
	m.replay, m.eager = true, true
	text, ok, err := o.State.Get(state.Wheel, keyOfProgress)
	if err != nil {
		return nil, err
	}
	if ok && len(text) == 8 {
		m.next = int64(binary.BigEndian.Uint64(text))
	}
	err = o.State.Scan(state.Wheel, keyOfCounts, func(key, value []byte) error {
		if len(value) != 8 {
			return fmt.Errorf("the count of timers %x = %x is not readable", key, value)
		}
		name := w.nameLocked(string(key[1:]))
		m.counts[name], m.counted[name] = int64(binary.BigEndian.Uint64(value)), o.Clock.WallMilli()
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.alarm = o.Clock.NewAlarm()
	w.alarm.Earlier(o.Clock.NowMilli()) // so that nobody moves the clock past the first look
	return w, nil
}

// Arrived adds a message that was dispatched into the timers' queue.
func (w *Wheel) Arrived(d *storage.Dispatched) {
	e := entry{place{d.Due, d.QueueOffset}, d.PhysicalOffset, d.Size, d.Relative, d.RealTopic}
	waits := d.Due > 0 && w.hasTopic(d.RealTopic, d.PhysicalOffset)
	w.mu.Lock()
	dropped := d.Due > 0 && !waits && !w.mu.replay // of what comes again nobody knows: it may have left in time
	w.mu.next = max(w.mu.next, d.QueueOffset+1)
	if waits {
		w.addLocked(e)
	}
	many := w.manyLocked()
	w.mu.Unlock()
	w.changed(many)
	switch {
	case waits:
		w.ring(&e)
	case dropped && w.o.Events.Dropped != nil:
		w.o.Events.Dropped(d.RealTopic)
	}
}

// addLocked adds a message to the index. What the database has already is not counted again.
func (w *Wheel) addLocked(e entry) {
	m := &w.mu
	if m.replay && w.knownLocked(e.place) {
		return
	}
	e.topic = w.nameLocked(e.topic)
	w.lookAgainLocked(&e)
	delete(m.dels, e.place)
	m.puts[e.place] = e
	w.countLocked(e.topic, 1)
	m.arrived[e.topic]++
	if e.place.compare(m.edge) < 0 {
		w.pushLocked(e)
	}
}

// knownLocked reports whether a place waits already.
func (w *Wheel) knownLocked(p place) bool {
	_, ok := w.findLocked(p)
	return ok
}

// findLocked is a message that waits. It reads the database where memory does not know.
func (w *Wheel) findLocked(p place) (entry, bool) {
	m := &w.mu
	if c, ok := m.claims[p]; ok {
		return c.entry, true
	}
	if e, waits, known := w.unstoredLocked(p); known {
		return e, waits
	}
	text, ok, err := w.o.State.Get(state.Wheel, keyOfEntry(p))
	if err != nil || !ok {
		return entry{}, false
	}
	return w.entryLocked(p, text)
}

func (w *Wheel) countLocked(topic string, n int64) {
	w.mu.counts[topic] += n
	w.mu.recounts[topic] = struct{}{}
}

func (w *Wheel) nameLocked(name string) string {
	known, ok := w.mu.names[name]
	if !ok {
		known = strings.Clone(name)
		w.mu.names[known] = known
	}
	return known
}

const wheelSource = "timer/"

func (p place) source() string { return string(p.appendSource(nil)) }

func (p place) appendSource(b []byte) []byte {
	b = append(strconv.AppendInt(append(b, wheelSource...), p.due, 10), '/')
	return strconv.AppendInt(b, p.offset, 10)
}

func placeOfSource(s string) (p place, ok bool) {
	s, ok = strings.CutPrefix(s, wheelSource)
	if !ok {
		return p, false
	}
	a, b, _ := strings.Cut(s, "/")
	due, err1 := strconv.ParseInt(a, 10, 64)
	offset, err2 := strconv.ParseInt(b, 10, 64)
	return place{due, offset}, err1 == nil && err2 == nil
}

// Dispatched notes that what a place became is in its queue, which ends the place. It reports
// whether source is the wheel's.
func (w *Wheel) Dispatched(source string) bool {
	p, ok := placeOfSource(source)
	if ok {
		w.end(p)
	}
	return ok
}

// drop ends a message that has nowhere to go, or is not there any more.
func (w *Wheel) drop(e *entry) (was bool) {
	was = w.end(e.place)
	if was && w.o.Events.Dropped != nil {
		w.o.Events.Dropped(e.topic)
	}
	return was
}

// end takes a message out of the index, whoever knows that it has left. It reports whether the
// message was there.
func (w *Wheel) end(p place) (was bool) {
	m := &w.mu
	m.Lock()
	e, ok := w.findLocked(p)
	if !ok {
		m.Unlock()
		return false
	}
	c := m.claims[p]
	delete(m.claims, p)
	if p.compare(m.edge) < 0 && !c.popped {
		m.gone[p] = struct{}{}
	}
	if m.loading != nil {
		m.loading[p] = struct{}{}
	}
	_, fresh := m.puts[p]
	delete(m.puts, p)
	if _, stored := m.sent.puts[p]; !fresh || stored || m.replay {
		m.dels[p] = struct{}{}
	}
	w.countLocked(e.topic, -1)
	m.delivered[e.topic]++
	many := w.manyLocked()
	m.Unlock()
	w.changed(many)
	for _, done := range c.recalls {
		done(nil)
	}
	select {
	case w.moved <- struct{}{}:
	default:
	}
	return true
}

var (
	keyOfProgress = []byte{'w'}
	keyOfCounts   = []byte{'n'} // and the topic's name
	keyOfEntries  = []byte{'t'} // and the place
)

// keyOfEntry: 't', the due time and the queue offset in eight bytes each, so that the keys
// are in the order in which messages are due, and of one time in that of their sends.
func keyOfEntry(p place) []byte { return p.appendKey(make([]byte, 0, 17)) }

func (p place) appendKey(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(append(b, 't'), uint64(p.due)), uint64(p.offset))
}

func placeOfKey(key []byte) (place, bool) {
	if len(key) != 17 {
		return place{}, false
	}
	return place{int64(binary.BigEndian.Uint64(key[1:])), int64(binary.BigEndian.Uint64(key[9:]))}, true
}

// appendValue: the log offset in eight bytes, the size in four, of which the highest bit says
// that the sender has given a delay, and the topic's name.
func (e *entry) appendValue(b []byte) []byte {
	size := uint32(e.size)
	if e.relative {
		size |= relativeBit
	}
	b = binary.BigEndian.AppendUint64(b, uint64(e.physical))
	b = binary.BigEndian.AppendUint32(b, size)
	return append(b, e.topic...)
}

const relativeBit = 1 << 31

// decodeEntry reads what appendValue wrote, all but the topic's name, which it returns.
func decodeEntry(p place, value []byte) (e entry, topic []byte, ok bool) {
	if len(value) < 12 {
		return entry{}, nil, false
	}
	size := binary.BigEndian.Uint32(value[8:])
	return entry{place: p, physical: int64(binary.BigEndian.Uint64(value)), size: int32(size &^ relativeBit), relative: size&relativeBit != 0}, value[12:], true
}

func (w *Wheel) entryLocked(p place, value []byte) (entry, bool) {
	e, topic, ok := decodeEntry(p, value)
	if ok {
		if e.topic, ok = w.mu.names[string(topic)]; !ok { // found without a copy of it
			e.topic, ok = w.nameLocked(string(topic)), true
		}
	}
	return e, ok
}

// Clamp ends recovery: where another server was here, what it had is taken over; where the
// log goes on behind what the index knows, the rest is read.
func (w *Wheel) Clamp() error {
	at, text, foreign, err := w.foreign()
	switch {
	case err != nil:
	case foreign:
		err = w.takeOver(at, text)
	default:
		err = w.catchUp()
	}
	w.mu.Lock()
	w.mu.replay = false
	w.mu.Unlock()
	w.changed(true)
	w.sweepLeft()
	return err
}

func (w *Wheel) catchUp() error {
	low, high := w.o.Store.MinOffset(names.WheelTimer, 0), w.o.Store.MaxOffset(names.WheelTimer, 0)
	w.mu.Lock()
	was := w.mu.next
	w.mu.next = high
	w.mu.Unlock()
	if was == high {
		return nil
	}
	w.o.Log.Warn("the index of the timers was not where their queue is", "was", was, "is", high)
	return w.eachQueued(max(was, low), high, func(e *entry, m *message.Message) {
		if m.Properties.Has(message.PropertyTimerDeleteUniqKey) {
			return
		}
		w.mu.Lock()
		w.addLocked(*e)
		w.mu.Unlock()
		w.ring(e)
	})
}

// Run delivers what falls due until ctx ends.
func (w *Wheel) Run(ctx context.Context) error {
	defer w.alarm.Stop()
	w.setEager(false)
	defer w.setEager(true)
	for {
		if err := w.alarm.Wait(ctx); err != nil {
			return err
		}
		began := time.Now()
		if err := w.sweep(ctx); err != nil {
			return err
		}
		if err := w.deliver(ctx); err != nil {
			return err
		}
		if err := w.deliverDelays(ctx); err != nil {
			return err
		}
		if err := w.settle(ctx); err != nil {
			return err
		}
		w.nextLook()
		sleep(ctx, time.Until(w.nextRound(began)))
	}
}

// setEager has changes stored at once: before and after the loops run nothing is worth
// waiting for.
func (w *Wheel) setEager(yes bool) {
	w.mu.Lock()
	w.mu.eager = yes
	w.mu.Unlock()
	if yes {
		w.o.State.CommitSource(w)
	}
}

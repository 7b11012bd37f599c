package timer

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Counts are how many messages wait for a time of their own, by the topic that they go to.
// One is counted until its copy there can be read.
func (w *Wheel) Counts() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := maps.Clone(w.mu.counts)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

// Waiting is a message that waits for its time.
type Waiting struct {
	Topic    string
	Due      int64  // what the machine's clock will show then
	UniqKey  string // "" when its record can't be read
	Size     int32  // of its record
	Recalled bool   // it is being taken back
}

// List are the next messages of a topic, or of all, that wait for their time. A delay that ends
// before the machine's clock shows it, because that was set back, is listed with what it will
// show; which messages are the next is not asked anew for it.
func (w *Wheel) List(topic string, limit int) ([]Waiting, error) {
	var list []entry
	m := &w.mu
	wanted := func(e *entry) bool { return topic == "" || e.topic == topic }
	m.Lock()
	seen := make(map[place]struct{})
	w.eachUnstoredLocked(func(e entry) {
		if wanted(&e) {
			seen[e.place] = struct{}{}
			list = append(list, e)
		}
	})
	m.Unlock()
	stored := 0
	err := w.o.State.Scan(state.Wheel, keyOfEntries, func(key, value []byte) error {
		p, ok := placeOfKey(key)
		if !ok {
			return nil
		}
		m.Lock()
		defer m.Unlock()
		e, ok := w.entryLocked(p, value)
		if _, twice := seen[p]; !ok || twice || !wanted(&e) || w.endedLocked(p) {
			return nil
		}
		list = append(list, e)
		if stored++; stored >= limit {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	slices.SortFunc(list, func(a, b entry) int { return a.compare(b.place) })
	list = list[:min(len(list), limit)]
	records, release := w.o.Store.ReadMany(placesOf(list))
	defer release()
	out := make([]Waiting, len(list))
	now, wall := w.o.Clock.Read()
	for i := range list {
		e := &list[i]
		out[i] = Waiting{Topic: e.topic, Due: e.due, Size: e.size}
		if e.relative {
			out[i].Due -= now - wall
		}
		var msg message.Message
		if w.read(&msg, e, records[i]) == nil {
			out[i].UniqKey = strings.Clone(msg.UniqueID())
		}
		m.Lock()
		c := m.claims[e.place]
		m.Unlock()
		out[i].Recalled = c.recalls != nil
	}
	slices.SortStableFunc(out, func(a, b Waiting) int { return cmp.Compare(a.Due, b.Due) })
	return out, nil
}

// Figures are the wheel's numbers of now.
type Figures struct {
	Waiting   int64
	Behind    int64 // messages of the queue that are not in the index yet
	Late      int64 // how long the next message has been due, in milliseconds; 0: it is not
	Arrived   map[string]int64
	Delivered map[string]int64
	Within    []Bound // not older than a scan of the next day allows
}

// Bound is how many messages are due within a time.
type Bound struct {
	Seconds  int64
	Messages int64
}

// bounds are Apache's.
var bounds = []int64{5, 60, 300, 900, 3600, 14_400, 28_800, 86_400}

// Figures counts what waits.
func (w *Wheel) Figures() (f Figures, err error) {
	now := w.o.Clock.WallMilli()
	m := &w.mu
	m.Lock()
	for _, n := range m.counts {
		f.Waiting += n
	}
	f.Arrived, f.Delivered = maps.Clone(m.arrived), maps.Clone(m.delivered)
	if len(m.near) > 0 && m.near[0].due < now {
		f.Late = now - m.near[0].due
	}
	m.Unlock()
	f.Within, err = w.horizon.get(func() ([]Bound, error) { return w.within(now) })
	return f, err
}

// horizon is how many messages were due within which time when that was counted last. A count
// that took long serves two hundred times as long, so that whoever asks often does not keep
// the server busy.
type horizon struct {
	mu     sync.Mutex
	within []Bound
	until  time.Time
}

const (
	horizonServes = 200
	horizonCheap  = 2 * time.Millisecond // what takes no longer is counted each time
)

func (h *horizon) get(count func() ([]Bound, error)) ([]Bound, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := time.Now()
	if began.Before(h.until) {
		return h.within, nil
	}
	within, err := count()
	if took := time.Since(began); err == nil && took > horizonCheap {
		h.within, h.until = within, began.Add(horizonServes*took)
	}
	return within, err
}

// within counts by due time. Of what is in the database it reads the keys of the next day.
func (w *Wheel) within(now int64) ([]Bound, error) {
	out := make([]Bound, len(bounds))
	for i, s := range bounds {
		out[i].Seconds = s
	}
	count := func(due int64) {
		for i := range bounds {
			if due <= now+bounds[i]*1000 {
				out[i].Messages++ // of all that are due until then, as at Apache's
				break
			}
		}
	}
	m := &w.mu
	m.Lock()
	seen := make(map[place]struct{})
	w.eachUnstoredLocked(func(e entry) {
		seen[e.place] = struct{}{}
		count(e.due)
	})
	m.Unlock()
	last := keyOfEntry(place{now + bounds[len(bounds)-1]*1000, 0})
	err := w.o.State.Scan(state.Wheel, keyOfEntries, func(key, _ []byte) error {
		if string(key) > string(last) {
			return errEnough
		}
		p, ok := placeOfKey(key)
		if _, twice := seen[p]; !ok || twice {
			return nil
		}
		m.Lock()
		ended := w.endedLocked(p)
		m.Unlock()
		if !ended {
			count(p.due)
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, err
}

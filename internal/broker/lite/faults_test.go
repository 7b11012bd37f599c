package lite

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// faulty is a store of one queue with messages 0 to end-1, whose times can't be read while
// times is nil.
type faulty struct {
	Store
	min, end int64
	times    func(offset int64) int64
}

func (f *faulty) MinOffset(string, int32) int64 { return f.min }
func (f *faulty) MaxOffset(string, int32) int64 { return f.end }
func (f *faulty) LightTime(queue string) int64  { return f.StoreTimeAt(queue, 0, f.end-1) }
func (f *faulty) StoreTimeAt(_ string, _ int32, offset int64) int64 {
	if f.times == nil {
		return -1
	}
	return f.times(offset)
}

func TestReadFaultExpiresNothing(t *testing.T) {
	s := &faulty{end: 5}
	r := &Registry{o: Options{Store: s}}
	if r.silent("q", 5, 1000) {
		t.Error("a lite topic expires because its last message can't be read")
	}
	s.times = func(int64) int64 { return 1000 }
	if !r.silent("q", 5, 1000) || r.silent("q", 5, 999) {
		t.Error("a lite topic expires by the time of its last message")
	}
	if s.times, s.min = nil, 5; !r.silent("q", 5, 1000) {
		t.Error("one whose messages are gone with their log files stays")
	}
}

// An event whose pop fails stays an event: there may be no message after it that makes it one.
func TestFailedPopKeepsTheEvent(t *testing.T) {
	r := &Registry{o: Options{Log: slog.New(slog.DiscardHandler)}}
	c := &client{id: "c", group: "g"}
	r.mu.clients = map[string]*client{"c": c}
	v := &receive{r: r, q: Request{ClientID: "c", Group: "g"}}
	v.took("q", pop.Result{}, errors.New("the disk is gone"))
	if !slices.Equal(c.events.list, []string{"q"}) {
		t.Errorf("events %v", c.events.list)
	}
	c.events.take()
	if v.took("q", pop.Result{}, pop.ErrTopicNotFound); len(c.events.list) > 0 {
		t.Error("a lite topic that is gone stays an event")
	}
}

// A look that was cut short is done once more, and its event stays. It is no reason to look
// again at once after that.
func TestLookThatWasCutShort(t *testing.T) {
	r := &Registry{o: Options{Log: slog.New(slog.DiscardHandler)}}
	c := &client{id: "c", group: "g"}
	r.mu.clients = map[string]*client{"c": c}
	v := &receive{r: r, q: Request{ClientID: "c", Group: "g"}}
	for _, want := range []bool{true, false} {
		v.tried = map[string]bool{"q": true}
		v.took("q", pop.Result{Status: pop.PollingTimeout, Missed: true}, nil)
		if !slices.Equal(c.events.list, []string{"q"}) || v.tried["q"] == want || v.hasFresh() {
			t.Errorf("events %v, tried %v; fresh ones: %v", c.events.list, v.tried, v.hasFresh())
		}
	}
	if c.events.add("other"); !v.hasFresh() {
		t.Error("what came meanwhile is not seen")
	}
	if v.took("other", pop.Result{Status: pop.PollingTimeout}, nil); len(c.events.list) != 2 {
		t.Errorf("events %v", c.events.list)
	}
}

// A look that has not come to the queue's end yet is gone on with, for as long as the receive
// may wait.
func TestLookThatHasNotEnded(t *testing.T) {
	r := &Registry{o: Options{Log: slog.New(slog.DiscardHandler)}}
	c := &client{id: "c", group: "g"}
	r.mu.clients = map[string]*client{"c": c}
	v := &receive{r: r, q: Request{ClientID: "c", Group: "g"}}
	for range 3 {
		v.tried = map[string]bool{"q": true}
		v.took("q", pop.Result{Status: pop.PollingTimeout, More: true}, nil)
		if !v.tried["q"] || !v.hasFresh() {
			t.Fatalf("tried %v; fresh ones: %v", v.tried, v.hasFresh())
		}
		c.events.take()
	}
}

type oneTopic struct{}

func (oneTopic) All() []*topic.Config { return nil }
func (oneTopic) Get(string) (*topic.Config, bool) {
	return &topic.Config{Name: "P", Attributes: map[string]string{"message.type": "LITE"}}, true
}

type oneGroup struct{ attributes map[string]string }

func (oneGroup) All() []*group.Config { return nil }
func (o oneGroup) Get(string) (*group.Config, bool) {
	g := group.New("g")
	g.Attributes = map[string]string{"lite.bind.topic": "P"}
	maps.Copy(g.Attributes, o.attributes)
	return g, true
}

// watched is a store and a table of offsets that notice who asks them.
type watched struct {
	faulty
	asked func()
	at    int64
}

func (w *watched) MinOffset(queue string, id int32) int64 {
	w.asked()
	return w.faulty.MinOffset(queue, id)
}
func (w *watched) MaxOffset(queue string, id int32) int64 {
	w.asked()
	return w.faulty.MaxOffset(queue, id)
}
func (w *watched) StoreTimeAt(queue string, id int32, offset int64) int64 {
	w.asked()
	return w.faulty.StoreTimeAt(queue, id, offset)
}
func (w *watched) EachLight(prefix string, f func(queue string, end int64) bool) {
	w.asked()
	f(prefix+"a", w.end)
}
func (w *watched) Query(string, string, int32) (int64, bool) { w.asked(); return w.at, true }
func (w *watched) Reset(_, _ string, _ int32, offset int64)  { w.asked(); w.at = offset }
func (w *watched) Delete(string, string) error               { return nil }

// The dispatcher takes mu, so nobody asks the store or the offsets while he holds it: they may
// read a disk.
func TestStoreAndOffsetsAreAskedWithoutTheLock(t *testing.T) {
	exclusive := map[string]string{"lite.sub.model": "Exclusive", "lite.sub.reset.offset.exclusive": "true", "lite.sub.reset.offset.unsubscribe": "true"}
	for _, c := range []struct {
		what       string
		attributes map[string]string
		syncs      []Subscription
		want       int64 // the group's offset; it begins at 2 of 5
	}{
		{"time", nil, []Subscription{{Action: PartialAdd, From: From{Kind: FromTime, Value: 4}}}, 4},
		{"end", nil, []Subscription{{Action: PartialAdd, From: From{Kind: FromMax}}}, 5},
		{"beyond the end", nil, []Subscription{{Action: PartialAdd, From: From{Kind: FromOffset, Value: 99}}}, 5},
		{"tail", nil, []Subscription{{Action: PartialAdd, From: From{Kind: FromTail, Value: 1}}}, 1},
		{"taken from another", exclusive, []Subscription{{Action: PartialAdd, ClientID: "other"}, {Action: PartialAdd}}, 0},
		{"given up", exclusive, []Subscription{{Action: PartialAdd}, {Action: PartialRemove}}, 0},
		{"these", nil, []Subscription{{Action: CompleteAdd}}, 2},
		{"all of the parent", map[string]string{"lite.sub.wildcard": "true"}, []Subscription{{Action: CompleteAdd}}, 2},
	} {
		r := New(Options{Topics: oneTopic{}, Groups: oneGroup{c.attributes}, Broker: config.NewLive(config.DefaultBroker()), Clock: clock.New(), LongPoll: longpoll.New(longpoll.Limits{})})
		w := &watched{faulty: faulty{end: 5, times: func(offset int64) int64 { return offset }}, at: 2}
		asked := 0
		w.asked = func() {
			if asked++; !r.mu.TryLock() {
				t.Fatalf("%s: asked under the lock", c.what)
			}
			r.mu.Unlock()
		}
		r.o.Store, r.o.Offsets = w, w
		for _, s := range c.syncs {
			s.ClientID, s.Group, s.Topic, s.Lites = cmp.Or(s.ClientID, "c"), "g", "P", []string{"a"}
			if err := r.Sync(s); err != nil {
				t.Fatalf("%s: %v", c.what, err)
			}
		}
		if asked == 0 || w.at != c.want {
			t.Errorf("%s: asked %d times; at %d, want %d", c.what, asked, w.at, c.want)
		}
		r.Close()
	}
}

// A client gets nothing of a lite topic that it has subscribed to before the group's offset is
// where it asked for, whatever arrives meanwhile, and is woken for that then.
func TestNothingIsTakenBeforeTheOffsetHasMoved(t *testing.T) {
	for _, attributes := range []map[string]string{nil, {"lite.sub.model": "Exclusive", "lite.sub.reset.offset.exclusive": "true"}} {
		r := New(Options{Topics: oneTopic{}, Groups: oneGroup{attributes}, Broker: config.NewLive(config.DefaultBroker()), Clock: clock.New(), LongPoll: longpoll.New(longpoll.Limits{Total: 10})})
		w := &watched{faulty: faulty{end: 5, times: func(offset int64) int64 { return offset }}, asked: func() {}}
		r.o.Store, r.o.Offsets = w, w
		queue := names.Lite("P", "a")
		sync := func(id string) {
			if err := r.Sync(Subscription{Action: PartialAdd, ClientID: id, Group: "g", Topic: "P", Lites: []string{"a"}, From: From{Kind: FromMax}}); err != nil {
				t.Fatal(err)
			}
		}
		v := &receive{r: r, q: Request{ClientID: "c", Group: "g"}}
		woken, asked := 0, 0
		if attributes != nil {
			sync("other") // c takes the lite topic from it
		}
		if err := r.o.LongPoll.Park(&longpoll.Waiter{Key: waitKey("g", "c"), Deadline: time.Now().Add(time.Hour), Wake: func(longpoll.Reason) { woken++ }}); err != nil {
			t.Fatal(err)
		}
		w.asked = func() {
			asked++
			r.Arrived(queue)
			if got, ok := v.next(); ok || woken > 0 || v.hasFresh() {
				t.Fatalf("%v: question %d: took %q; woken %d times", attributes, asked, got, woken)
			}
		}
		sync("c")
		if got, _ := v.next(); asked == 0 || got != queue || woken != 1 || w.at != 5 {
			t.Errorf("%v: after %d questions took %q at %d; woken %d times", attributes, asked, got, w.at, woken)
		}
		r.Close()
	}
}

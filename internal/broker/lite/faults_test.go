package lite

import (
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
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

type oneTopic struct{}

func (oneTopic) All() []*topic.Config { return nil }
func (oneTopic) Get(string) (*topic.Config, bool) {
	return &topic.Config{Name: "P", Attributes: map[string]string{"message.type": "LITE"}}, true
}

type oneGroup struct{}

func (oneGroup) All() []*group.Config { return nil }
func (oneGroup) Get(string) (*group.Config, bool) {
	g := group.New("g")
	g.Attributes = map[string]string{"lite.bind.topic": "P", "lite.sub.client.quota": "-1"}
	return g, true
}

type oneOffset struct{ at int64 }

func (o *oneOffset) Query(string, string, int32) (int64, bool) { return o.at, true }
func (o *oneOffset) Reset(_, _ string, _ int32, offset int64)  { o.at = offset }
func (o *oneOffset) Delete(string, string) error               { return nil }

// The dispatcher takes mu, so nobody may read the log while he holds it.
func TestSubscribingByTimeReadsWithoutTheLock(t *testing.T) {
	r := &Registry{}
	offsets := &oneOffset{at: 5}
	read := false
	r.o = Options{Topics: oneTopic{}, Groups: oneGroup{}, Offsets: offsets, Broker: config.NewLive(config.DefaultBroker()),
		Store: &faulty{end: 5, times: func(offset int64) int64 {
			if read = true; !r.mu.TryLock() {
				t.Error("the log is read under the lock")
			} else {
				r.mu.Unlock()
			}
			return offset
		}}}
	r.mu.clients, r.mu.topics = make(map[string]*client), make(map[string]*liteTopic)
	err := r.Sync(Subscription{Action: PartialAdd, ClientID: "c", Group: "g", Topic: "P", Lites: []string{"a"}, From: From{Kind: FromTime, Value: 5}})
	if err != nil || !read || offsets.at != 5 {
		t.Errorf("%v; read: %v, at %d", err, read, offsets.at)
	}
}

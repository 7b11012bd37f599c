package pull

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// fakeStore is queues of tags codes in memory.
type fakeStore struct {
	mu     sync.Mutex
	min    int64
	queues map[string][]int64
	times  map[string][]int64
}

func at(topic string, queue int32) string { return fmt.Sprintf("%s@%d", topic, queue) }

func (s *fakeStore) put(topic string, queue int32, code, storedAt int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := at(topic, queue)
	s.queues[k] = append(s.queues[k], code)
	s.times[k] = append(s.times[k], storedAt)
	return int64(len(s.queues[k]) - 1)
}

func (s *fakeStore) Read(r storage.ReadRequest) (res storage.ReadResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[at(r.Topic, r.QueueID)]
	res.Min, res.Max, res.Next = s.min, int64(len(q)), r.Offset
	switch {
	case !ok:
		res.Status, res.Next = storage.NoMatchedQueue, 0
	case r.Offset < s.min:
		res.Status, res.Next = storage.OffsetTooSmall, s.min
	case r.Offset == res.Max:
		res.Status = storage.OffsetOverflowOne
	case r.Offset > res.Max:
		res.Status, res.Next = storage.OffsetOverflowBadly, res.Max
	default:
		res.Status = storage.NoMatchedMessage
		for ; res.Next < res.Max && len(res.Records) < r.MaxMessages; res.Next++ {
			if r.Filter.MatchTagsCode(q[res.Next]) {
				res.Status = storage.Found
				res.Records = append(res.Records, storage.Record{QueueOffset: res.Next})
			}
		}
	}
	return res
}

func (s *fakeStore) MinOffset(string, int32) int64 { return s.min }

func (s *fakeStore) MaxOffset(topic string, queue int32) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.queues[at(topic, queue)]))
}

func (s *fakeStore) StoreTimeAt(topic string, queue int32, off int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.times[at(topic, queue)]; off < int64(len(t)) {
		return t[off]
	}
	return -1
}

type channel struct{}

func (*channel) RemoteAddr() netip.AddrPort { return netip.AddrPort{} }
func (*channel) ConsumersChanged(string)    {}
func (*channel) Close()                     {}

type fixture struct {
	*Puller
	store *fakeStore
	now   int64
	live  *config.Live[config.Broker]
	o     Options
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{now: 1000, live: config.NewLive(config.DefaultBroker()),
		store: &fakeStore{queues: map[string][]int64{}, times: map[string][]int64{}}}
	must := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	var err error
	f.o = Options{Store: f.store, Broker: f.live, NowMilli: func() int64 { return f.now }, LongPoll: longpoll.New(longpoll.Limits{Total: 3})}
	f.o.Topics, err = topic.Open(topic.Options{Config: f.live})
	must(err)
	f.o.Groups, err = group.Open(group.Options{Config: f.live})
	must(err)
	f.o.Offsets, err = offset.Open(offset.Options{})
	must(err)
	f.o.Clients = clients.New(clients.Options{Config: f.live, Topics: f.o.Topics, Groups: f.o.Groups})
	must(f.o.Topics.Put(&topic.Config{Name: "T", ReadQueues: 2, WriteQueues: 2, Perm: 6}))
	must(f.o.Topics.Put(&topic.Config{Name: "WriteOnly", ReadQueues: 2, WriteQueues: 2, Perm: 2}))
	f.Puller = New(f.o)
	f.heartbeat(clients.Clustering, clients.Subscription{Topic: "T", Expression: "*", Version: 5})
	return f
}

func (f *fixture) heartbeat(model string, subs ...clients.Subscription) {
	f.o.Clients.Heartbeat(clients.Heartbeat{Client: clients.Client{ID: "c", Channel: &channel{}},
		Consumers: []clients.Consumer{{Group: "g", Type: clients.ConsumePassively, Model: model, Subscriptions: subs}}}, func(clients.Result) {})
}

// pull asks and expects an answer at once.
func (f *fixture) pull(t *testing.T, r Request) (res Result, err error) {
	t.Helper()
	called := 0
	f.Pull(r, func(got Result, e error) { called++; res, err = got, e })
	if called != 1 {
		t.Fatalf("done was called %d times", called)
	}
	return res, err
}

func request() Request { return Request{Group: "g", Topic: "T", MaxMessages: 32} }

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		name string
		tune func(f *fixture, r *Request)
		want error
	}{
		{"fine", nil, nil},
		{"broker unreadable", func(f *fixture, r *Request) { f.change(func(b *config.Broker) { b.BrokerPermission = 2 }) }, ErrBrokerUnreadable},
		{"unknown group", func(f *fixture, r *Request) {
			r.Group = "new"
			f.change(func(b *config.Broker) { b.AutoCreateSubscriptionGroup = false })
		}, ErrGroupNotFound},
		{"illegal group", func(f *fixture, r *Request) { r.Group = "a b" }, ErrGroupNotFound},
		{"group disabled", func(f *fixture, r *Request) {
			g := group.New("g")
			g.ConsumeEnable = false
			f.o.Groups.Put(g)
		}, ErrGroupDisabled},
		{"unknown topic", func(f *fixture, r *Request) { r.Topic = "Nope" }, ErrTopicNotFound},
		{"write only", func(f *fixture, r *Request) { r.Topic = "WriteOnly" }, ErrTopicUnreadable},
		{"queue below", func(f *fixture, r *Request) { r.QueueID = -1 }, ErrQueueIllegal},
		{"queue above", func(f *fixture, r *Request) { r.QueueID = 2 }, ErrQueueIllegal},
		{"expression of unknown kind", func(f *fixture, r *Request) { r.Subscribed, r.Kind, r.Expression = true, "WHAT", "x" }, ErrFilterOff},
		{"property filter off", func(f *fixture, r *Request) {
			r.Subscribed, r.Kind, r.Expression = true, "SQL92", "a = 1"
			f.change(func(b *config.Broker) { b.EnablePropertyFilter = false })
		}, ErrFilterOff},
		{"group offline", func(f *fixture, r *Request) { r.Group = "absent" }, ErrGroupOffline},
		{"group offline with its own filter", func(f *fixture, r *Request) { r.Group, r.Subscribed, r.Expression = "absent", true, "a || b" }, nil},
		{"not subscribed", func(f *fixture, r *Request) {
			f.heartbeat(clients.Clustering, clients.Subscription{Topic: "U", Version: 9})
		}, ErrNotSubscribed},
		{"older subscription", func(f *fixture, r *Request) { r.SubVersion = 6 }, ErrSubscriptionOlder},
		{"same subscription", func(f *fixture, r *Request) { r.SubVersion = 5 }, nil},
		{"broadcast off", func(f *fixture, r *Request) {
			g := group.New("g")
			g.ConsumeBroadcast = false
			f.o.Groups.Put(g)
			f.heartbeat(clients.Broadcasting, clients.Subscription{Topic: "T", Version: 9})
		}, ErrBroadcastOff},
		{"pull consumers off", func(f *fixture, r *Request) {
			r.Group, r.Subscribed = "absent", true
			f.change(func(b *config.Broker) { b.RejectPullConsumerEnable = true })
		}, ErrActiveOff},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			f.store.put("T", 0, 0, 1)
			r := request()
			if c.tune != nil {
				c.tune(f, &r)
			}
			res, err := f.pull(t, r)
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if c.want == nil && (res.Answer == Moved || res.Max != 1) {
				t.Errorf("%+v", res)
			}
		})
	}
}

func (f *fixture) change(set func(*config.Broker)) {
	b := *f.live.Get()
	set(&b)
	f.live.Replace(b)
}

func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		status storage.ReadStatus
		offset int64
		want   Answer
	}{
		{storage.Found, 5, Found},
		{storage.NoMatchedMessage, 5, Again},
		{storage.MessageWasRemoved, 5, Again},
		{storage.NoMatchedQueue, 0, NotFound},
		{storage.NoMatchedQueue, 1, Moved},
		{storage.NoMessageInQueue, 0, NotFound},
		{storage.NoMessageInQueue, 1, Moved},
		{storage.OffsetFoundNull, 5, NotFound},
		{storage.OffsetOverflowOne, 5, NotFound},
		{storage.OffsetOverflowBadly, 5, Moved},
		{storage.OffsetTooSmall, 5, Moved},
	} {
		if got := Outcome(c.status, c.offset); got != c.want {
			t.Errorf("%v at %d: %v, want %v", c.status, c.offset, got, c.want)
		}
	}
}

func TestOffsetsThatRideAlong(t *testing.T) {
	f := newFixture(t)
	for range 3 {
		f.store.put("T", 0, 0, 1)
	}
	r := request()
	r.Offset, r.Commit, r.CommitOffset = 2, true, 1
	if _, err := f.pull(t, r); err != nil {
		t.Fatal(err)
	}
	if off, ok := f.o.Offsets.Query("g", "T", 0); !ok || off != 1 {
		t.Errorf("stored %d %v", off, ok)
	}
	if off, ok := f.o.Offsets.QueryPull("g", "T", 0); !ok || off != 3 { // behind what it got
		t.Errorf("pulls at %d %v", off, ok)
	}
	f.o.Offsets.Reset("g", "T", 0, 0)
	r.CommitOffset = 3
	res, err := f.pull(t, r)
	if err != nil || res.Answer != Moved || !res.Reset || res.Next != 0 || res.Max != 3 {
		t.Errorf("after a reset: %+v, %v", res, err)
	}
	if off, _ := f.o.Offsets.Query("g", "T", 0); off != 0 {
		t.Errorf("the pull that learned of the reset stored %d", off)
	}
	if res, err = f.pull(t, r); err != nil || res.Reset {
		t.Errorf("the reset was handed out twice: %+v, %v", res, err)
	}
}

// waiting starts a pull that waits.
func (f *fixture) waiting(t *testing.T, r Request) (answer func() (Result, error, int)) {
	t.Helper()
	var (
		mu     sync.Mutex
		res    Result
		err    error
		called int
	)
	f.Pull(r, func(got Result, e error) {
		mu.Lock()
		defer mu.Unlock()
		called++
		res, err = got, e
	})
	return func() (Result, error, int) {
		mu.Lock()
		defer mu.Unlock()
		return res, err, called
	}
}

func TestSuspend(t *testing.T) {
	tagA, tagB := message.TagsCode("A"), message.TagsCode("B")
	f := newFixture(t)
	f.heartbeat(clients.Clustering, clients.Subscription{Topic: "T", Expression: "A", Version: 9})
	r := request()
	r.Suspend, r.Peer = time.Minute, &longpoll.Peer{}
	answer := f.waiting(t, r)
	arrive := func(code int64) {
		off := f.store.put("T", 0, code, 1)
		f.o.LongPoll.Arrived(longpoll.Arrival{Topic: "T", Offset: off, TagsCode: code})
	}
	arrive(tagB)
	if _, _, n := answer(); n != 0 || f.o.LongPoll.Waiting() != 1 {
		t.Fatal("woken by a message that the filter refuses")
	}
	arrive(tagA)
	if res, err, n := answer(); n != 1 || err != nil || res.Answer != Found || len(res.Read.Records) != 1 || res.Next != 2 {
		t.Fatalf("%+v, %v, %d", res, err, n)
	}
	// The server stops: answered as at the deadline.
	r.Offset = 2
	answer = f.waiting(t, r)
	f.o.LongPoll.Release(&longpoll.Peer{})
	if _, _, n := answer(); n != 0 {
		t.Error("another connection's end ended this one")
	}
	f.o.LongPoll.Release(r.Peer)
	if res, _, n := answer(); n != 1 || res.Answer != NotFound {
		t.Error("the end of its connection did not end it")
	}
	if _, _, n := f.waiting(t, r)(); n != 1 || f.o.LongPoll.Waiting() != 0 {
		t.Error("it waits for nobody")
	}
	r.Peer = &longpoll.Peer{}
	answer = f.waiting(t, r)
	f.o.LongPoll.Close()
	if res, err, n := answer(); n != 1 || err != nil || res.Answer != NotFound || res.Max != 2 {
		t.Errorf("%+v, %v, %d", res, err, n)
	}
	if res, err := f.pull(t, r); err != nil || res.Answer != NotFound {
		t.Errorf("after Close: %+v, %v", res, err)
	}
}

func TestSuspendedPullSeesDeletedTopic(t *testing.T) {
	f := newFixture(t)
	r := request()
	r.Suspend = time.Minute
	answer := f.waiting(t, r)
	if err := f.o.Topics.Delete("T"); err != nil {
		t.Fatal(err)
	}
	f.o.LongPoll.WakeIf(func(w *longpoll.Waiter) bool { return w.Key.Topic == "T" })
	if _, err, n := answer(); n != 1 || !errors.Is(err, ErrTopicNotFound) {
		t.Errorf("%v, %d", err, n)
	}
}

func TestTooManyWait(t *testing.T) {
	f := newFixture(t)
	r := request()
	r.Suspend = time.Minute
	for range 3 {
		f.waiting(t, r)
	}
	if _, err := f.pull(t, r); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
}

// TestArrivalBetweenLookAndPark is R026: the message comes after the pull has read and
// before it waits.
func TestArrivalBetweenLookAndPark(t *testing.T) {
	f := newFixture(t)
	f.store.put("T", 0, 0, 1)
	r := request()
	r.Offset, r.Suspend = 1, time.Minute
	late := &lateStore{fakeStore: f.store}
	f.o.Store = late
	f.Puller = New(f.o)
	res, err := f.pull(t, r)
	if err != nil || res.Answer != Found || res.Next != 2 {
		t.Errorf("%+v, %v", res, err)
	}
}

// lateStore lets a message arrive right after the first read, waking nobody.
type lateStore struct {
	*fakeStore
	once sync.Once
}

func (s *lateStore) Read(r storage.ReadRequest) storage.ReadResult {
	res := s.fakeStore.Read(r)
	s.once.Do(func() { s.put("T", 0, 0, 1) })
	return res
}

// TestStartOffset is R059: a new group begins where it asked to begin; a queue that was
// added later begins at its beginning.
func TestStartOffset(t *testing.T) {
	f := newFixture(t)
	f.store.put("T", 0, 0, 500) // older than the group
	ask := func(queue int32, zero bool) string {
		off, err := f.StartOffset("g", "T", queue, zero)
		if errors.Is(err, ErrNoOffset) {
			return "decide"
		}
		return fmt.Sprint(off)
	}
	for _, c := range []struct {
		name  string
		do    func()
		queue int32
		zero  bool
		want  string
	}{
		{"history is left to the consumer", nil, 0, true, "decide"},
		{"nothing in the queue", nil, 1, true, "0"},
		{"nothing in the queue, no zero wanted", nil, 1, false, "decide"},
		{"a queue that is not there", nil, 2, true, "decide"},
		{"a queue added later", func() {
			f.now = 2000
			f.o.Topics.Put(&topic.Config{Name: "T", ReadQueues: 4, WriteQueues: 4, Perm: 6})
			f.store.put("T", 3, 0, 1500)
		}, 3, true, "0"},
		{"still the history of the old one", nil, 0, true, "decide"},
		{"stored", func() { f.o.Offsets.Commit("g", "T", 0, 1) }, 0, true, "1"},
	} {
		if c.do != nil {
			c.do()
		}
		if got := ask(c.queue, c.zero); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func (f *fixture) commit(group, topic string, off int64, durable bool) (err error) {
	f.Commit(group, topic, 0, off, durable, func(e error) { err = e })
	return err
}

func TestCommit(t *testing.T) {
	f := newFixture(t)
	f.change(func(b *config.Broker) { b.AutoCreateSubscriptionGroup = false })
	for _, c := range []struct {
		group, topic string
		want         error
	}{{"g", "T", nil}, {"nope", "T", ErrGroupNotFound}, {"g", "nope", ErrTopicNotFound}} {
		for _, durable := range []bool{false, true} {
			if err := f.commit(c.group, c.topic, 5, durable); !errors.Is(err, c.want) {
				t.Errorf("%s %s: %v", c.group, c.topic, err)
			}
		}
	}
	f.o.Offsets.Reset("g", "T", 0, 1)
	if err := f.commit("g", "T", 9, true); !errors.Is(err, offset.ErrResetPending) {
		t.Error(err)
	}
}

// Queue ids from the wire that no topic can have cost no place in the database.
func TestCommitOfAbsurdQueues(t *testing.T) {
	f := newFixture(t)
	for _, queue := range []int32{-1, -1 << 31, 1 << 16, 1<<31 - 1} {
		for _, durable := range []bool{false, true} {
			f.Commit("g", "T", queue, 5, durable, func(err error) {
				if !errors.Is(err, ErrQueueIllegal) {
					t.Errorf("queue %d: %v", queue, err)
				}
			})
		}
	}
	if kept := f.o.Offsets.Queues("g", "T"); len(kept) != 0 {
		t.Errorf("kept %v", kept)
	}
}

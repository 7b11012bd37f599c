package publish

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// fakeStore keeps copies of what was appended.
type fakeStore struct {
	stored []*message.Message
	lights []string
	fail   error
}

func (s *fakeStore) AppendHeld(m *message.Message, done func(storage.Placed, error)) {
	s.Append(m, done)
}

func (s *fakeStore) Append(m *message.Message, done func(storage.Placed, error)) {
	if s.fail != nil {
		done(storage.Placed{}, s.fail)
		return
	}
	s.stored = append(s.stored, m.Clone())
	done(storage.Placed{QueueID: m.QueueID, QueueOffset: int64(len(s.stored) - 1)}, nil)
}

func (s *fakeStore) AppendLight(m *message.Message, queues []string, _ bool, done func(storage.Placed, error)) {
	s.lights = append(s.lights, queues...)
	s.Append(m, done)
}

func (s *fakeStore) AppendBatch(ms []*message.Message, done func([]storage.Placed, error)) {
	placed := make([]storage.Placed, len(ms))
	for i, m := range ms {
		s.stored = append(s.stored, m.Clone())
		placed[i].QueueOffset = int64(len(s.stored) - 1)
	}
	done(placed, nil)
}

func (s *fakeStore) ReadAt(offset int64) ([]byte, error) {
	if offset < 0 || offset >= int64(len(s.stored)) {
		return nil, storage.ErrNotFound
	}
	m := s.stored[offset].Clone()
	m.PhysicalOffset = offset
	b, err := message.AppendStored(nil, m)
	message.Patch(b, 0, offset, 1)
	return b, err
}

type fixture struct {
	*Publisher
	store  *fakeStore
	topics *topic.Table
	live   *config.Live[config.Broker]
	groups map[string]GroupLimits
	locked map[string]bool
	dead   []string
}

var host = netip.MustParseAddrPort("127.0.0.1:10911")

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{store: &fakeStore{}, live: config.NewLive(config.DefaultBroker()),
		groups: map[string]GroupLimits{"g": {RetryQueues: 1, RetryMaxTimes: 2}, "noretry": {}}, locked: map[string]bool{}}
	var err error
	if f.topics, err = topic.Open(topic.Options{Config: f.live}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*topic.Config{
		{Name: "T", ReadQueues: 4, WriteQueues: 2, Perm: 6},
		{Name: "Priority", ReadQueues: 4, WriteQueues: 3, Perm: 6, Attributes: map[string]string{"+message.type": "PRIORITY"}},
		{Name: "Lite", ReadQueues: 4, WriteQueues: 2, Perm: 6, Attributes: map[string]string{"+message.type": "LITE"}},
		{Name: "ReadOnly", ReadQueues: 1, WriteQueues: 1, Perm: 4},
		{Name: "Compacted", ReadQueues: 1, WriteQueues: 1, Perm: 6, Attributes: map[string]string{"+cleanup.policy": "COMPACTION"}},
	} {
		if err := f.topics.Put(c); err != nil {
			t.Fatal(err)
		}
	}
	f.Publisher = New(Options{Store: f.store, Topics: f.topics, Broker: f.live, MaxBody: func() int { return 100 }, NowMilli: func() int64 { return 1_000_000 },
		Group: func(name string) (GroupLimits, error) {
			g, ok := f.groups[name]
			if !ok {
				return g, errors.New("no such group")
			}
			return g, nil
		},
		Ordered: func(g string) bool { return f.locked[g] },
		Events:  Events{DeadLettered: func(group, topic, reason string) { f.dead = append(f.dead, group+" "+topic+" "+reason) }},
	})
	return f
}

// show is a message in one line; separators are written as = and ;.
func show(m *message.Message) string {
	props := strings.NewReplacer("\x01", "=", "\x02", ";").Replace(string(m.Properties))
	return fmt.Sprintf("%s %d r%d %q %s", m.Topic, m.QueueID, m.ReconsumeTimes, m.Body, props)
}

func props(text string) message.Properties {
	return message.Properties(strings.NewReplacer("=", "\x01", ";", "\x02").Replace(text))
}

func (f *fixture) send(r *Request) error {
	called := false
	var got error
	f.Send(r, func(_ storage.Placed, err error) { called, got = true, err })
	if !called {
		return errors.New("done was not called")
	}
	return got
}

func TestSend(t *testing.T) {
	const cluster = "CLUSTER=DefaultCluster;MSG_REGION=DefaultRegion;"
	for _, c := range []struct {
		name  string
		topic string
		queue int32
		props string
		body  string
		tune  func(f *fixture, r *Request)
		want  string
		err   error
	}{
		{name: "plain", topic: "T", queue: 1, props: "UNIQ_KEY=K;TAGS=a;", want: `T 1 r0 "x" UNIQ_KEY=K;TAGS=a;` + cluster},
		{name: "R105 no closing separator", topic: "T", props: "UNIQ_KEY=K;TAGS=a", want: `T 0 r0 "x" UNIQ_KEY=K;TAGS=a;` + cluster},
		{name: "cluster already there", topic: "T", props: "UNIQ_KEY=K;" + cluster, want: `T 0 r0 "x" UNIQ_KEY=K;` + cluster},
		{name: "foreign cluster", topic: "T", props: "CLUSTER=other;UNIQ_KEY=K;", want: `T 0 r0 "x" UNIQ_KEY=K;` + cluster},
		{name: "POP_CK and server's own are stripped", topic: "T", props: "POP_CK=1 2;UNIQ_KEY=K;__BOLIDE_SRC=z;__BOLIDE_DLQ_REASON=r;a=b;",
			want: `T 0 r0 "x" UNIQ_KEY=K;a=b;` + cluster},
		{name: "delay level", topic: "T", queue: 1, props: "UNIQ_KEY=K;DELAY=3;",
			want: `SCHEDULE_TOPIC_XXXX 2 r0 "x" UNIQ_KEY=K;` + cluster + `DELAY=3;REAL_TOPIC=T;REAL_QID=1;`},
		{name: "delay level above the highest", topic: "T", props: "UNIQ_KEY=K;DELAY=99;",
			want: `SCHEDULE_TOPIC_XXXX 17 r0 "x" UNIQ_KEY=K;` + cluster + `DELAY=18;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "a level beats a time", topic: "T", props: "UNIQ_KEY=K;DELAY=1;TIMER_DELAY_SEC=9;",
			want: `SCHEDULE_TOPIC_XXXX 0 r0 "x" UNIQ_KEY=K;` + cluster + `DELAY=1;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "negative level", topic: "T", props: "UNIQ_KEY=K;DELAY=-1;", want: `T 0 r0 "x" UNIQ_KEY=K;DELAY=-1;` + cluster},
		{name: "level that is no number", topic: "T", props: "DELAY=soon;", err: ErrMessageIllegal},
		{name: "a time that has passed", topic: "T", props: "UNIQ_KEY=K;TIMER_DELIVER_MS=1;", want: `T 0 r0 "x" UNIQ_KEY=K;TIMER_DELIVER_MS=1;` + cluster},
		{name: "a negative delay", topic: "T", props: "UNIQ_KEY=K;TIMER_DELAY_SEC=-9;", want: `T 0 r0 "x" UNIQ_KEY=K;TIMER_DELAY_SEC=-9;` + cluster},
		{name: "a time", topic: "T", queue: 1, props: "UNIQ_KEY=K;TIMER_DELIVER_MS=1005000;",
			want: `rmq_sys_wheel_timer 0 r0 "x" UNIQ_KEY=K;TIMER_DELIVER_MS=1005000;` + cluster + `TIMER_OUT_MS=1004999;REAL_TOPIC=T;REAL_QID=1;`},
		{name: "a delay in seconds beats the others", topic: "T", props: "UNIQ_KEY=K;TIMER_DELIVER_MS=1;TIMER_DELAY_MS=2;TIMER_DELAY_SEC=3;",
			want: `rmq_sys_wheel_timer 0 r0 "x" UNIQ_KEY=K;TIMER_DELIVER_MS=1;TIMER_DELAY_MS=2;TIMER_DELAY_SEC=3;` + cluster + `TIMER_OUT_MS=1002999;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "a delay in milliseconds that Apache's grain would hide", topic: "T", props: "UNIQ_KEY=K;TIMER_DELAY_MS=1;",
			want: `rmq_sys_wheel_timer 0 r0 "x" UNIQ_KEY=K;TIMER_DELAY_MS=1;` + cluster + `TIMER_OUT_MS=1000001;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "a time that has been waited for", topic: "T", props: "UNIQ_KEY=K;TIMER_DELAY_SEC=9;TIMER_OUT_MS=5;",
			want: `T 0 r0 "x" UNIQ_KEY=K;TIMER_DELAY_SEC=9;TIMER_OUT_MS=5;` + cluster},
		{name: "a time at the limit", topic: "T", props: "UNIQ_KEY=K;TIMER_DELAY_SEC=259200;",
			want: `rmq_sys_wheel_timer 0 r0 "x" UNIQ_KEY=K;TIMER_DELAY_SEC=259200;` + cluster + `TIMER_OUT_MS=260199999;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "a time beyond the limit", topic: "T", props: "TIMER_DELIVER_MS=260200001;", err: ErrTimer},
		{name: "a delay that overflows", topic: "T", props: "TIMER_DELAY_SEC=9223372036854775807;", err: ErrTimer},
		{name: "a time that is no number", topic: "T", props: "TIMER_DELIVER_MS=soon;", err: ErrTimer},
		{name: "a recall by property", topic: "T", props: "TIMER_DELIVER_MS=1005000;TIMER_DEL_UNIQKEY=K;", err: ErrMessageIllegal},
		{name: "forbidden: the timers' topic", topic: names.WheelTimer, props: "TIMER_OUT_MS=1;", err: ErrForbidden},
		{name: "R061 own retry that is spent does not wait for a time", topic: "%RETRY%g", props: "UNIQ_KEY=K;TIMER_DELAY_SEC=60;",
			tune: func(f *fixture, r *Request) { r.Message.ReconsumeTimes = 3 },
			want: `%DLQ%g 0 r0 "x" UNIQ_KEY=K;TIMER_DELAY_SEC=60;__BOLIDE_DLQ_REASON=attempts;__BOLIDE_DLQ_ATTEMPTS=3;` + cluster},
		{name: "half message", topic: "T", props: "UNIQ_KEY=K;TRAN_MSG=true;PGROUP=p;DELAY=3;REAL_TOPIC=other;", tune: func(f *fixture, r *Request) { r.Message.SysFlag = message.SysTransactionPrepared },
			want: `RMQ_SYS_TRANS_HALF_TOPIC 0 r0 "x" UNIQ_KEY=K;TRAN_MSG=true;PGROUP=p;DELAY=3;` + cluster + `__transactionId__=K;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "half message of nobody", topic: "T", props: "TRAN_MSG=true;", err: ErrMessageIllegal},
		{name: "half message of the request's group", topic: "T", props: "UNIQ_KEY=K;TRAN_MSG=true;", tune: func(f *fixture, r *Request) { r.ProducerGroup = "p" },
			want: `RMQ_SYS_TRANS_HALF_TOPIC 0 r0 "x" UNIQ_KEY=K;TRAN_MSG=true;PGROUP=p;` + cluster + `__transactionId__=K;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "half messages not wanted", topic: "T", props: "TRAN_MSG=true;PGROUP=p;", tune: func(f *fixture, r *Request) {
			if err := f.live.Change(map[string]string{"rejectTransactionMessage": "true"}); err != nil {
				panic(err)
			}
		}, err: ErrTransaction},
		{name: "prepared flag alone", topic: "T", tune: func(f *fixture, r *Request) { r.Message.SysFlag = message.SysTransactionPrepared }, err: ErrMessageIllegal},
		{name: "retry of an old client's transaction message", topic: "T", props: "UNIQ_KEY=K;TRAN_MSG=true;DELAY=3;",
			tune: func(f *fixture, r *Request) { r.Message.ReconsumeTimes = 1 },
			want: `SCHEDULE_TOPIC_XXXX 2 r1 "x" UNIQ_KEY=K;TRAN_MSG=true;` + cluster + `DELAY=3;REAL_TOPIC=T;REAL_QID=0;`},
		{name: "lite topic of a parent of another type", topic: "T", props: "__LITE_TOPIC=l;", err: ErrLiteTopic},
		{name: "lite topic that is blank", topic: "Lite", props: "__LITE_TOPIC= ;", err: ErrLiteTopic},
		{name: "lite topic that is too long", topic: "Lite", props: "__LITE_TOPIC=" + strings.Repeat("l", 65) + ";", err: ErrLiteTopic},
		{name: "lite topic of illegal characters", topic: "Lite", props: "__LITE_TOPIC=a$b;", err: ErrLiteTopic},
		{name: "lite topic and delay level", topic: "Lite", props: "__LITE_TOPIC=l;DELAY=3;", err: ErrLiteTopic},
		{name: "light queue with a slash", topic: "T", props: "INNER_MULTI_DISPATCH=%LMQ%a/b;", err: ErrMessageIllegal},
		{name: "light queue of a lite topic", topic: "T", props: "INNER_MULTI_DISPATCH=%LMQ%$T$l;", err: ErrMessageIllegal},
		{name: "R105 separator in a value", topic: "T", props: "a=b=c;UNIQ_KEY=K;", err: ErrMessageIllegal},
		{name: "R105 pair without value", topic: "T", props: "a;UNIQ_KEY=K;", err: ErrMessageIllegal},
		{name: "unknown topic, no template", topic: "Nope", err: ErrTopicNotFound},
		{name: "unknown topic, unknown template", topic: "Nope", tune: func(f *fixture, r *Request) { r.DefaultTopic = "T2" }, err: ErrTopicNotFound},
		{name: "unknown topic, template that does not inherit", topic: "Nope", tune: func(f *fixture, r *Request) { r.DefaultTopic = "T" }, err: ErrTopicNotFound},
		{name: "created from TBW102", topic: "New", queue: 3, props: "UNIQ_KEY=K;",
			tune: func(f *fixture, r *Request) { r.DefaultTopic, r.DefaultQueues = names.AutoCreate, 4 }, want: `New 3 r0 "x" UNIQ_KEY=K;` + cluster},
		{name: "creation switched off", topic: "New", tune: func(f *fixture, r *Request) {
			r.DefaultTopic, r.DefaultQueues = names.AutoCreate, 4
			b := config.DefaultBroker()
			b.AutoCreateTopicEnable = false
			f.live.Replace(b)
		}, err: ErrTopicNotFound},
		{name: "illegal name", topic: "a b", tune: func(f *fixture, r *Request) { r.DefaultTopic = names.AutoCreate }, err: ErrTopicIllegal},
		{name: "long name", topic: strings.Repeat("x", 128), err: ErrTopicIllegal},
		{name: "empty name", topic: "", err: ErrTopicIllegal},
		{name: "forbidden", topic: names.Schedule, err: ErrForbidden},
		{name: "read only", topic: "ReadOnly", err: ErrNotWritable},
		{name: "broker without write permission", topic: "T", tune: func(f *fixture, r *Request) {
			b := config.DefaultBroker()
			b.BrokerPermission = 4
			f.live.Replace(b)
		}, err: ErrNotWritable},
		{name: "queue of the readers is enough", topic: "T", queue: 3, props: "UNIQ_KEY=K;", want: `T 3 r0 "x" UNIQ_KEY=K;` + cluster},
		{name: "queue too high", topic: "T", queue: 4, err: ErrQueueIllegal},
		{name: "empty body", topic: "T", body: "-", err: ErrMessageIllegal},
		{name: "body at the limit", topic: "T", props: "UNIQ_KEY=K;", body: strings.Repeat("y", 100), want: `T 0 r0 "` + strings.Repeat("y", 100) + `" UNIQ_KEY=K;` + cluster},
		{name: "body over the limit", topic: "T", body: strings.Repeat("y", 101), err: ErrBodyTooLarge},
		{name: "compacted without key", topic: "Compacted", err: ErrMessageIllegal},
		{name: "compacted with key", topic: "Compacted", props: "KEYS=k;UNIQ_KEY=K;", want: `Compacted 0 r0 "x" KEYS=k;UNIQ_KEY=K;` + cluster},

		{name: "retry topic of an unknown group", topic: "%RETRY%x", err: ErrGroupNotFound},
		{name: "R062 own retry, attempts left", topic: "%RETRY%g", props: "UNIQ_KEY=K;DELAY=5;", tune: func(f *fixture, r *Request) { r.Message.ReconsumeTimes = 2 },
			want: `SCHEDULE_TOPIC_XXXX 4 r2 "x" UNIQ_KEY=K;` + cluster + `DELAY=5;REAL_TOPIC=%RETRY%g;REAL_QID=0;`},
		{name: "R061 R062 own retry, attempts spent: dead at once", topic: "%RETRY%g", props: "UNIQ_KEY=K;DELAY=18;RETRY_TOPIC=T;",
			tune: func(f *fixture, r *Request) { r.Message.ReconsumeTimes = 3 },
			want: `%DLQ%g 0 r0 "x" UNIQ_KEY=K;RETRY_TOPIC=T;__BOLIDE_DLQ_REASON=attempts;__BOLIDE_DLQ_ATTEMPTS=3;` + cluster},
		{name: "own retry, the sender's limit counts", topic: "%RETRY%g", props: "UNIQ_KEY=K;", tune: func(f *fixture, r *Request) {
			r.Message.ReconsumeTimes, r.MaxReconsumeTimes = 3, 3
		}, want: `%RETRY%g 0 r3 "x" UNIQ_KEY=K;` + cluster},
		{name: "orderly group gives up, R039", topic: "%RETRY%g", props: "UNIQ_KEY=K;DELAY=4;", tune: func(f *fixture, r *Request) {
			f.locked["g"] = true
			r.Message.ReconsumeTimes = 1
		}, want: `%DLQ%g 0 r0 "x" UNIQ_KEY=K;__BOLIDE_DLQ_REASON=ordered;__BOLIDE_DLQ_ATTEMPTS=1;` + cluster},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			body := []byte(c.body)
			switch c.body {
			case "":
				body = []byte("x")
			case "-":
				body = nil
			}
			r := &Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: c.topic, QueueID: c.queue, Properties: props(c.props), Body: body, BornHost: host, StoreHost: host}}
			if c.tune != nil {
				c.tune(f, r)
			}
			err := f.send(r)
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if c.err != nil {
				if len(f.store.stored) != 0 {
					t.Errorf("a refused message left %s", show(f.store.stored[0]))
				}
				return
			}
			if got := show(f.store.stored[0]); got != c.want {
				t.Errorf("stored\n%s\nwant\n%s", got, c.want)
			}
			if string(r.UniqKey) != "K" {
				t.Errorf("unique key %q", r.UniqKey)
			}
		})
	}
}

func TestServerMakesUniqueKey(t *testing.T) {
	f := newFixture(t)
	r := &Request{Message: &message.Message{Topic: "T", Body: []byte("x"), Properties: props("a=b"), BornHost: host, StoreHost: host}}
	if err := f.send(r); err != nil {
		t.Fatal(err)
	}
	if key := f.store.stored[0].UniqueID(); key == "" || key != string(r.UniqKey) || f.store.stored[0].Properties.Value("a") != "b" {
		t.Errorf("key %q, told %q, stored %s", key, r.UniqKey, show(f.store.stored[0]))
	}
}

func TestNegativeQueueIsAnyQueue(t *testing.T) {
	f := newFixture(t)
	for range 64 {
		if err := f.send(&Request{Message: &message.Message{Topic: "T", QueueID: -1, Body: []byte("x"), BornHost: host, StoreHost: host}}); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[int32]bool{}
	for _, m := range f.store.stored {
		seen[m.QueueID] = true
	}
	if len(seen) != 2 || !seen[0] || !seen[1] {
		t.Errorf("queues %v, want the two that may be written", seen)
	}
}

func TestBatch(t *testing.T) {
	one := func(p string) *message.Message {
		return &message.Message{Body: []byte("0123456789"), Flag: 7, Properties: props(p)}
	}
	for _, c := range []struct {
		name  string
		topic string
		ms    []*message.Message
		err   error
	}{
		{"fine", "T", []*message.Message{one("UNIQ_KEY=A;"), one("UNIQ_KEY=B;TAGS=t")}, nil},
		{"empty", "T", nil, ErrMessageIllegal},
		{"R082 delay level", "T", []*message.Message{one("DELAY=1;")}, ErrMessageIllegal},
		{"R082 delay time", "T", []*message.Message{one("TIMER_DELAY_MS=1;")}, ErrMessageIllegal},
		{"half", "T", []*message.Message{one("TRAN_MSG=true;")}, ErrMessageIllegal},
		{"retry topic", "%RETRY%g", []*message.Message{one("")}, ErrMessageIllegal},
		{"too large together", "T", []*message.Message{one(""), one(""), one(""), one(""), one(""), one(""), one(""), one(""), one(""), one(""), one("")}, ErrBodyTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			var got error
			f.SendBatch(&Request{Message: &message.Message{Topic: c.topic, QueueID: 1, BornHost: host, StoreHost: host, BornTimestamp: 5}}, c.ms,
				func(placed []storage.Placed, err error) { got = err })
			if !errors.Is(got, c.err) {
				t.Fatalf("error %v, want %v", got, c.err)
			}
			if c.err != nil {
				return
			}
			want := []string{`T 1 r0 "0123456789" UNIQ_KEY=A;CLUSTER=DefaultCluster;MSG_REGION=DefaultRegion;`, `T 1 r0 "0123456789" UNIQ_KEY=B;TAGS=t;CLUSTER=DefaultCluster;MSG_REGION=DefaultRegion;`}
			for i, m := range f.store.stored {
				if show(m) != want[i] || m.Flag != 7 || m.BornTimestamp != 5 {
					t.Errorf("message %d: %s", i, show(m))
				}
			}
		})
	}
}

// TestDecide: a group with retryMaxTimes N sees N+1 deliveries.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		spent, limit, level int32
		want                Decision
	}{
		{1, 16, 0, Decision{Level: 3}},
		{2, 16, 0, Decision{Level: 4}},
		{16, 16, 0, Decision{Level: 18}},
		{17, 16, 0, Decision{DeadLetter: true}},
		{17, 16, 5, Decision{DeadLetter: true}},
		{1, 16, 5, Decision{Level: 5}},
		{1, 16, -1, Decision{DeadLetter: true}},
		{1, 0, 0, Decision{DeadLetter: true}},
		{1, 1, 0, Decision{Level: 3}},
		{2, 1, 0, Decision{DeadLetter: true}},
		{1, -1, 0, Decision{DeadLetter: true}},
	} {
		if got := Decide(c.spent, c.limit, c.level); got != c.want {
			t.Errorf("Decide(%d, %d, %d) = %+v, want %+v", c.spent, c.limit, c.level, got, c.want)
		}
	}
}

func TestSendBack(t *testing.T) {
	stored := &message.Message{Topic: "T", QueueID: 1, Body: []byte("x"), Properties: props("UNIQ_KEY=K;__BOLIDE_SRC=old;"), BornHost: host, StoreHost: host, BornTimestamp: 9}
	origin := message.OffsetID(host, 0)
	for _, c := range []struct {
		name string
		tune func(r *SendBack, m *message.Message)
		want string
		err  error
	}{
		{"first", nil, `SCHEDULE_TOPIC_XXXX 2 r1 "x" UNIQ_KEY=K;RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=` + origin + `;DELAY=3;REAL_TOPIC=%RETRY%g;REAL_QID=0;`, nil},
		{"asked level", func(r *SendBack, m *message.Message) { r.DelayLevel = 9 },
			`SCHEDULE_TOPIC_XXXX 8 r1 "x" UNIQ_KEY=K;RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=` + origin + `;DELAY=9;REAL_TOPIC=%RETRY%g;REAL_QID=0;`, nil},
		{"second keeps the origin", func(r *SendBack, m *message.Message) {
			m.Topic, m.ReconsumeTimes = "%RETRY%g", 1
			m.Properties = props("RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=I;REAL_TOPIC=%RETRY%g;REAL_QID=0;")
		}, `SCHEDULE_TOPIC_XXXX 3 r2 "x" RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=I;DELAY=4;REAL_TOPIC=%RETRY%g;REAL_QID=0;`, nil},
		{"R061 spent, level asked: dead at once", func(r *SendBack, m *message.Message) { m.ReconsumeTimes, r.DelayLevel = 2, 18 },
			`%DLQ%g 0 r0 "x" UNIQ_KEY=K;RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=` + origin + `;__BOLIDE_DLQ_REASON=attempts;__BOLIDE_DLQ_ATTEMPTS=3;`, nil},
		{"dead letter asked for", func(r *SendBack, m *message.Message) { r.DelayLevel = -1 },
			`%DLQ%g 0 r0 "x" UNIQ_KEY=K;RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=` + origin + `;__BOLIDE_DLQ_REASON=asked;__BOLIDE_DLQ_ATTEMPTS=1;`, nil},
		{"the consumer's limit", func(r *SendBack, m *message.Message) { r.MaxReconsume = 0 },
			`%DLQ%g 0 r0 "x" UNIQ_KEY=K;RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=` + origin + `;__BOLIDE_DLQ_REASON=attempts;__BOLIDE_DLQ_ATTEMPTS=1;`, nil},
		{"no retry queues: nothing to do", func(r *SendBack, m *message.Message) { r.Group = "noretry" }, "", nil},
		{"unknown group", func(r *SendBack, m *message.Message) { r.Group = "x" }, "", ErrGroupNotFound},
		{"no message there", func(r *SendBack, m *message.Message) { r.Offset = 77 }, "", ErrMessageNotFound},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			m := stored.Clone()
			r := SendBack{Group: "g", MaxReconsume: -1}
			if c.tune != nil {
				c.tune(&r, m)
			}
			f.store.stored = []*message.Message{m}
			got := errors.New("done was not called")
			f.SendBack(r, func(err error) { got = err })
			if !errors.Is(got, c.err) {
				t.Fatalf("error %v, want %v", got, c.err)
			}
			if c.want == "" {
				if len(f.store.stored) != 1 {
					t.Errorf("stored %s", show(f.store.stored[1]))
				}
				return
			}
			if got := show(f.store.stored[1]); got != c.want {
				t.Errorf("stored\n%s\nwant\n%s", got, c.want)
			}
			if f.store.stored[1].BornTimestamp != 9 {
				t.Error("born data changed")
			}
		})
	}
}

func TestRetry(t *testing.T) {
	origin := message.OffsetID(host, 5)
	for _, c := range []struct {
		name  string
		topic string
		props string
		prior int32
		spent int32
		v2    bool
		want  string
	}{
		{"first", "T", "UNIQ_KEY=K;a=b;", 0, 1, false, `%RETRY%g_T 0 r1 "x" UNIQ_KEY=K;a=b;1ST_POP_TIME=1000;ORIGIN_GROUP=g;__BOLIDE_SRC=src;`},
		{"first, newer name", "T", "", 0, 1, true, `%RETRY%g+T 0 r1 "x" 1ST_POP_TIME=1000;ORIGIN_GROUP=g;__BOLIDE_SRC=src;`},
		{"again: same topic, first time kept", "%RETRY%g_T", "1ST_POP_TIME=500;ORIGIN_GROUP=g;__BOLIDE_SRC=before;", 1, 2, true,
			`%RETRY%g_T 0 r2 "x" 1ST_POP_TIME=500;ORIGIN_GROUP=g;__BOLIDE_SRC=src;`},
		{"suspended: not counted", "T", "", 0, 0, false, `%RETRY%g_T 0 r0 "x" 1ST_POP_TIME=1000;ORIGIN_GROUP=g;__BOLIDE_SRC=src;`},
		{"spent", "%RETRY%g_T", "1ST_POP_TIME=500;", 2, 3, false,
			`%DLQ%g 0 r0 "x" 1ST_POP_TIME=500;RETRY_TOPIC=T;ORIGIN_MESSAGE_ID=` + origin + `;ORIGIN_GROUP=g;__BOLIDE_SRC=src;__BOLIDE_DLQ_REASON=attempts;__BOLIDE_DLQ_ATTEMPTS=3;`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t)
			if c.v2 {
				b := config.DefaultBroker()
				b.EnableRetryTopicV2 = true
				f.live.Replace(b)
			}
			m := &message.Message{Topic: c.topic, QueueID: 3, ReconsumeTimes: c.prior, Properties: props(c.props), Body: []byte("x"), BornHost: host, StoreHost: host, PhysicalOffset: 5}
			f.Retry(Redelivery{Message: m, Group: "g", Spent: c.spent, PopTime: 1000, Source: "src"}, func(err error) {
				if err != nil {
					t.Error(err)
				}
			})
			if got := show(f.store.stored[0]); got != c.want {
				t.Errorf("stored\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestAnnounced is R109: the send of the first message of a new topic is answered when
// the name servers know the topic.
func TestAnnounced(t *testing.T) {
	f := newFixture(t)
	var known func()
	f.o.Announce = func(topics []string, then func()) { known = then }
	answered := false
	r := &Request{DefaultTopic: names.AutoCreate, DefaultQueues: 4, Message: &message.Message{Topic: "New", Body: []byte("x"), BornHost: host, StoreHost: host}}
	f.Send(r, func(storage.Placed, error) { answered = true })
	if answered {
		t.Error("answered before the name servers know the topic")
	}
	known()
	if !answered {
		t.Error("not answered")
	}
	if err := f.send(&Request{Message: &message.Message{Topic: "New", Body: []byte("x"), BornHost: host, StoreHost: host}}); err != nil {
		t.Error(err)
	}
}

func TestLevels(t *testing.T) {
	l := DefaultLevels()
	for level, want := range map[int32]time.Duration{-1: 0, 0: 0, 1: time.Second, 3: 10 * time.Second, 18: 2 * time.Hour, 99: 2 * time.Hour} {
		if got := l.Delay(level); got != want {
			t.Errorf("level %d: %v", level, got)
		}
	}
	for _, bad := range []string{"", "1x", "s", "-1s", "5"} {
		if _, err := ParseLevels(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	f := newFixture(&testing.T{})
	f.o.Store = &nullStore{}
	p := props("KEYS=key-123456;UNIQ_KEY=7F00000100002A139A55690EE7C80001;WAIT=true;TAGS=TagA;")
	m := &message.Message{BornHost: host, StoreHost: host}
	r := &Request{Message: m, MaxReconsumeTimes: -1}
	body := make([]byte, 100)
	done := func(storage.Placed, error) {}
	b.ReportAllocs()
	for b.Loop() {
		m.Topic, m.QueueID, m.Properties, m.Body = "T", 1, p, body
		f.Send(r, done)
	}
}

type nullStore struct{ fakeStore }

func (*nullStore) Append(m *message.Message, done func(storage.Placed, error)) {
	done(storage.Placed{}, nil)
}

// TestPriorityIsTheQueue: a message goes to the queue of its priority, the more urgent to the
// higher one, whatever its topic says; one of another kind besides has none.
func TestPriorityIsTheQueue(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		topic, props string
		asked        int32
		want         string
	}{
		{"Priority", "_SYS_MSG_PRIORITY_=0;", 1, "Priority 0 _SYS_MSG_PRIORITY_=0;"},
		{"Priority", "_SYS_MSG_PRIORITY_=2;", 0, "Priority 2 _SYS_MSG_PRIORITY_=2;"},
		{"Priority", "_SYS_MSG_PRIORITY_=2147483647;", 0, "Priority 2 _SYS_MSG_PRIORITY_=2147483647;"},
		{"Priority", "", 1, "Priority 1 "},
		{"T", "_SYS_MSG_PRIORITY_=0;", 1, "T 0 _SYS_MSG_PRIORITY_=0;"},
		{"T", "_SYS_MSG_PRIORITY_=7;", 0, "T 1 _SYS_MSG_PRIORITY_=7;"},
		{"Priority", "_SYS_MSG_PRIORITY_=2;__SHARDINGKEY=g;", 1, "Priority 1 __SHARDINGKEY=g;"},
		{"Priority", "_SYS_MSG_PRIORITY_=2;DELAY=1;", 1, "SCHEDULE_TOPIC_XXXX 0 DELAY=1;REAL_TOPIC=Priority;REAL_QID=1;"},
		{"%RETRY%g", "_SYS_MSG_PRIORITY_=high;DELAY=1;", 0, "SCHEDULE_TOPIC_XXXX 0 _SYS_MSG_PRIORITY_=high;DELAY=1;REAL_TOPIC=%RETRY%g;REAL_QID=0;"},
	} {
		m := &message.Message{Topic: c.topic, QueueID: c.asked, Body: []byte("x"), Properties: props(c.props), BornHost: host, StoreHost: host}
		f.Publish(m, func(_ storage.Placed, err error) {
			if err != nil {
				t.Error(err)
			}
		})
		got := f.store.stored[len(f.store.stored)-1]
		left := got.Properties.Without(message.PropertyUniqKey, message.PropertyCluster, message.PropertyRegion)
		if text := fmt.Sprintf("%s %d %s", got.Topic, got.QueueID, strings.NewReplacer("\x01", "=", "\x02", ";").Replace(string(left))); text != c.want {
			t.Errorf("topic %s, %q: %s, want %s", c.topic, c.props, text, c.want)
		}
	}
}

// TestDiffPriorityIsANumber: what is no priority is refused, with field, limit and value.
func TestDiffPriorityIsANumber(t *testing.T) {
	for _, text := range []string{"-1", "high", "2147483648", "1.5"} {
		f := newFixture(t)
		err := f.send(&Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: "Priority", Body: []byte("x"),
			Properties: props("_SYS_MSG_PRIORITY_=" + text), BornHost: host, StoreHost: host}})
		want := fmt.Sprintf("the property _SYS_MSG_PRIORITY_ is %q, want a number from 0 to 2147483647", text)
		if !errors.Is(err, ErrMessageIllegal) || !strings.HasSuffix(err.Error(), want) || len(f.store.stored) != 0 {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A dead letter is told of once it is stored, with the topic that it was first sent to: one
// that is tried again until there is room counts once.
func TestDeadLettersAreToldOnce(t *testing.T) {
	f := newFixture(t)
	first := &message.Message{Topic: "T", Body: []byte("x"), BornHost: host, StoreHost: host}
	again := &message.Message{Topic: "%RETRY%g", Properties: props("RETRY_TOPIC=T;"), ReconsumeTimes: 9, Body: []byte("x"), BornHost: host, StoreHost: host}
	popped := &message.Message{Topic: "%RETRY%g_T", Body: []byte("x"), BornHost: host, StoreHost: host}
	ways := []func(done func(error)){
		func(done func(error)) { f.SendBack(SendBack{Group: "g", DelayLevel: -1}, done) },
		func(done func(error)) {
			f.Publish(again.Clone(), func(_ storage.Placed, err error) { done(err) })
		},
		func(done func(error)) {
			f.DeadLetter(Redelivery{Message: popped.Clone(), Group: "g", Spent: 1, Source: "src"}, ReasonAsked, done)
		},
	}
	full := errors.New("no room")
	for _, way := range ways {
		for _, fail := range []error{full, nil} {
			f.store.stored, f.store.fail = []*message.Message{first.Clone()}, fail
			way(func(err error) {
				if !errors.Is(err, fail) {
					t.Error(err)
				}
			})
		}
	}
	if want := []string{"g T asked", "g T attempts", "g T asked"}; !slices.Equal(f.dead, want) {
		t.Errorf("told %q, want %q", f.dead, want)
	}
}

// A copy adds to the properties, whose length the format bounds. One of a message that used
// all of it gives up what the server has added, the least first, and never what the sender
// has set; without the name of its delivery, that is ended when the copy is stored.
func TestCopiesOfFullProperties(t *testing.T) {
	for free := range 700 {
		user := "k\x01" + strings.Repeat("v", message.MaxProperties-free-3) + "\x02"
		for what, copied := range map[string]func(f *fixture, m *message.Message, left func(), done func(error)){
			"retry": func(f *fixture, m *message.Message, left func(), done func(error)) {
				f.Retry(Redelivery{Message: m, Group: "g", Spent: 1, PopTime: 1, Source: "src", Left: left}, done)
			},
			"dead letter": func(f *fixture, m *message.Message, left func(), done func(error)) {
				f.DeadLetter(Redelivery{Message: m, Group: "g", Spent: 1, PopTime: 1, Source: "src", Left: left}, ReasonAsked, done)
			},
			"restored": func(f *fixture, m *message.Message, left func(), done func(error)) {
				m.Properties = m.Properties.With(message.PropertySource, "src")
				f.Restore(m, false, left, done)
			},
			"sent back": func(f *fixture, m *message.Message, _ func(), done func(error)) {
				f.store.stored = append(f.store.stored, m)
				f.SendBack(SendBack{Group: "g", Offset: 0, MaxReconsume: -1}, done)
			},
		} {
			f := newFixture(t)
			m := &message.Message{Topic: "T", Properties: message.Properties(user), Body: []byte("x"), BornHost: host, StoreHost: host}
			left, answers := 0, 0
			copied(f, m, func() { left++ }, func(err error) {
				if answers++; err != nil {
					t.Fatalf("%d bytes free, %s: %v", free, what, err)
				}
			})
			got := f.store.stored[len(f.store.stored)-1]
			if _, err := message.AppendStoredCRC(nil, got); err != nil && got.Properties.Has(message.PropertySource) {
				t.Fatalf("%d bytes free, %s: %v", free, what, err)
			}
			if _, err := message.AppendStored(nil, got); err != nil {
				t.Fatalf("%d bytes free, %s: %v", free, what, err)
			}
			if got.Properties.Value("k") != strings.Repeat("v", message.MaxProperties-free-3) {
				t.Fatalf("%d bytes free, %s: the sender's property is %.20q", free, what, got.Properties)
			}
			named := got.Properties.Value(message.PropertySource) == "src"
			if want := what != "sent back" && !named; answers != 1 || (left == 1) != want {
				t.Fatalf("%d bytes free, %s: named %v, left %d times, answered %d times", free, what, named, left, answers)
			}
			if free == 699 && what != "sent back" && !named {
				t.Errorf("%s: no room for the name in %d bytes", what, free)
			}
		}
	}
}

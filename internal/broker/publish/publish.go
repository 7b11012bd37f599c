// Package publish is the only way a message enters the store: it checks topic and size,
// fills in what the server adds, and diverts what does not go to its own topic at once:
// delayed messages to the schedule topic, those for a time to the timers' topic, half messages
// to the half topic, spent retries to the dead-letter topic.
//
// Invariants: a message that is refused leaves no trace; done is called exactly once,
// either before the call returns (refusals) or by the log's writer; where a message goes
// is decided by pure functions (divert, Decide) and by nothing else; a group whose
// retryMaxTimes is N sees N+1 deliveries, whichever path counts them; a property that
// only the server may write never comes from a client.
//
// Neighbours: fronts, proxy/local, pop and timer publish; storage appends; topic and
// group tables are asked, and create what the rules of automatic creation allow.
package publish

import (
	"hash/maphash"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Store is what publish asks of the storage engine.
type Store interface {
	Append(m *message.Message, done func(storage.Placed, error))
	AppendHeld(m *message.Message, done func(storage.Placed, error))
	AppendLight(m *message.Message, queues []string, held bool, done func(storage.Placed, error))
	AppendBatch(ms []*message.Message, done func([]storage.Placed, error))
	ReadAt(physicalOffset int64) ([]byte, error)
}

// Topics is what publish asks of the topic table.
type Topics interface {
	Get(name string) (*topic.Config, bool)
	CreateForSend(name, defaultTopic string, queues, sysFlag int32) (cfg *topic.Config, created bool, err error)
	CreateInternal(name string, queues, perm int32, order bool, sysFlag int32) (cfg *topic.Config, created bool, err error)
}

// GroupLimits is what publish needs to know of a consumer group.
type GroupLimits struct {
	RetryQueues   int32 // queues of its retry topic; 0 or less: send-backs are dropped
	RetryMaxTimes int32
}

// Options is what a Publisher needs.
type Options struct {
	Store  Store
	Topics Topics
	// Group returns a group's limits, creating the group where that is allowed.
	Group func(name string) (GroupLimits, error)
	// Ordered reports whether the group holds queue locks, which orderly consumers do.
	Ordered func(group string) bool
	// Announce makes topics that were just created known to the name servers and then
	// calls known, from any goroutine. nil: they need not know.
	Announce func(topics []string, known func())
	// Lights reports whether messages get into further queues beside their own. nil: they do.
	Lights  func() bool
	Broker  *config.Live[config.Broker]
	MaxBody func() int // bytes; nil: 4 MiB
	// StoreHost is where messages that the broker makes itself come from.
	StoreHost netip.AddrPort
	Levels    Levels
	Timers    func() TimerRules // nil: on, up to 3 days
	NowMilli  func() int64      // the protocol's time; nil: the machine's
	WallMilli func() int64      // what the machine's clock shows, for times that senders name; nil: NowMilli
	// Find finds stored messages by topic and key, the newest first. nil: there are none.
	Find func(topic, key string, max int, begin, end int64) ([]storage.Record, error)
	// CatchUp returns when Find finds all that was stored until now. nil: it always does.
	CatchUp func()
	Events  Events
}

// Events tell what happened; each may be nil.
type Events struct {
	Refused      func(topic string, err error)
	SentBack     func(group, topic string)         // a consumer has given a message back
	Retried      func(group, topic string)         // a lapsed delivery's copy is stored; topic is where it was first sent to
	DeadLettered func(group, topic, reason string) // it is stored; topic is where it was first sent to
}

// Publisher is safe for concurrent use. It has no state but the sends that it remembers where
// it is told to.
type Publisher struct {
	o           Options
	cluster     string
	repeated    repeated
	remembering atomic.Bool // repeated holds something
}

// New returns a publisher.
func New(o Options) *Publisher {
	if o.MaxBody == nil {
		o.MaxBody = func() int { return 4 << 20 }
	}
	if o.Levels == nil {
		o.Levels = DefaultLevels()
	}
	if o.Lights == nil {
		o.Lights = func() bool { return true }
	}
	if o.Timers == nil {
		o.Timers = func() TimerRules { return TimerRules{Enabled: true, MaxDelaySec: 3 * 24 * 3600} }
	}
	if o.NowMilli == nil {
		o.NowMilli = func() int64 { return time.Now().UnixMilli() }
	}
	if o.WallMilli == nil {
		o.WallMilli = o.NowMilli
	}
	if o.Ordered == nil {
		o.Ordered = func(string) bool { return false }
	}
	p := &Publisher{o: o, cluster: o.Broker.Get().BrokerClusterName}
	p.repeated.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	return p
}

// Levels are the delay levels of this broker.
func (p *Publisher) Levels() Levels { return p.o.Levels }

// Request is one send of a client.
type Request struct {
	Message *message.Message
	// DefaultTopic and DefaultQueues are the sender's proposal for a topic that does not
	// exist yet; without DefaultTopic none is created.
	DefaultTopic  string
	DefaultQueues int32
	UnitMode      bool
	// ProducerGroup is who is asked about a half message that does not say it itself.
	ProducerGroup string
	// MaxReconsumeTimes is the sender's own limit for retries; negative: the group's.
	MaxReconsumeTimes int32
	// UniqKey is set to the message's unique key, the server's where the sender named
	// none, before the message is appended. Its capacity is reused.
	UniqKey []byte
	// QueueID is set to the queue of its topic that the message is for, wherever it is
	// diverted to first.
	QueueID int32
	// Due is set to when the message will be delivered if that is later, else to 0.
	Due int64
	// Held says that the sender ends its round with the store's Settle.
	Held bool
}

// Publish stores m in a topic that exists.
func (p *Publisher) Publish(m *message.Message, done func(storage.Placed, error)) {
	p.Send(&Request{Message: m, MaxReconsumeTimes: -1}, done)
}

// Send stores the message of r. The message's topic, queue, flags and properties are
// changed on the way and mean nothing afterwards; its memory is free when Send returns.
func (p *Publisher) Send(r *Request, done func(storage.Placed, error)) {
	m := r.Message
	var t traits
	if err := p.check(r, &t); err != nil {
		p.refuse(m.Topic, err)
		done(storage.Placed{}, err)
		return
	}
	if t.created && p.o.Announce != nil {
		done = announced(p.o.Announce, m.Topic, done)
	}
	if dead := t.dead; dead != nil {
		stored := done
		done = func(at storage.Placed, err error) { p.toll(dead, err); stored(at, err) }
	}
	if window := p.window(); window > 0 {
		if done = p.firstOf(m, &t, r, window, done); done == nil {
			return
		}
	}
	scratch := scratchPool.Get().(*[]byte)
	p.fillIn(m, &t, r, scratch)
	if t.half {
		halve(m, &t)
		p.put(m, r.Held, done) // what goes along with it comes with the commit
	} else {
		r.Due = t.due
		divert(m, &t, p.o.Levels)
		p.append(m, t.lights, r.Held, done)
	}
	scratchPool.Put(scratch)
}

// Check refuses what Send would refuse, and makes what it would make. The message's queue is
// settled.
func (p *Publisher) Check(r *Request) error {
	var t traits
	err := p.check(r, &t)
	if err != nil {
		p.refuse(r.Message.Topic, err)
	}
	return err
}

// check refuses r, or settles topic, queue and traits of its message.
func (p *Publisher) check(r *Request, t *traits) error {
	m := r.Message
	if err := p.checkMessage(m); err != nil {
		return err
	}
	*t = readTraits(m.Properties)
	err := t.check(m)
	if err == nil {
		t.due, err = p.dueOf(m, t, true)
	}
	if err != nil {
		return err
	}
	if t.half {
		if err := p.admitHalf(m, t, r.ProducerGroup); err != nil {
			return err
		}
	}
	cfg, created, err := p.checkTopic(r)
	switch {
	case err != nil:
		return err
	case cfg.Compacted() && t.keys == "":
		return errNoKey
	case names.IsRetry(m.Topic):
		r.QueueID = m.QueueID
		return p.spendRetry(m, t, r.MaxReconsumeTimes)
	}
	if t.hasLite || t.multi != "" {
		if err := t.settleLights(m, cfg, p.o.Lights()); err != nil {
			return err
		}
	}
	t.prioritise(m, cfg.WriteQueues)
	t.created, r.QueueID = created, m.QueueID
	return nil
}

// scratchPool holds the buffers in which the properties of one send are put together.
var scratchPool = sync.Pool{New: func() any { b := make([]byte, 0, 1024); return &b }}

// fillIn adds what the server adds to the properties, in scratch, and takes out what a
// client may not say.
func (p *Publisher) fillIn(m *message.Message, t *traits, r *Request, scratch *[]byte) {
	if t.placed {
		m.Properties = m.Properties.Without(message.PropertyInnerMultiQueueOffset)
	}
	if t.foreign {
		m.Properties = m.Properties.Without(message.PropertyPopCheckpoint, message.PropertySource,
			PropertyDeadLetterReason, PropertyDeadLetterAttempts)
	}
	if t.uniqKey == "" {
		t.uniqKey = message.NewUniqueID()
		t.addKey = true
	}
	r.UniqKey = append(r.UniqKey[:0], t.uniqKey...)
	settings := p.o.Broker.Get()
	if t.cluster == p.cluster && !t.addKey && t.region != "" && settings.TraceOn {
		return
	}
	if t.cluster != "" && t.cluster != p.cluster {
		m.Properties = m.Properties.Without(message.PropertyCluster)
		t.cluster = ""
	}
	b := append((*scratch)[:0], m.Properties...)
	if t.addKey {
		b = message.AppendProperty(b, message.PropertyUniqKey, t.uniqKey)
	}
	if t.cluster == "" {
		b = message.AppendProperty(b, message.PropertyCluster, p.cluster)
	}
	// Without a region the classic client's consumers write no trace; that is no reason to
	// refuse a message whose sender has left no room.
	if t.region == "" && len(b)+len(message.PropertyRegion)+len(settings.RegionID)+3 <= message.MaxProperties {
		b = message.AppendProperty(b, message.PropertyRegion, settings.RegionID)
	}
	if !settings.TraceOn {
		b = message.AppendProperty(b, message.PropertyTraceOn, "false")
	}
	*scratch = b
	m.Properties = message.PropertiesIn(b)
}

// SendBatch stores the messages of one topic and queue with consecutive offsets. r.Message
// carries topic, queue and header data; ms are the messages, of which only flag, body and
// properties count.
func (p *Publisher) SendBatch(r *Request, ms []*message.Message, done func([]storage.Placed, error)) {
	head := r.Message
	cfg, created, err := (*topic.Config)(nil), false, p.checkBatch(head, ms)
	if err == nil {
		cfg, created, err = p.checkTopic(r)
	}
	if err != nil {
		p.refuse(head.Topic, err)
		done(nil, err)
		return
	}
	r.QueueID = head.QueueID
	for _, m := range ms {
		m.Topic, m.QueueID, m.SysFlag = head.Topic, head.QueueID, head.SysFlag
		m.BornTimestamp, m.BornHost, m.ReconsumeTimes = head.BornTimestamp, head.BornHost, head.ReconsumeTimes
		t := readTraits(m.Properties)
		if cfg.Compacted() && t.keys == "" {
			p.refuse(head.Topic, errNoKey)
			done(nil, errNoKey)
			return
		}
		var scratch []byte // lives until the append of the whole batch
		p.fillIn(m, &t, r, &scratch)
	}
	if created && p.o.Announce != nil {
		done = announced(p.o.Announce, head.Topic, done)
	}
	if window := p.window(); window > 0 {
		if done = p.firstOfBatch(ms, r, window, done); done == nil {
			return
		}
	}
	p.o.Store.AppendBatch(ms, done)
}

// Restore stores a message that the server kept elsewhere until now in the topic and
// queue it names. Its PropertySource names the state that it leaves (P6); left ends that state
// where the message has no room for the name. held is as in Request.
func (p *Publisher) Restore(m *message.Message, held bool, left func(), done func(error)) {
	m.QueueID = p.queueNow(m.Topic, m.QueueID)
	p.store(m, held, left, done)
}

// queueNow is where a message goes that was sent to a queue some time ago. The topic may have fewer
// by now, and nobody would find it in one that is gone (R073).
func (p *Publisher) queueNow(name string, queue int32) int32 {
	if cfg, ok := p.o.Topics.Get(name); ok {
		if n := min(cfg.ReadQueues, cfg.WriteQueues); n > 0 {
			return queue % n
		}
	}
	return queue
}

func (p *Publisher) refuse(topic string, err error) {
	if p.o.Events.Refused != nil {
		p.o.Events.Refused(topic, err)
	}
}

// announced returns a completion that calls done when the message is stored and the name
// servers know its new topic, so that whoever learns of the send finds a route.
func announced[T any](tell func([]string, func()), topic string, done func(T, error)) func(T, error) {
	var (
		missing atomic.Int32
		result  T
		failure error
	)
	missing.Store(2)
	arrive := func() {
		if missing.Add(-1) == 0 {
			done(result, failure)
		}
	}
	tell([]string{topic}, arrive)
	return func(v T, err error) {
		result, failure = v, err
		arrive()
	}
}

func randomQueue(queues int32) int32 {
	if queues <= 1 {
		return 0
	}
	return rand.Int32N(queues)
}

func itoa(n int32) string { return strconv.FormatInt(int64(n), 10) }

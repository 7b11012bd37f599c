package namesrv

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/config"
)

// Options is what a table needs. Only Config is required.
type Options struct {
	Config *config.Live[config.Namesrv]
	KV     *KV // nil = in memory
	// Expired is called with the connection of a broker that has been silent for too long, and of one
	// that has to register again,
	// under no lock: it is closed.
	Expired func(conn any)
	// Changed is called when topics may have got other routes; nil names = any topic.
	Changed func()
	Log     *slog.Logger
}

// Table is the route table under its lock.
type Table struct {
	o    Options
	kv   *KV
	wake chan struct{} // a broker elsewhere has registered
	mu   struct {
		sync.RWMutex
		r *routes
	}
}

// New returns an empty table.
func New(o Options) *Table {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	t := &Table{o: o, kv: o.KV, wake: make(chan struct{}, 1)}
	if t.kv == nil {
		t.kv = &KV{}
	}
	t.mu.r = newRoutes()
	return t
}

// KV returns the shared configuration values.
func (t *Table) KV() *KV { return t.kv }

// Config returns the live options.
func (t *Table) Config() *config.Live[config.Namesrv] { return t.o.Config }

// Register takes over what a broker says about itself.
func (t *Table) Register(g Registration) (Registered, error) {
	if t.o.Config.Get().DeleteTopicWithRegistration {
		g.Whole = g.Whole || len(g.Topics) != 1
	}
	// The broker of this process is not bounded: its start would fail by a limit for strangers.
	if most := t.o.Config.Get().MaxTopicsOfOneRegistration; g.Conn != nil && len(g.Topics) > int(most) {
		return Registered{}, fmt.Errorf("%w: %d topics, maxTopicsOfOneRegistration is %d", ErrIllegal, len(g.Topics), most)
	}
	t.mu.Lock()
	known := t.mu.r.live[liveKey{g.Cluster, g.Address}] != nil
	displaced := t.mu.r.displaced(&g)
	out, err := t.mu.r.register(&g, t.timeout(), time.Now())
	t.mu.Unlock()
	if err == nil && displaced != "" {
		t.o.Log.Warn("two brokers have one name and id: clients find only the one that has registered last; give each a brokerName of its own, unless this is one that was moved",
			"cluster", g.Cluster, "broker", g.Broker, "id", g.ID, "address", g.Address.told(), "was", displaced.told())
	}
	if err == nil && !known {
		t.o.Log.Info("broker registered", "cluster", g.Cluster, "broker", g.Broker, "id", g.ID, "address", g.Address.told(), "topics", len(g.Topics))
	}
	select {
	case t.wake <- struct{}{}:
	default:
	}
	t.changed()
	return out, err
}

func (t *Table) timeout() time.Duration {
	return time.Duration(t.o.Config.Get().DefaultBrokerTimeoutMillis) * time.Millisecond
}

func (t *Table) changed() {
	if t.o.Changed != nil {
		t.o.Changed()
	}
}

// Unregister takes the farewell of a broker elsewhere. One of this process is there as
// long as the process, whoever says goodbye for it.
func (t *Table) Unregister(cluster string, address Address) {
	k := liveKey{cluster, address}
	t.mu.Lock()
	l := t.mu.r.live[k]
	gone := l != nil && l.conn != nil && t.mu.r.leave(k, l.number, time.Now(), true)
	back := t.mu.r.comeback()
	t.mu.Unlock()
	t.close(back)
	if gone {
		t.o.Log.Info("broker unregistered", "cluster", cluster, "address", address)
		t.changed()
	}
}

// CloseConn removes what was registered on a connection that is closed now.
func (t *Table) CloseConn(conn any) {
	t.mu.Lock()
	list := t.mu.r.on(conn)
	for _, e := range list {
		t.mu.r.leave(e.key, e.number, time.Now(), false)
	}
	t.mu.r.hungUp(conn)
	back := t.mu.r.comeback()
	t.mu.Unlock()
	t.close(back)
	for _, e := range list {
		t.o.Log.Info("broker's connection closed", "cluster", e.key.cluster, "address", e.key.address)
	}
	if len(list) > 0 {
		t.changed()
	}
}

// Heartbeat notes that a broker is alive; false when it has not registered.
func (t *Table) Heartbeat(cluster string, address Address) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.r.refresh(liveKey{cluster, address}, time.Now())
}

// QueryVersion answers a broker's question whether its topics have to be registered
// again, and counts as a sign of life. known is false when there is no registration.
func (t *Table) QueryVersion(cluster string, address Address, version Version) (here Version, known, changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := liveKey{cluster, address}
	if !t.mu.r.refresh(k, time.Now()) {
		return Version{}, false, true
	}
	here = t.mu.r.live[k].version
	return here, true, here != version
}

// Route returns where a topic is served.
func (t *Table) Route(topic string) (Route, bool) {
	t.mu.RLock()
	route, ok := t.mu.r.route(topic, false)
	t.mu.RUnlock()
	if ok && t.o.Config.Get().OrderMessageEnable {
		route.OrderConf, _ = t.kv.Get(OrderNamespace, topic)
	}
	return route, ok
}

// Cluster returns all brokers, and the broker names of each cluster.
func (t *Table) Cluster() (brokers []Broker, clusters map[string][]string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, name := range sortedKeys(t.mu.r.brokers) {
		brokers = append(brokers, t.mu.r.brokers[name].clone())
	}
	return brokers, t.mu.r.clusters()
}

// Members returns the addresses of one broker name by broker id.
func (t *Table) Members(broker string) (Broker, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	b := t.mu.r.brokers[broker]
	if b == nil {
		return Broker{}, false
	}
	return b.clone(), true
}

// WipeWrite takes the permission to write from all topics of a broker and returns how
// many there are; AddWrite gives reading and writing back.
func (t *Table) WipeWrite(broker string) int32 { return t.setWrite(broker, false) }

// AddWrite is the opposite of WipeWrite.
func (t *Table) AddWrite(broker string) int32 { return t.setWrite(broker, true) }

func (t *Table) setWrite(broker string, allow bool) int32 {
	t.mu.Lock()
	n := t.mu.r.setWrite(broker, allow)
	t.mu.Unlock()
	t.o.Log.Info("write permission of a broker's topics changed", "broker", broker, "allowed", allow, "topics", n)
	t.changed()
	return n
}

// RegisterTopic takes over queues of one topic on brokers that are there.
func (t *Table) RegisterTopic(topic string, queues []Queues) error {
	if len(queues) == 0 {
		return nil
	}
	t.mu.Lock()
	err := t.mu.r.addTopic(topic, queues)
	t.mu.Unlock()
	t.changed()
	return err
}

// DeleteTopic forgets a topic, in one cluster if that is named.
func (t *Table) DeleteTopic(topic, cluster string) {
	t.mu.Lock()
	t.mu.r.deleteTopic(topic, cluster)
	t.mu.Unlock()
	t.changed()
}

// Topics lists all topics.
func (t *Table) Topics() []string {
	return t.topicsWhere(func(map[string]Queues) bool { return true })
}

// TopicsOfCluster lists the topics that brokers of a cluster serve.
func (t *Table) TopicsOfCluster(cluster string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.r.topicsWhere(func(on map[string]Queues) bool {
		for name := range on {
			if b := t.mu.r.brokers[name]; b != nil && b.Cluster == cluster {
				return true
			}
		}
		return false
	})
}

// UnitTopics lists the topics of this unit.
func (t *Table) UnitTopics() []string {
	return t.topicsWhere(func(on map[string]Queues) bool { return flags(on)&sysFlagUnit != 0 })
}

// UnitSubTopics lists the topics that have subscriptions from other units.
func (t *Table) UnitSubTopics() []string {
	return t.topicsWhere(func(on map[string]Queues) bool { return flags(on)&sysFlagUnitSub != 0 })
}

// UnitSubUnunitTopics lists those of UnitSubTopics that are no topics of this unit.
func (t *Table) UnitSubUnunitTopics() []string {
	return t.topicsWhere(func(on map[string]Queues) bool {
		return flags(on)&(sysFlagUnit|sysFlagUnitSub) == sysFlagUnitSub
	})
}

// flags is the system flag on the first broker by name.
func flags(on map[string]Queues) int32 {
	if len(on) == 0 {
		return 0
	}
	return on[sortedKeys(on)[0]].SysFlag
}

func (t *Table) topicsWhere(keep func(map[string]Queues) bool) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mu.r.topicsWhere(keep)
}

// SystemTopics lists the topics that stand for clusters and brokers, and the address of
// one broker, whose own list a caller may ask for.
func (t *Table) SystemTopics() (topics []string, broker Address) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	clusters := t.mu.r.clusters()
	for _, cluster := range sortedKeys(clusters) {
		topics = append(append(topics, cluster), clusters[cluster]...)
	}
	for _, name := range sortedKeys(t.mu.r.brokers) {
		b := t.mu.r.brokers[name]
		return topics, b.Addresses[slices.Min(sortedKeys(b.Addresses))]
	}
	return topics, ""
}

// Run removes silent brokers until ctx ends. It sleeps while there is none that could be
// silent.
func (t *Table) Run(ctx context.Context) error {
	for {
		if !t.watches() {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-t.wake:
			}
		}
		timer := time.NewTimer(t.scanInterval())
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		t.expire(time.Now())
	}
}

// watches tells whether some broker is expected to give signs of life.
func (t *Table) watches() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, l := range t.mu.r.live {
		if l.conn != nil {
			return true
		}
	}
	return false
}

func (t *Table) scanInterval() time.Duration {
	return time.Duration(t.o.Config.Get().ScanNotActiveBrokerInterval) * time.Millisecond
}

// expire removes who is silent now: decided and done under one lock, so a registration
// that comes in meanwhile is either seen here or comes after (R110).
func (t *Table) expire(now time.Time) {
	t.mu.Lock()
	list := t.mu.r.silent(now)
	for _, e := range list {
		t.mu.r.leave(e.key, e.number, now, false)
	}
	back := t.mu.r.comeback()
	t.mu.Unlock()
	t.close(back)
	for _, e := range list {
		t.o.Log.Warn("broker has been silent for too long", "cluster", e.key.cluster, "address", e.key.address)
		t.close([]any{e.conn})
	}
	if len(list) > 0 {
		t.changed()
	}
}

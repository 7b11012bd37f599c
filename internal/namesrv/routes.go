package namesrv

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// liveKey names one broker process.
type liveKey struct {
	cluster string
	address Address
}

// live is the newest registration of one broker process.
type live struct {
	number  uint64
	broker  string
	id      int64
	conn    any
	seen    time.Time
	timeout time.Duration
	version Version
	ha      string
}

// routes is the whole table as a value without lock or clock: each method takes the time
// it acts at. Table puts a lock around it.
type routes struct {
	brokers map[string]*Broker
	topics  map[string]map[string]Queues // topic → broker name
	live    map[liveKey]*live
	gone    map[string]Gone // by broker name, see leave
	aside   map[place]any   // connections, see displace
	numbers uint64
}

func newRoutes() *routes {
	return &routes{brokers: make(map[string]*Broker), topics: make(map[string]map[string]Queues), live: make(map[liveKey]*live),
		gone: make(map[string]Gone), aside: make(map[place]any)}
}

// register merges a registration into the table.
func (r *routes) register(g *Registration, timeout time.Duration, now time.Time) (Registered, error) {
	if g.Broker == "" || g.Cluster == "" || g.Address == "" || g.ID < 0 {
		return Registered{}, fmt.Errorf("%w: cluster %q, broker %q, address %q, id %d", ErrIllegal, g.Cluster, g.Broker, g.Address, g.ID)
	}
	k := liveKey{g.Cluster, g.Address}
	if r.claimsOurs(g) {
		return Registered{}, fmt.Errorf("%w: broker %s, id %d, at %s is one of this process, and one elsewhere can not take its place", ErrIllegal, g.Broker, g.ID, g.Address)
	}
	if r.conflicts(g) {
		delete(r.live, k)
		return Registered{}, nil
	}
	b := r.brokers[g.Broker]
	if (b == nil || b.Addresses[g.ID] == "") && len(g.Topics) == 1 && !g.Whole {
		return Registered{}, fmt.Errorf("%w: %s", ErrNotRegistered, g.Broker)
	}
	first := b == nil
	if first {
		b = &Broker{Cluster: g.Cluster, Name: g.Broker, Addresses: make(map[int64]Address)}
		r.brokers[g.Broker] = b
	}
	b.Cluster, b.ActingMaster, b.Zone = g.Cluster, g.ActingMaster && !g.OldBroker, g.Zone
	// A slave that became a master keeps its address: it must not be listed twice.
	maps.DeleteFunc(b.Addresses, func(id int64, a Address) bool { return a == g.Address && id != g.ID })
	first = first || b.Addresses[g.ID] == ""
	if old := b.Addresses[g.ID]; old != "" && old != g.Address {
		was := liveKey{g.Cluster, old}
		r.displace(r.live[was], g)
		delete(r.live, was) // the process moved; its old place is not another broker
		first = true
	}
	b.Addresses[g.ID] = g.Address
	delete(r.gone, g.Broker)

	prime := !g.OldBroker && g.ID != MasterID && g.ID == slices.Min(sortedKeys(b.Addresses))
	if g.ID == MasterID || prime {
		changed := first || r.live[k] == nil || r.live[k].version != g.Version
		r.mergeTopics(g, changed, prime && b.ActingMaster)
	}
	r.numbers++
	l := &live{number: r.numbers, broker: g.Broker, id: g.ID, conn: g.Conn, seen: now, timeout: g.Timeout, version: g.Version, ha: g.HAAddress}
	if l.timeout <= 0 {
		l.timeout = timeout
	}
	r.live[k] = l
	return r.masterOf(g, b), nil
}

// claimsOurs tells whether somebody elsewhere registers under the name or the address of a
// broker of this process. That one is certainly there and registers only once: it would
// be missing from the routes for good when the other one goes.
func (r *routes) claimsOurs(g *Registration) bool {
	if g.Conn == nil {
		return false
	}
	ours := func(k liveKey) bool { l := r.live[k]; return l != nil && l.conn == nil }
	b := r.brokers[g.Broker]
	return ours(liveKey{g.Cluster, g.Address}) || b != nil && ours(liveKey{b.Cluster, b.Addresses[g.ID]})
}

// conflicts tells whether somebody else has this broker's place with a newer state: the
// one that registers is a process that was replaced and does not know it.
func (r *routes) conflicts(g *Registration) bool {
	b := r.brokers[g.Broker]
	if b == nil {
		return false
	}
	old := b.Addresses[g.ID]
	if old == "" || old == g.Address {
		return false
	}
	l := r.live[liveKey{g.Cluster, old}]
	return l != nil && l.version.State > g.Version.State
}

// displaced is the address that a registration takes the place of: that of another broker with
// its name and id, which is there.
func (r *routes) displaced(g *Registration) Address {
	b := r.brokers[g.Broker]
	if b == nil || b.Addresses[g.ID] == g.Address || r.live[liveKey{b.Cluster, b.Addresses[g.ID]}] == nil {
		return ""
	}
	return b.Addresses[g.ID]
}

// mergeTopics takes over the topics of a registration. While the version is the one that
// is known only topics that are missing are added, so a permission that was wiped here
// stays wiped until the broker changes something.
func (r *routes) mergeTopics(g *Registration, changed, wipe bool) {
	if g.Whole {
		present := make(map[string]bool, len(g.Topics))
		for i := range g.Topics {
			present[g.Topics[i].Name] = true
		}
		for name := range r.topics {
			if !present[name] {
				r.dropQueues(name, g.Broker)
			}
		}
	}
	for i := range g.Topics {
		t := &g.Topics[i]
		on := r.topics[t.Name]
		if _, known := on[g.Broker]; known && !changed {
			continue
		}
		if on == nil {
			on = make(map[string]Queues)
			r.topics[t.Name] = on
		}
		q := Queues{Broker: g.Broker, ReadQueues: t.ReadQueues, WriteQueues: t.WriteQueues, Perm: t.Perm, SysFlag: t.SysFlag}
		if wipe {
			q.Perm &^= PermWrite
		}
		on[g.Broker] = q
	}
}

func (r *routes) masterOf(g *Registration, b *Broker) Registered {
	if g.ID == MasterID {
		return Registered{}
	}
	master := b.Addresses[MasterID]
	l := r.live[liveKey{g.Cluster, master}]
	if master == "" || l == nil {
		return Registered{}
	}
	return Registered{MasterAddress: string(master), MasterHAAddress: l.ha}
}

// remove ends a registration; a newer one than number stays.
func (r *routes) remove(k liveKey, number uint64) bool {
	l := r.live[k]
	if l == nil || l.number != number {
		return false
	}
	delete(r.live, k)
	b := r.brokers[l.broker]
	if b == nil || b.Addresses[l.id] != k.address {
		return true
	}
	delete(b.Addresses, l.id)
	if len(b.Addresses) == 0 {
		delete(r.brokers, l.broker)
		for name := range r.topics {
			r.dropQueues(name, l.broker)
		}
		return true
	}
	if b.ActingMaster && b.Addresses[MasterID] == "" {
		for _, on := range r.topics {
			if q, ok := on[l.broker]; ok {
				q.Perm &^= PermWrite
				on[l.broker] = q
			}
		}
	}
	return true
}

func (r *routes) dropQueues(topic, broker string) {
	on := r.topics[topic]
	delete(on, broker)
	if len(on) == 0 {
		delete(r.topics, topic)
	}
}

// refresh notes that a broker is alive.
func (r *routes) refresh(k liveKey, now time.Time) bool {
	l := r.live[k]
	if l != nil {
		l.seen = now
	}
	return l != nil
}

// expired is a registration that has been silent for too long.
type expired struct {
	key    liveKey
	number uint64
	conn   any
}

// silent lists the registrations that have been silent for too long at now. What is told
// of by a connection of this process (conn nil) never is.
func (r *routes) silent(now time.Time) (list []expired) {
	for k, l := range r.live {
		if l.conn != nil && now.Sub(l.seen) > l.timeout {
			list = append(list, expired{k, l.number, l.conn})
		}
	}
	return list
}

// on lists the registrations that were made on a connection.
func (r *routes) on(conn any) (list []expired) {
	for k, l := range r.live {
		if l.conn == conn {
			list = append(list, expired{k, l.number, l.conn})
		}
	}
	return list
}

// route returns where a topic is served; false when no living broker serves it.
func (r *routes) route(topic string, actingMaster bool) (Route, bool) {
	on := r.topics[topic]
	if len(on) == 0 && names.IsRetry(topic) {
		on = r.toCome()
	}
	var out Route
	for _, name := range sortedKeys(on) {
		q := on[name]
		out.Queues = append(out.Queues, q)
		b := r.brokers[name]
		if b == nil {
			continue
		}
		c := b.clone()
		if actingMaster && c.ActingMaster && c.Addresses[MasterID] == "" && q.Perm&PermWrite == 0 {
			least := slices.Min(sortedKeys(c.Addresses))
			c.Addresses[MasterID] = c.Addresses[least]
			delete(c.Addresses, least)
		}
		out.Brokers = append(out.Brokers, c)
	}
	return out, len(out.Brokers) > 0
}

// toCome is where a group's retry topic will be once the group's first heartbeat has made
// it, and what it will be. A consumer asks for the route once, before that heartbeat; told
// that there is none it would ask again half a minute later, and get its first retries then.
// With several clusters nobody knows which one the group is of.
func (r *routes) toCome() map[string]Queues {
	on := make(map[string]Queues)
	cluster := ""
	for name, b := range r.brokers {
		if cluster != "" && b.Cluster != cluster {
			return nil
		}
		cluster = b.Cluster
		if b.Addresses[MasterID] != "" {
			on[name] = Queues{Broker: name, ReadQueues: 1, WriteQueues: 1, Perm: PermRead | PermWrite}
		}
	}
	return on
}

// clusters returns the broker names of each cluster, sorted.
func (r *routes) clusters() map[string][]string {
	out := make(map[string][]string)
	for _, name := range sortedKeys(r.brokers) {
		b := r.brokers[name]
		out[b.Cluster] = append(out[b.Cluster], name)
	}
	return out
}

// setWrite wipes or gives back the permission to write to all topics of a broker and
// returns to how many.
func (r *routes) setWrite(broker string, allow bool) (n int32) {
	for _, on := range r.topics {
		q, ok := on[broker]
		if !ok {
			continue
		}
		if allow {
			q.Perm = PermRead | PermWrite
		} else {
			q.Perm &^= PermWrite
		}
		on[broker] = q
		n++
	}
	return n
}

// addTopic takes over the queues that an administrator names for a topic; all of the
// brokers must be there.
func (r *routes) addTopic(topic string, queues []Queues) error {
	if strings.TrimSpace(topic) == "" {
		return fmt.Errorf("%w: a topic without a name", ErrIllegal)
	}
	for _, q := range queues {
		if r.brokers[q.Broker] == nil {
			return fmt.Errorf("%w: broker %s", ErrNotFound, q.Broker)
		}
	}
	on := r.topics[topic]
	if on == nil {
		on = make(map[string]Queues, len(queues))
		r.topics[topic] = on
	}
	for _, q := range queues {
		on[q.Broker] = q
	}
	return nil
}

// deleteTopic removes a topic, of one cluster if that is named.
func (r *routes) deleteTopic(topic, cluster string) {
	for name := range r.topics[topic] {
		if b := r.brokers[name]; cluster == "" || b != nil && b.Cluster == cluster {
			r.dropQueues(topic, name)
		}
	}
}

// topicsWhere lists the topics for which keep says yes about their queues, sorted.
func (r *routes) topicsWhere(keep func(on map[string]Queues) bool) []string {
	list := make([]string, 0, len(r.topics))
	for name, on := range r.topics {
		if keep(on) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

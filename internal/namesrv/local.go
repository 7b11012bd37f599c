package namesrv

import (
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Local is the registration of a broker of this process. It needs no heartbeats: it is
// there as long as the process is.
type Local struct {
	t       *Table
	cluster string
	broker  string
	id      int64
	address Address
}

// Local returns the registration of a broker of this process, which registers with
// Whole. address is Self(port), or what the broker is advertised as.
func (t *Table) Local(cluster, broker string, id int64, address Address) *Local {
	return &Local{t, cluster, broker, id, address}
}

// Whole registers all topics of the broker.
func (l *Local) Whole(topics []remoting.TopicConfig, version remoting.DataVersion) error {
	g := Registration{Cluster: l.cluster, Broker: l.broker, ID: l.id, Address: l.address, Whole: true,
		Version: Version{version.StateVersion, version.Timestamp, version.Counter}}
	for i := range topics {
		g.Topics = append(g.Topics, topicOf(&topics[i]))
	}
	_, err := l.t.Register(g)
	return err
}

// Some tells of topics that have changed or are gone.
func (l *Local) Some(changed []remoting.TopicConfig, gone []string, version remoting.DataVersion) error {
	g := Registration{Cluster: l.cluster, Broker: l.broker, ID: l.id, Address: l.address,
		Version: Version{version.StateVersion, version.Timestamp, version.Counter}}
	for i := range changed {
		g.Topics = append(g.Topics, topicOf(&changed[i]))
	}
	l.t.mu.Lock()
	if l.t.mu.r.live[liveKey{l.cluster, l.address}] == nil {
		l.t.mu.Unlock()
		return nil // not started yet: Whole will tell of it
	}
	_, err := l.t.mu.r.register(&g, l.t.timeout(), time.Now())
	for _, name := range gone {
		l.t.mu.r.dropQueues(name, l.broker)
	}
	l.t.mu.Unlock()
	l.t.changed()
	return err
}

// Others lists the masters that serve a topic, other than this broker.
func (l *Local) Others(topic string) (addresses []string) {
	route, _ := l.t.Route(topic)
	for i := range route.Brokers {
		b := &route.Brokers[i]
		if addr := b.Addresses[MasterID]; b.Name != l.broker && addr != "" {
			addresses = append(addresses, string(addr))
		}
	}
	return addresses
}

func topicOf(c *remoting.TopicConfig) Topic {
	return Topic{Name: c.TopicName, ReadQueues: c.ReadQueueNums, WriteQueues: c.WriteQueueNums, Perm: c.Perm,
		SysFlag: c.TopicSysFlag, Order: c.Order}
}

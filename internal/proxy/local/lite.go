package local

import (
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/proxy"
)

// Lites is what is asked of the registry of lite topics.
type Lites interface {
	Sync(s lite.Subscription) error
	Receive(q lite.Request, done func(pop.Result, error))
}

// SyncLite implements proxy.Lites.
func (b *Backend) SyncLite(s proxy.LiteSubscription) error {
	id := s.ClientID
	s.Unsubscribed = func(name string) { b.unsubscribed(id, name) }
	if err := b.o.Lites.Sync(s); err != nil {
		return translate(err)
	}
	return nil
}

// unsubscribed tells a client that a lite topic is not its own any more. It may not read, so
// that is not waited for.
func (b *Backend) unsubscribed(clientID, name string) {
	m := &b.members
	m.Lock()
	defer m.Unlock()
	ch := m.channels[clientID]
	if ch == nil || ch.client == nil || ch.client.Stream == nil || m.closing {
		return
	}
	stream := ch.client.Stream
	b.tasks.Go("unsubscribe "+clientID, func() { _ = stream.Unsubscribe(name) })
}

// receiveLite is Pop for lite topics.
func (b *Backend) receiveLite(r *proxy.PopRequest, done func(pop.Result, error)) {
	b.o.Lites.Receive(lite.Request{ClientID: r.Holder, Group: r.Group, Topic: r.Topic, Max: r.Max, Invisible: r.InvisibleTime.Milliseconds(),
		PollTime: r.PollTime, AttemptID: r.AttemptID, AutoRenew: r.AutoRenew, Filter: r.Filter, Peer: r.Waiter}, done)
}

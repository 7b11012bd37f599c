package node

import (
	"net/netip"

	"github.com/bolidemq/bolide/internal/broker/register"
	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// makeRegistration makes the broker known to the name server of this process, which shows
// each asker the address that it reached, where the broker listens on all, and to those elsewhere.
func (n *Node) makeRegistration(s settings) {
	b, p := n.parts.broker, &n.parts
	p.elsewhere = transport.NewClient(transport.ClientOptions{Options: transport.Options{Log: n.log}})
	o := register.Options{
		Config: s.broker, Topics: b.Topics, Client: p.elsewhere, Log: n.log,
		Address: n.addressFor,
	}
	if p.namesrv != nil {
		address := namesrv.Self(n.announced.port)
		switch {
		case n.announced.set:
			address = namesrv.Address(n.announced.String())
		case n.announced.bound:
			address = namesrv.SelfAt(n.announced.storeHost(nil))
		}
		local := p.namesrv.Local(b.Cluster, b.Name, s.broker.Get().BrokerID, address)
		o.Local, o.Others = local, local.Others
	}
	p.registration = register.New(o)
}

// addressFor is the address that a name server elsewhere is told, given this end of the
// connection to it: an address that is listened on everywhere is best known by that end.
func (n *Node) addressFor(local netip.AddrPort) string {
	if n.announced.set || n.announced.bound || !local.IsValid() {
		return n.announced.String()
	}
	return netip.AddrPortFrom(local.Addr().Unmap(), n.announced.port).String()
}

// announceTopics waits until the name servers know topics.
func (p *parts) announceTopics(topics []string, done func()) {
	if p.registration == nil {
		done()
		return
	}
	p.registration.Announce(topics, done)
}

// spread has other brokers make what a send has made here.
func (p *parts) spread(topics []string) {
	if p.registration != nil {
		p.registration.Spread(topics)
	}
}

// topicsChanged tells the name servers; before the registration exists it tells of all.
func (p *parts) topicsChanged(topics []string) {
	if p.registration != nil {
		p.registration.Changed(topics)
	}
}

// reconfigured has the name servers told anew, or others told.
func (p *parts) reconfigured() {
	if p.registration != nil {
		p.registration.Refresh()
	}
}

// register tells the name servers of the broker, once it can answer; the first thing that
// a stop ends is this, with a farewell.
func (p *parts) register(g *lifecycle.Group) error {
	if p.registration == nil {
		return nil
	}
	if err := p.registration.Start(); err != nil {
		return err
	}
	g.Go("registration", p.registration.Run)
	return nil
}

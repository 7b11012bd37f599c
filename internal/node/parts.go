package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/register"
	"github.com/bolidemq/bolide/internal/front/brokerrpc"
	"github.com/bolidemq/bolide/internal/front/grpcv2"
	"github.com/bolidemq/bolide/internal/front/namesrvrpc"
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/proxy/local"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// parts are the servers behind the listeners; those that this node does not run are nil.
type parts struct {
	namesrv      *namesrv.Table
	broker       *broker.Broker
	namesrvFront *namesrvrpc.Server
	brokerFront  *brokerrpc.Server
	registration *register.Registration
	elsewhere    *transport.Client // to name servers of other processes
	grpcFront    *grpcv2.Service

	loops []loop // in the order of their start
}

type loop struct {
	name string
	run  func(ctx context.Context) error
}

func (p *parts) add(name string, run func(ctx context.Context) error) {
	p.loops = append(p.loops, loop{name, run})
}

// open makes the parts that this node runs.
func (n *Node) open(s settings) error {
	if n.o.Roles.Namesrv {
		if err := n.openNamesrv(s); err != nil {
			return err
		}
	}
	if n.o.Roles.Broker {
		if err := n.openBroker(s); err != nil {
			return err
		}
	}
	if n.o.Roles.Proxy {
		n.openProxy(s)
	}
	return nil
}

// openNamesrv makes the name server with the values that it kept.
func (n *Node) openNamesrv(s settings) error {
	file := filepath.Join(n.data.dir, "namesrv", "kvConfig.json")
	kv := &namesrv.KV{Log: n.log, Save: func(text []byte) error {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return writeFile(file, text, 0o644)
	}}
	text, err := os.ReadFile(file)
	if err == nil {
		err = kv.Load(text)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("name server's values %s: %w", file, err)
	}
	n.parts.namesrv = namesrv.New(namesrv.Options{
		Config: s.namesrv, KV: kv, Log: n.log,
		Expired: func(conn any) { conn.(*transport.Conn).Close() },
	})
	n.parts.namesrvFront = namesrvrpc.New(namesrvrpc.Options{Table: n.parts.namesrv, Stay: n.proxyPort, Log: n.log})
	n.parts.add("name server", n.parts.namesrv.Run)
	return nil
}

// openBroker recovers the broker.
func (n *Node) openBroker(s settings) (err error) {
	p := &n.parts
	p.broker, err = broker.Open(broker.Options{
		FS: n.o.FS, Dir: n.data.dir,
		Broker: s.broker, StoreConfig: s.store,
		StoreHost: n.announced.storeHost(machineAddresses()),
		Clock:     n.o.Clock, Log: n.log,
		Announce:      p.announceTopics,
		Spread:        p.spread,
		TopicsChanged: p.topicsChanged,
		Reconfigured:  p.reconfigured,
		Version:       Version(),
		Events:        n.brokerEvents(),
	})
	if err != nil {
		return err
	}
	p.brokerFront = brokerrpc.New(brokerrpc.Options{Broker: p.broker, Log: n.log})
	n.makeRegistration(s)
	for _, l := range p.broker.Loops() {
		p.add(l.Name, l.Run)
	}
	return nil
}

// openProxy puts the gRPC service before the broker of this process.
func (n *Node) openProxy(s settings) {
	b := n.parts.broker
	advertise := ""
	if n.announced.set {
		advertise = n.announced.String()
	}
	backend := local.New(local.Options{
		Name: b.Name, Permission: func() int32 { return b.Config.Get().BrokerPermission },
		Topics: b.Topics, Groups: b.Groups, Publish: b.Publish, Recall: b.Wheel.Recall, Pop: b.Pop, Lites: b.Lite, Txn: b.Txn, Pops: b.Admin.Popped, Release: b.LongPoll.Release, Clients: b.Clients,
	})
	p := proxy.New(proxy.Options{Backend: backend})
	n.parts.add("questions to clients", backend.Run)
	n.parts.add("proxy clients", p.Run)
	n.parts.grpcFront = grpcv2.New(grpcv2.Options{
		Proxy: p,
		Clock: n.o.Clock, Config: s.proxy.Get(),
		Advertise: advertise, Log: n.log,
	})
}

// handle serves a request by its code, whichever port it came to.
func (p *parts) handle(r *transport.Request) {
	if p.namesrvFront != nil {
		if p.namesrvFront.Serves(r.Code) {
			p.namesrvFront.Handle(r)
			return
		}
	}
	if p.brokerFront != nil {
		p.brokerFront.Handle(r)
		return
	}
	brokerrpc.Refuse(r)
}

// closed ends what a connection left behind.
func (p *parts) closed(c *transport.Conn) {
	if p.namesrvFront != nil {
		p.namesrvFront.Closed(c)
	}
	if p.brokerFront != nil {
		p.brokerFront.Closed(c)
	}
}

// answerWaiting answers the requests that wait for messages, and lets no other wait.
func (p *parts) answerWaiting() {
	if p.broker != nil {
		p.broker.Quiesce()
	}
}

// close closes the files, after the loops have ended.
func (p *parts) close() error {
	if p.elsewhere != nil {
		p.elsewhere.Close()
	}
	if p.broker == nil {
		return nil
	}
	return p.broker.Close()
}

// handleVIP serves what the broker's second port takes.
func (p *parts) handleVIP(r *transport.Request) {
	if p.namesrvFront != nil {
		if p.namesrvFront.Serves(r.Code) {
			p.handle(r)
			return
		}
	}
	p.brokerFront.HandleVIP(r)
}

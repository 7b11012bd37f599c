package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
)

// The ports that clients of RocketMQ know.
const (
	namesrvPort = 9876
	brokerPort  = 10911
	grpcPort    = 8081
	proxyPort   = 8080

	// vipDistance is how far below the broker's port its second one lies.
	vipDistance = 2
)

// Names of the listeners, as the start-up lines and the ready file have them.
const (
	listenerNamesrv = "namesrv"
	listenerBroker  = "broker"
	listenerVIP     = "broker-vip"
	listenerGRPC    = "grpc"
	listenerProxy   = "proxy"
	listenerMetrics = "metrics"
)

// port is one address to listen on.
type port struct {
	name     string
	flag     string // the flag that moves it
	addr     string
	optional bool // taken: a warning, not an error
	says     string
}

// listener is one open port. Several names may share it.
type listener struct {
	net.Listener
	names []string
	says  string
}

func (l *listener) addr() netip.AddrPort {
	if tcp, ok := l.Addr().(*net.TCPAddr); ok {
		ap := tcp.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

func (l *listener) has(name string) bool {
	for _, n := range l.names {
		if n == name {
			return true
		}
	}
	return false
}

// ports lists what to listen on. An address that was not given is the default one; only
// the defaults of the proxy and of the broker's second port may be taken.
func (o *Options) ports() []port {
	var all []port
	add := func(on bool, name, flag, given, says string, standard int, optional bool) {
		if !on {
			return
		}
		p := port{name: name, flag: flag, addr: given, says: says}
		if given == "" {
			p.addr, p.optional = ":"+strconv.Itoa(standard), optional
		}
		all = append(all, p)
	}
	add(o.Roles.Namesrv, listenerNamesrv, "--namesrv-addr", o.NamesrvAddr, "name server", namesrvPort, false)
	add(o.Roles.Broker, listenerBroker, "--broker-addr", o.BrokerAddr, "broker, Remoting", brokerPort, false)
	add(o.Roles.Proxy, listenerGRPC, "--grpc-addr", o.GRPCAddr, "proxy, gRPC v2", grpcPort, false)
	add(o.Roles.Proxy, listenerProxy, "--proxy-addr", o.ProxyAddr, "proxy, Remoting and gRPC", proxyPort, true)
	// Last: it must not take what was asked for.
	if vip, ok := vipPort(all); ok {
		all = append(all, vip)
	}
	return all
}

// vipPort is the broker's second port, beside all others. Clients with the VIP channel, as
// the dashboard is by default, take it for granted two below the broker's. There is none
// where the broker has any free port, nor where it shares one: who does that wants one port.
func vipPort(all []port) (port, bool) {
	i := slices.IndexFunc(all, func(p port) bool { return p.name == listenerBroker })
	if i < 0 {
		return port{}, false
	}
	broker := all[i].addr
	host, number, err := splitHostPort(broker)
	if err != nil || number <= vipDistance {
		return port{}, false
	}
	vip := net.JoinHostPort(host, strconv.Itoa(int(number)-vipDistance))
	for j, p := range all {
		if p.addr == vip || j != i && p.addr == broker {
			return port{}, false
		}
	}
	return port{name: listenerVIP, flag: "--broker-addr", addr: vip, optional: true, says: "broker, VIP channel"}, true
}

// listenAll opens the ports. Two names on one address share a listener, since every
// listener answers everything.
func listenAll(ctx context.Context, ports []port, warn func(string)) (all []*listener, err error) {
	defer func() {
		if err != nil {
			closeAll(all)
			all = nil
		}
	}()
	given := map[string]*listener{}
	for _, p := range ports {
		_, number, err := splitHostPort(p.addr)
		if err != nil {
			return all, fmt.Errorf("%s %q is not HOST:PORT: %w", p.flag, p.addr, err)
		}
		if shared := given[p.addr]; shared != nil && number != 0 {
			shared.names = append(shared.names, p.name)
			shared.says += "; " + p.says
			continue
		}
		inner, err := new(net.ListenConfig).Listen(ctx, "tcp", p.addr)
		switch {
		case err == nil:
		case p.optional && errors.Is(err, syscall.EADDRINUSE):
			warn(fmt.Sprintf("no %s listener: %s is in use by another program", p.name, p.addr))
			continue
		case errors.Is(err, syscall.EADDRINUSE):
			return all, fmt.Errorf("%s can't listen on %s: the port is in use; %s HOST:PORT takes another one", p.name, p.addr, p.flag)
		case errors.Is(err, syscall.EADDRNOTAVAIL):
			return all, fmt.Errorf("%s can't listen on %s: no address of this machine is that; %s :%d takes all of them", p.name, p.addr, p.flag, number)
		case errors.Is(err, syscall.EACCES):
			return all, fmt.Errorf("%s can't listen on %s: the system lets the user of this process take no such port; %s HOST:PORT takes another one", p.name, p.addr, p.flag)
		default:
			return all, fmt.Errorf("%s can't listen on %s: %w", p.name, p.addr, systemCause(err))
		}
		l := &listener{Listener: inner, names: []string{p.name}, says: p.says}
		given[p.addr] = l
		all = append(all, l)
	}
	return all, nil
}

func closeAll(all []*listener) {
	for _, l := range all {
		_ = l.Close()
	}
}

func systemCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// proxyPort reports whether port is the proxy's and nobody else's: whoever comes there may
// be able to reach nothing else, and is told to stay.
func (n *Node) proxyPort(port uint16) bool {
	for _, l := range n.listeners {
		if l.addr().Port() == port {
			return !l.has(listenerNamesrv) && !l.has(listenerBroker) && !l.has(listenerVIP)
		}
	}
	return false
}

// beyondLoopback reports whether some listener can be reached from other machines.
func beyondLoopback(all []*listener) bool {
	for _, l := range all {
		if !l.addr().Addr().IsLoopback() {
			return true
		}
	}
	return false
}

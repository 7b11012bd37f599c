package node

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/bolidemq/bolide/internal/config"
)

// announcement is the address that this node gives to others, and why this one.
type announcement struct {
	host string
	port uint16
	why  string
	set  bool // by --advertise: then it is given to every client, whatever it connected to

	bound bool // the only address that is listened on
}

func (a announcement) String() string {
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port)))
}

// storeHost is the address that records and message ids carry, which must be an IP: that
// of the announcement, or this machine's where a name is announced.
func (a announcement) storeHost(machine []netip.Addr) netip.AddrPort {
	addr, err := netip.ParseAddr(a.host)
	if err != nil {
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		for _, candidate := range machine {
			if reachable(candidate) {
				addr = candidate
				break
			}
		}
	}
	return netip.AddrPortFrom(addr.Unmap(), a.port)
}

// announce picks the address: the one that was set, else the one that is listened on,
// else the machine's first address that others can reach.
func announce(advertise string, listening netip.AddrPort, machine []netip.Addr) (announcement, error) {
	if advertise != "" {
		host, port, err := splitHostPort(advertise)
		if err != nil || !config.HostPort(advertise) {
			return announcement{}, fmt.Errorf("--advertise %q is not HOST:PORT", advertise)
		}
		if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
			return announcement{}, fmt.Errorf("--advertise %q is every address of a machine; clients need one that they can reach", advertise)
		}
		return announcement{host: host, port: port, why: "set by --advertise or brokerIP1, for all clients", set: true}, nil
	}
	a := announcement{port: listening.Port()}
	if addr := listening.Addr().Unmap(); addr.IsValid() && !addr.IsUnspecified() {
		a.host, a.why, a.bound = addr.String(), "the address it listens on", true
		return a, nil
	}
	a.host, a.why = "127.0.0.1", "this machine has no other address"
	for _, addr := range machine {
		if reachable(addr) {
			a.host, a.why = addr.Unmap().String(), "first address of this machine; a client is told the one it reached"
			break
		}
	}
	return a, nil
}

func reachable(addr netip.Addr) bool {
	addr = addr.Unmap()
	return addr.IsValid() && !addr.IsLoopback() && !addr.IsUnspecified() && !addr.IsLinkLocalUnicast() && !addr.IsMulticast()
}

// machineAddresses lists this machine's addresses, IPv4 first: most clients know only
// those.
func machineAddresses() []netip.Addr {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	var v4, v6 []netip.Addr
	for _, a := range all {
		ipnet, ok := a.(*net.IPNet)
		if !ok {
			continue
		}
		addr, ok := netip.AddrFromSlice(ipnet.IP)
		switch addr = addr.Unmap(); {
		case !ok:
		case addr.Is4():
			v4 = append(v4, addr)
		default:
			v6 = append(v6, addr)
		}
	}
	return append(v4, v6...)
}

func splitHostPort(text string) (host string, port uint16, err error) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, err
	}
	p, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("port %q is not a number up to 65535", number)
	}
	return host, uint16(p), nil
}

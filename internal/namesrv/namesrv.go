// Package namesrv is the name server: which brokers are there, which topics they serve
// with how many queues, and small configuration values that clients share.
//
// Invariants: a broker is named by cluster and address, a registration by a number that
// grows; whatever removes a registration (silence, a closed connection, a farewell)
// removes the one that it was decided for and no later one. A broker name without a
// living address has no topics, and is remembered for a day as gone. Routes hold no references
// into the table.
//
// Neighbours: front/namesrvrpc translates the protocol; a broker of the same process
// registers itself through Register as Self and is told to each asker under the address
// at which that asker reached this process; node runs Run.
package namesrv

import (
	"cmp"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Sentinels of the table; details are wrapped around them.
var (
	ErrNotFound      = errors.New("not found")
	ErrNotRegistered = errors.New("broker has not registered all of its topics yet")
	ErrIllegal       = errors.New("illegal registration")
)

// PermWrite and PermRead are bits of a queue's permission.
const (
	PermWrite int32 = 2
	PermRead  int32 = 4
)

// Bits of a topic's system flag.
const (
	sysFlagUnit    int32 = 1
	sysFlagUnitSub int32 = 2
)

// MasterID is the broker id of a master.
const MasterID int64 = 0

// Version tells apart two states of a broker's topics; Apache calls it data version.
type Version struct {
	State, Timestamp, Counter int64
}

// Address is where a broker is reached: HOST:PORT, or a port of this process whose host
// depends on who asks.
type Address string

const selfPrefix = "self:"

// Self is the address of a broker in this process that listens on port, at every address of the
// machine.
func Self(port uint16) Address { return Address(selfPrefix + strconv.Itoa(int(port))) }

// SelfAt is that of one that listens there alone.
func SelfAt(at netip.AddrPort) Address { return Address(selfPrefix + at.String()) }

// Elsewhere is the address that a broker of another process gives; none, if it has the
// form of Self, which only this process may use.
func Elsewhere(address string) Address {
	if strings.HasPrefix(address, selfPrefix) {
		return ""
	}
	return Address(address)
}

// At is the address for somebody who reached this process at local: local itself if it has a
// port, else where the broker listens.
func (a Address) At(local netip.AddrPort) string {
	only, port, self := cutSelf(a)
	if !self {
		return string(a)
	}
	addr := local.Addr().Unmap().WithZone("")
	switch {
	case local.Port() != 0:
		port = local.Port()
	case only.IsValid():
		addr = only
	}
	if !addr.IsValid() || addr.IsUnspecified() {
		addr = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	return netip.AddrPortFrom(addr, port).String()
}

// told is the address as the log has it.
func (a Address) told() string {
	if _, port, self := cutSelf(a); self {
		return "port " + strconv.Itoa(int(port)) + " of this process"
	}
	return string(a)
}

func cutSelf(a Address) (only netip.Addr, port uint16, ok bool) {
	text, ok := strings.CutPrefix(string(a), selfPrefix)
	if !ok {
		return only, 0, false
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr(), at.Port(), true
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return only, uint16(n), err == nil
}

// Topic is what a broker says about one of its topics.
type Topic struct {
	Name                    string
	ReadQueues, WriteQueues int32
	Perm, SysFlag           int32
	Order                   bool
}

// Queues is a topic's queues on one broker, as a route shows them.
type Queues struct {
	Broker                  string
	ReadQueues, WriteQueues int32
	Perm, SysFlag           int32
}

// Broker is one broker name with the addresses of its members by broker id.
type Broker struct {
	Cluster, Name string
	Addresses     map[int64]Address
	ActingMaster  bool
	Zone          string
}

func (b *Broker) clone() Broker {
	c := *b
	c.Addresses = maps.Clone(b.Addresses)
	return c
}

// Route is where a topic is served; brokers and queues are sorted by broker name.
type Route struct {
	Brokers   []Broker
	Queues    []Queues
	OrderConf string
}

// Registration is what a broker says about itself.
type Registration struct {
	Cluster, Broker string
	ID              int64
	Address         Address
	HAAddress       string
	Zone            string
	Timeout         time.Duration // how long it may be silent; 0 = the default
	ActingMaster    bool          // a slave may be shown in the master's place
	OldBroker       bool          // does not know acting masters: a slave's topics do not count
	Version         Version
	Topics          []Topic
	// Whole says that what is not in Topics is gone. Apache's brokers may send their
	// topics in pieces and cannot say so.
	Whole bool
	// Conn is the connection that the broker registered on, any comparable value; when
	// it closes the registration is gone. nil for a broker of this process.
	Conn any
}

// Registered is what a broker is told about its master.
type Registered struct {
	MasterAddress, MasterHAAddress string
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

// InZone is the route for a client that wants brokers of its own zone. Brokers without a
// master stay, so that their slaves can be read, and all stay where none would be left.
func (r Route) InZone(zone string) Route {
	if strings.TrimSpace(zone) == "" {
		return r
	}
	out := Route{OrderConf: r.OrderConf}
	kept := make(map[string]bool)
	for _, b := range r.Brokers {
		if b.Addresses[MasterID] == "" || strings.EqualFold(b.Zone, zone) {
			out.Brokers = append(out.Brokers, b)
			kept[b.Name] = true
		}
	}
	if len(out.Brokers) == 0 {
		return r
	}
	for _, q := range r.Queues {
		if kept[q.Broker] {
			out.Queues = append(out.Queues, q)
		}
	}
	return out
}

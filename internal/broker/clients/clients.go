// Package clients is who is connected: the producers and consumers that heartbeats have
// announced, on which channels, with which subscriptions, and since when they are silent.
//
// Invariants: a member is named by group and channel; a channel that closes is gone from
// every group before CloseChannel returns; a member that has not been heard of for 120 s
// of real time is gone and its channel closed; the subscriptions of a group are those of
// its newest heartbeat, beside which each member keeps its own. Whoever remains in a
// group hears of each change, at once in small groups and collected in large ones. No
// channel is called under the registry's lock.
//
// Neighbours: the fronts report heartbeats, closings and calls; pull, pop and admin ask
// who consumes what; topics and groups are created here before a first heartbeat is
// answered.
package clients

import (
	"net/netip"
	"slices"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// Channel is the way back to one client: a Remoting connection or a client of the proxy.
// It is a map key, so one client has one value, usually a pointer.
type Channel interface {
	RemoteAddr() netip.AddrPort
	// ConsumersChanged tells the client that its group has other members now. It must
	// not block.
	ConsumersChanged(group string)
	Close()
}

// Words of the protocol for what a consumer is.
const (
	ConsumePassively = "CONSUME_PASSIVELY"
	ConsumeActively  = "CONSUME_ACTIVELY"
	ConsumePop       = "CONSUME_POP"

	Clustering    = "CLUSTERING"
	Broadcasting  = "BROADCASTING"
	LiteSelective = "LITE_SELECTIVE"
)

// Client is one client as it presents itself.
type Client struct {
	ID       string
	Language byte
	Version  int32
	Channel  Channel
}

// Subscription is a topic and a filter.
type Subscription struct {
	Topic       string
	Expression  string // "*", tags joined by ||, or SQL
	Kind        string // TAG or SQL92; empty means TAG
	Tags        []string
	Codes       []int32
	Version     int64 // milliseconds at the client; a newer one replaces an older one
	ClassFilter bool
}

// Equal tells whether both ask for the same messages.
func (s *Subscription) Equal(o *Subscription) bool {
	kind := func(k string) string {
		if k == "" {
			return "TAG"
		}
		return k
	}
	return s.Topic == o.Topic && s.Expression == o.Expression && kind(s.Kind) == kind(o.Kind)
}

// Consumer is what a heartbeat says about one group.
type Consumer struct {
	Group         string
	Type          string // ConsumePassively …
	Model         string // Clustering …
	From          string // CONSUME_FROM_LAST_OFFSET …
	Unit          bool
	Subscriptions []Subscription
}

// Heartbeat is all that a client says about itself.
type Heartbeat struct {
	Client               Client
	Producers            []string
	Consumers            []Consumer
	Fingerprint          int32 // of the subscriptions; 0 = the client knows no second version
	WithoutSubscriptions bool  // only refreshes: the subscriptions are left out
}

// Result is what the client is told.
type Result struct {
	// SubscriptionsNeeded asks for the full form: the registry does not have what the
	// fingerprint speaks of.
	SubscriptionsNeeded bool
}

// Group is a consumer group as it is at one moment.
type Group struct {
	Name, Type, Model, From string
	Members                 []Client
	Subscriptions           []Subscription
}

func sortClients(list []Client) {
	slices.SortFunc(list, func(a, b Client) int {
		if a.ID != b.ID {
			if a.ID < b.ID {
				return -1
			}
			return 1
		}
		return a.Channel.RemoteAddr().Compare(b.Channel.RemoteAddr())
	})
}

// retryTopic is where messages of the group wait for their next attempt; every clustered
// consumer subscribes to it.
func retryTopic(group string) string { return names.Retry(group) }

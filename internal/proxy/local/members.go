package local

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// channel is one client of the proxy in the broker's registry.
type channel struct {
	id      string
	remote  netip.AddrPort
	backend *Backend
	client  *proxy.Client // as it last presented itself; under backend.members

	// Checks that the client's stream has not taken yet, and since when it has taken none;
	// under backend.members.
	checks int
	stuck  time.Time
}

// RemoteAddr implements clients.Channel.
func (c *channel) RemoteAddr() netip.AddrPort { return c.remote }

// ConsumersChanged implements clients.Channel. A gRPC client asks for its assignments
// every 5 s and shares queues with its group: there is nothing that it needs to be told.
func (c *channel) ConsumersChanged(string) {}

// Close implements clients.Channel. The registry closes whom it has not heard of for
// long; the proxy knows that itself.
func (c *channel) Close() {}

// Join implements proxy.Members.
func (b *Backend) Join(c *proxy.Client) error {
	b.members.Lock()
	ch := b.members.channels[c.ID]
	if ch == nil || ch.remote != c.Remote {
		old := ch
		ch = &channel{id: c.ID, remote: c.Remote, backend: b}
		b.members.channels[c.ID] = ch
		if old != nil {
			defer b.o.Clients.CloseChannel(old)
		}
	}
	ch.client = c
	b.members.Unlock()
	b.o.Clients.Heartbeat(heartbeat(c, ch), func(clients.Result) {})
	return nil
}

// Leave implements proxy.Members.
func (b *Backend) Leave(c *proxy.Client) {
	b.members.Lock()
	ch := b.members.channels[c.ID]
	delete(b.members.channels, c.ID)
	b.members.Unlock()
	if ch != nil {
		b.o.Clients.CloseChannel(ch)
	}
}

// heartbeat is a client of the proxy in the words of the registry. A producer's groups
// are the topics that it sends to.
func heartbeat(c *proxy.Client, ch *channel) clients.Heartbeat {
	h := clients.Heartbeat{
		Client: clients.Client{
			ID:       c.ID,
			Language: byte(languageOf(c.Language)),
			Version:  versionOf(c.Version),
			Channel:  ch,
		},
		Producers:            c.Settings.Topics,
		WithoutSubscriptions: c.Guessed,
	}
	if !c.Settings.Kind.Consumes() {
		return h
	}
	consumer := clients.Consumer{
		Group: c.Settings.Group,
		Type:  clients.ConsumePassively,
		Model: clients.Clustering,
		From:  "CONSUME_FROM_LAST_OFFSET",
	}
	switch c.Settings.Kind {
	case proxy.SimpleConsumer, proxy.PullConsumer:
		consumer.Type = clients.ConsumeActively
	case proxy.LitePushConsumer:
		consumer.Model = clients.LiteSelective
	case proxy.LiteSimpleConsumer:
		consumer.Type, consumer.Model = clients.ConsumeActively, clients.LiteSelective
	}
	for _, s := range c.Settings.Subscriptions {
		kind := "TAG"
		if s.SQL {
			kind = "SQL92"
		}
		sub := clients.Subscription{Topic: s.Topic, Expression: s.Expression, Kind: kind, Version: c.Settings.Since}
		if x, err := filter.Compile(kind, s.Expression); err == nil {
			sub.Tags, sub.Codes = x.Tags(), x.CodeSet()
		}
		consumer.Subscriptions = append(consumer.Subscriptions, sub)
	}
	h.Consumers = []clients.Consumer{consumer}
	return h
}

// languageOf is the Remoting number of a language that a gRPC client names.
func languageOf(name string) remoting.Language {
	switch name {
	case "JAVA":
		return remoting.LanguageJava
	case "CPP":
		return remoting.LanguageCPP
	case "DOTNET", "DOT_NET", "CSHARP":
		return remoting.LanguageDotnet
	case "GOLANG", "GO":
		return remoting.LanguageGo
	case "PYTHON":
		return remoting.LanguagePython
	case "PHP":
		return remoting.LanguagePHP
	case "RUST":
		return remoting.LanguageRust
	case "NODE_JS", "NODEJS":
		return remoting.LanguageNodeJS
	case "RUBY":
		return remoting.LanguageRuby
	default:
		return remoting.LanguageOther
	}
}

// versionOf is the Remoting number of a version such as 5.1.4: from 5.0.0 on, a minor
// version is worth twenty and a patch two. It is what administrators are shown.
func versionOf(text string) int32 {
	major, rest, _ := strings.Cut(text, ".")
	minor, patch, _ := strings.Cut(rest, ".")
	n, err := strconv.Atoi(minor)
	if major != "5" || err != nil || n > 9 {
		return remoting.Version5_5_0
	}
	if i := strings.IndexFunc(patch, func(r rune) bool { return r < '0' || r > '9' }); i >= 0 {
		patch = patch[:i]
	}
	p, _ := strconv.Atoi(patch)
	const version5 = 413 // 5.0.0
	return int32(version5 + 20*n + 2*min(p, 9))
}

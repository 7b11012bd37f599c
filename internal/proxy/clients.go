package proxy

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// ClientKind is what a client says it is.
type ClientKind byte

// The kinds of clients, numbered as in gRPC v2.
const (
	ClientUnknown ClientKind = iota
	Producer
	PushConsumer
	SimpleConsumer
	PullConsumer
	LitePushConsumer
	LiteSimpleConsumer
)

// Consumes reports whether the client is one of the consumers.
func (k ClientKind) Consumes() bool { return k >= PushConsumer && k <= LiteSimpleConsumer }

// Subscription is one topic of a consumer and what it wants of it.
type Subscription struct {
	Topic      string
	Expression string
	SQL        bool
}

// Settings is what a client told about itself.
type Settings struct {
	Kind           ClientKind
	Topics         []string // of a producer
	Group          string   // of a consumer
	Subscriptions  []Subscription
	Since          int64 // ms: when the client said so
	RequestTimeout time.Duration
}

// Commander asks one connected client to do something. The calls that wait for the
// client's answer end with their context; the others may block for as long as the client
// does not read.
type Commander interface {
	// StackTrace is the client's own text of what its threads do.
	StackTrace(ctx context.Context) (string, error)
	// Verify lets the client consume a stored record once, as a test.
	Verify(ctx context.Context, topic string, record []byte) (Verdict, error)
	// Recover asks a producer what became of a half message.
	Recover(topic string, record []byte, transactionID string) error
	// Unsubscribe tells the client that a lite topic is not its own any more.
	Unsubscribe(lite string) error
	// Reconnect asks the client to open its connections again.
	Reconnect() error
}

// Verdict is what a client made of a message that it was to verify.
type Verdict byte

// Outcomes of Commander.Verify.
const (
	VerdictNone Verdict = iota // the client gave no usable answer
	VerdictConsumed
	VerdictFailed
	VerdictCorrupted
)

// Client is one client id. A Client is replaced, never changed, when its settings or its
// stream change.
type Client struct {
	ID            string
	Language      string
	Version       string
	Remote, Local netip.AddrPort
	Settings      Settings
	Stream        Commander
	// Guessed says that no settings arrived: Settings is what a heartbeat said.
	Guessed bool
}

// forgetAfter is how long settings are kept for a client whose stream has ended and that
// sends no heartbeat either; beatEvery is how often the broker hears of clients whose
// stream is open.
const (
	forgetAfter = 2 * time.Minute
	beatEvery   = 30 * time.Second
)

// registry is who is connected. A client is there while its stream is open, and, since
// some clients take minutes to open a broken stream again, while its heartbeats come.
type registry struct {
	mu struct {
		sync.Mutex
		byID map[string]*seen
	}
}

type seen struct {
	client *Client
	at     time.Time // of the last sign of life
}

// Client returns what is known of the client id, nil when nothing is.
func (p *Proxy) Client(id string) *Client {
	p.clients.mu.Lock()
	defer p.clients.mu.Unlock()
	if s := p.clients.mu.byID[id]; s != nil {
		return s.client
	}
	return nil
}

// Clients returns all known clients, in the order of their ids.
func (p *Proxy) Clients() []*Client {
	p.clients.mu.Lock()
	all := make([]*Client, 0, len(p.clients.mu.byID))
	for _, s := range p.clients.mu.byID {
		all = append(all, s.client)
	}
	p.clients.mu.Unlock()
	slices.SortFunc(all, func(a, b *Client) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Join makes c the known client of its id and tells the broker that it is there.
func (p *Proxy) Join(c *Client) error {
	p.clients.mu.Lock()
	p.clients.mu.byID[c.ID] = &seen{client: c, at: time.Now()}
	p.clients.mu.Unlock()
	return p.tell(c)
}

// tell says to the broker that c is there. It may have left, or its stream ended, while
// the broker was told: then that is said once more, or the broker would keep a client
// that nobody speaks for.
func (p *Proxy) tell(c *Client) error {
	err := p.backend.Join(c)
	p.clients.mu.Lock()
	s := p.clients.mu.byID[c.ID]
	gone := s == nil || c.Stream != nil && s.client.Stream == nil
	p.clients.mu.Unlock()
	if gone {
		p.backend.Leave(c)
	}
	return err
}

// Beat tells the broker that the client of this id is still there; it returns what is
// known of it, nil for nothing.
func (p *Proxy) Beat(id string) (*Client, error) {
	p.clients.mu.Lock()
	s := p.clients.mu.byID[id]
	if s == nil {
		p.clients.mu.Unlock()
		return nil, nil
	}
	s.at = time.Now()
	c := s.client
	p.clients.mu.Unlock()
	return c, p.tell(c)
}

// Leave forgets the client id; it returns what was known of it, nil for nothing.
func (p *Proxy) Leave(id string) *Client {
	p.clients.mu.Lock()
	s := p.clients.mu.byID[id]
	delete(p.clients.mu.byID, id)
	p.clients.mu.Unlock()
	if s == nil {
		return nil
	}
	p.backend.Leave(s.client)
	p.leaveLites(s.client)
	return s.client
}

// Hangup says that a stream has ended: the broker is told that the client is gone, and
// its settings stay for a while, in case that heartbeats say otherwise. Nothing happens
// when another stream of the same id has taken its place: a reconnect may come before
// the old connection's end is noticed.
func (p *Proxy) Hangup(id string, stream Commander) {
	p.clients.mu.Lock()
	s := p.clients.mu.byID[id]
	if s == nil || s.client.Stream != stream {
		p.clients.mu.Unlock()
		return
	}
	gone := s.client
	left := *gone
	left.Stream = nil
	p.clients.mu.byID[id] = &seen{client: &left, at: time.Now()}
	p.clients.mu.Unlock()
	p.backend.Leave(gone)
}

// Run tells the broker now and then of the clients whose stream is open, and forgets
// those without stream and heartbeats.
func (p *Proxy) Run(ctx context.Context) error {
	timer := time.NewTimer(beatEvery)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		open, gone := p.sweep(time.Now())
		for _, c := range gone {
			p.backend.Leave(c)
			p.leaveLites(c)
		}
		for _, c := range open {
			if err := p.tell(c); err != nil {
				// The client's next heartbeat gets the same error as its answer.
				continue
			}
		}
		timer.Reset(beatEvery)
	}
}

// sweep forgets who is gone and returns them, and the clients whose stream is open.
func (p *Proxy) sweep(now time.Time) (open, gone []*Client) {
	p.clients.mu.Lock()
	defer p.clients.mu.Unlock()
	for id, s := range p.clients.mu.byID {
		switch {
		case s.client.Stream != nil:
			open = append(open, s.client)
		case now.Sub(s.at) >= forgetAfter:
			gone = append(gone, s.client)
			delete(p.clients.mu.byID, id)
		}
	}
	return open, gone
}

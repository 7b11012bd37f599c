package register

import (
	"context"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// link is the registration with one name server. Its loop alone sends; mu guards what
// others add meanwhile.
type link struct {
	r    *Registration
	addr string
	wake chan struct{}
	mu   struct {
		sync.Mutex
		pending map[string]bool // topics that have changed since the last success
		waiting []*announcement
		up      bool // the last attempt was taken and the connection stands
		whole   bool // the next attempt tells of all topics
	}
	conn *transport.Conn // the loop's own: where the last success was sent
}

func newLink(r *Registration, addr string) *link {
	l := &link{r: r, addr: addr, wake: make(chan struct{}, 1)}
	l.mu.pending = make(map[string]bool)
	l.mu.whole = true
	return l
}

func (l *link) isUp() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.up
}

// add notes topics to tell of, and who waits for it.
func (l *link) add(names []string, a *announcement) {
	l.mu.Lock()
	for _, name := range names {
		l.mu.pending[name] = true
	}
	if a != nil {
		l.mu.waiting = append(l.mu.waiting, a)
	}
	l.mu.Unlock()
	l.poke()
}

// renew makes the next attempt, at once, tell of all topics.
func (l *link) renew() {
	l.mu.Lock()
	l.mu.whole = true
	l.mu.Unlock()
	l.poke()
}

func (l *link) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// lost is called when the connection has ended: the name server has forgotten us.
func (l *link) lost() {
	l.mu.Lock()
	l.mu.up, l.mu.whole = false, true
	l.mu.Unlock()
	l.poke()
}

// run registers when something has changed, at each period, and each second while the
// name server does not answer.
func (l *link) run(ctx context.Context) error {
	failing := false
	for {
		err := l.attempt(ctx)
		if ctx.Err() != nil {
			l.farewell()
			return ctx.Err()
		}
		wait := time.Duration(l.r.o.Config.Get().RegisterNameServerPeriod) * time.Millisecond
		if err != nil {
			wait = l.r.o.Retry
		}
		if failing != (err != nil) { // once per change, not once per attempt
			if failing = err != nil; failing {
				l.r.o.Log.Warn("a name server can not be told of this broker; trying again each second", "namesrv", l.addr, "err", err)
			} else {
				l.r.o.Log.Info("registered with name server", "namesrv", l.addr)
			}
		}
		if !l.sleep(ctx, wait, err != nil) {
			l.farewell()
			return ctx.Err()
		}
	}
}

// sleep waits for the next attempt. After a failure changes do not shorten the wait:
// they would turn it into a busy loop.
func (l *link) sleep(ctx context.Context, d time.Duration, failed bool) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	wake := l.wake
	if failed {
		wake = nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-wake:
	case <-timer.C:
		l.periodic()
	}
	return true
}

// periodic makes the next attempt tell of all topics, as Apache's brokers do each period.
func (l *link) periodic() {
	if l.r.o.Config.Get().ForceRegister {
		l.mu.Lock()
		l.mu.whole = true
		l.mu.Unlock()
	}
}

// attempt tells the name server what it does not know yet.
func (l *link) attempt(ctx context.Context) error {
	l.mu.Lock()
	names, waiting, whole := l.mu.pending, l.mu.waiting, l.mu.whole
	l.mu.pending, l.mu.waiting = make(map[string]bool), nil
	l.mu.Unlock()
	err := l.send(ctx, names, whole)
	l.mu.Lock()
	if err != nil {
		for name := range names {
			l.mu.pending[name] = true
		}
		l.mu.up, l.mu.whole = false, true
		waiting = append(waiting, l.mu.waiting...) // nobody waits for one that is down
		l.mu.waiting = nil
	} else if l.conn != nil && !l.conn.Closed() {
		l.mu.up = true
		if whole {
			l.mu.whole = false
		}
	}
	l.mu.Unlock()
	for _, a := range waiting {
		a.told()
	}
	return err
}

func (l *link) send(ctx context.Context, names map[string]bool, whole bool) error {
	ctx, cancel := context.WithTimeout(ctx, l.timeout())
	defer cancel()
	conn, err := l.r.o.Client.Conn(ctx, l.addr)
	if err != nil {
		return err
	}
	if conn != l.conn {
		l.conn, whole = conn, true
		conn.OnClose(l.lost)
	}
	if !whole && len(names) == 0 {
		if whole, err = l.outdated(ctx, conn); err != nil || !whole {
			return err
		}
	}
	if !whole {
		err := l.register(ctx, conn, l.some(names))
		if err == nil {
			return nil
		}
		l.r.o.Log.Debug("a name server did not take single topics", "namesrv", l.addr, "err", err)
	}
	return l.register(ctx, conn, l.r.o.Topics.Remoting())
}

func (l *link) timeout() time.Duration {
	d := time.Duration(l.r.o.Config.Get().RegisterBrokerTimeoutMills) * time.Millisecond
	if d <= 0 || d > 10*time.Second {
		return 10 * time.Second
	}
	return d
}

// some is the table with only these topics; deleted ones can not be told of.
func (l *link) some(names map[string]bool) remoting.TopicConfigTable {
	out := remoting.TopicConfigTable{DataVersion: l.r.o.Topics.Version(), TopicConfigTable: make(map[string]remoting.TopicConfig)}
	for name := range names {
		if c, ok := l.r.o.Topics.Get(name); ok {
			out.TopicConfigTable[name] = c.Remoting()
		}
	}
	return out
}

// outdated asks whether the name server has another version of our topics; the question
// is a sign of life, too.
func (l *link) outdated(ctx context.Context, conn *transport.Conn) (bool, error) {
	c := l.r.o.Config.Get()
	version := l.r.o.Topics.Version()
	r, err := conn.Call(ctx, remoting.ReqQueryDataVersion, &remoting.QueryDataVersionRequest{BrokerName: c.BrokerName,
		BrokerAddr: l.r.o.Address(conn.LocalAddr()), ClusterName: c.BrokerClusterName, BrokerID: c.BrokerID}, remoting.Marshal(&version))
	if err != nil {
		return false, err
	}
	var h remoting.QueryDataVersionResponse
	if r.Code != remoting.ResSuccess || r.Decode(&h) != nil {
		return true, nil // one that does not know the question gets everything
	}
	return h.Changed, nil
}

func (l *link) register(ctx context.Context, conn *transport.Conn, table remoting.TopicConfigTable) error {
	c := l.r.o.Config.Get()
	for name, t := range table.TopicConfigTable {
		table.TopicConfigTable[name] = l.r.effective(t)
	}
	body := remoting.MarshalRegisterBroker(&remoting.RegisterBrokerBody{TopicConfigSerializeWrapper: table}, c.CompressedRegister)
	h := &remoting.RegisterBrokerRequest{BrokerName: c.BrokerName, BrokerAddr: l.r.o.Address(conn.LocalAddr()),
		ClusterName: c.BrokerClusterName, BrokerID: c.BrokerID, Compressed: c.CompressedRegister,
		BodyCrc32: int32(crc32.ChecksumIEEE(body) & 0x7fffffff)}
	if l.r.o.HAAddress != nil {
		h.HAServerAddr = l.r.o.HAAddress(conn.LocalAddr())
	}
	r, err := conn.Call(ctx, remoting.ReqRegisterBroker, h, body)
	if err != nil {
		return err
	}
	if r.Code != remoting.ResSuccess {
		return fmt.Errorf("register with %s: %s: %s", l.addr, remoting.ResponseName(r.Code), strings.TrimSpace(r.Remark))
	}
	l.takeOrderTopics(r.Body)
	return nil
}

// takeOrderTopics marks the topics that the name server says are consumed in order.
func (l *link) takeOrderTopics(body []byte) {
	if len(body) == 0 {
		return
	}
	var order remoting.KVTable
	if err := remoting.Unmarshal(body, &order); err != nil {
		l.r.o.Log.Warn("a name server's list of order topics can not be read", "namesrv", l.addr, "err", err)
		return
	}
	for name := range order.Table {
		if _, _, err := l.r.o.Topics.MarkOrder(name); err != nil {
			l.r.o.Log.Warn("a topic could not be made an order topic", "topic", name, "err", err)
		}
	}
}

// farewell takes this broker out of the routes now instead of when it is missed. The
// connection is closed as well, which says the same.
func (l *link) farewell() {
	if l.conn == nil || l.conn.Closed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c := l.r.o.Config.Get()
	_, err := l.conn.Call(ctx, remoting.ReqUnregisterBroker, &remoting.UnregisterBrokerRequest{BrokerName: c.BrokerName,
		BrokerAddr: l.r.o.Address(l.conn.LocalAddr()), ClusterName: c.BrokerClusterName, BrokerID: c.BrokerID}, nil)
	if err != nil {
		l.r.o.Log.Info("a name server did not hear our farewell", "namesrv", l.addr, "err", err)
	}
}

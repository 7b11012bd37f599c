package local

import (
	"errors"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Transactions is what is asked of the broker's transactions.
type Transactions interface {
	End(d txn.Decision, done func(error))
}

// transactionOf is the id under which a half message's producer decides it.
func (b *Backend) transactionOf(p *storage.Placed) string {
	return receipt.Transaction{QueueOffset: p.QueueOffset, LogOffset: p.PhysicalOffset, Broker: b.o.Name}.String()
}

// End implements proxy.Transactions. A producer of gRPC belongs to the group of its topic's
// name.
func (b *Backend) End(r proxy.EndRequest, done func(error)) {
	id, err := receipt.ParseTransaction(r.TransactionID)
	switch {
	case err != nil:
		done(fmt.Errorf("%w: %w", proxy.ErrIllegalTransaction, err))
		return
	case id.Broker != b.o.Name:
		done(fmt.Errorf("%w: there is no broker %.64q here", proxy.ErrIllegalTransaction, id.Broker))
		return
	}
	b.o.Txn.End(txn.Decision{Commit: r.Commit, QueueOffset: id.QueueOffset, LogOffset: id.LogOffset, Group: r.Topic, Topic: r.Topic, UniqueID: r.MessageID}, func(err error) {
		if err != nil {
			err = translate(err)
		}
		done(err)
	})
}

// stuckAfter is how long a stream may take nothing before its client can't be asked any more.
const stuckAfter = 5 * time.Second

var errStuck = errors.New("the client does not read its telemetry stream")

// CheckTransaction implements txn.Checker. The client may not read for a while, so it is told
// beside; one that goes on not reading uses up no more checks.
func (c *channel) CheckTransaction(q txn.Check) error {
	m := &c.backend.members
	m.Lock()
	defer m.Unlock()
	client := c.client
	switch {
	case client == nil || client.Stream == nil:
		return errNoStream
	case m.closing:
		return errors.New("the broker stops")
	case c.checks > 0 && time.Since(c.stuck) > stuckAfter:
		return errStuck
	case c.checks == 0:
		c.stuck = time.Now()
	}
	c.checks++
	id := receipt.Transaction{QueueOffset: q.QueueOffset, LogOffset: q.LogOffset, Broker: c.backend.o.Name}.String()
	c.backend.tasks.Go("ask "+client.ID, func() {
		// A stream that ends takes nothing; the next check finds another client.
		_ = client.Stream.Recover(q.Topic, q.Record, id)
		m.Lock()
		defer m.Unlock()
		c.checks--
		c.stuck = time.Now()
	})
	return nil
}

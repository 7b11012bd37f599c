package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// producerGroup is the group of everything that is sent.
const producerGroup = "bench-producers"

// half are half messages.
var half = shape{
	kind: "TRANSACTION", sysFlag: message.SysTransactionPrepared,
	properties: func(b []byte, _ int64) []byte {
		return append(b, "TRAN_MSG\x01true\x02PGROUP\x01"+producerGroup+"\x02"...)
	},
}

var errTransactions = errors.New("transactions are measured with --protocol remoting")

// runTransaction sends half messages at a fixed rate and commits each as soon as it is
// answered; it measures the time from the commit until a waiting consumer has the message.
func runTransaction(ctx context.Context, o Options) (Result, error) {
	if o.Protocol != Remoting {
		return Result{}, errTransactions
	}
	o.Count, o.shape = o.paced(), half
	if err := o.check(); err != nil {
		return Result{}, err
	}
	t, err := o.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	l := o.ledger(t)
	l.moments = make([]atomic.Int64, o.Count)
	var came arrivals
	take, err := waiting(ctx, l, t, o, &came)
	if err != nil {
		return Result{}, err
	}
	m, err := o.measureWaiting(ctx, l, firstWait, take, func(ctx context.Context) error {
		return publishRemoting(ctx, l, t, o, func(c *conn, a *remoting.Command, _ time.Time) error { return commit(c, l, a) })
	})
	if err != nil {
		return Result{}, err
	}
	return l.result("transaction", o, m, "commit to receive", &came.histograms), nil
}

// commit commits the half message that was answered; its number is the answer's opaque.
func commit(c *conn, l *ledger, a *remoting.Command) error {
	var stored remoting.SendMessageResponse
	if err := a.Decode(&stored); err != nil {
		return fmt.Errorf("answer to a half message: %w", err)
	}
	_, at, err := message.ParseOffsetID(stored.MsgID)
	if err != nil {
		return fmt.Errorf("answer to a half message: %w", err)
	}
	l.moments[a.Opaque].Store(int64(time.Since(l.epoch)))
	c.oneway(remoting.ReqEndTransaction, &remoting.EndTransactionRequest{ProducerGroup: producerGroup, TranStateTableOffset: stored.QueueOffset,
		CommitLogOffset: at, CommitOrRollback: message.SysTransactionCommit, MsgID: stored.TransactionID, TransactionID: stored.TransactionID})
	return nil
}

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

// runTransaction sends half messages at a fixed rate and commits each as soon as it is
// answered; it measures the time from the commit until a waiting consumer has the message.
func runTransaction(ctx context.Context, o Options) (Result, error) {
	if o.Protocol != Remoting {
		return Result{}, errors.New("transactions are measured with --protocol remoting")
	}
	o.Count = max(1, int(float64(o.Rate)*o.Duration.Seconds()))
	if err := o.check(); err != nil {
		return Result{}, err
	}
	o.kind = "TRANSACTION"
	t, err := o.prepare(ctx)
	if err != nil {
		return Result{}, err
	}
	l := o.ledger(t)
	l.ended = make([]atomic.Int64, o.Count)
	var arrivals histograms
	take, err := waitingPulls(ctx, l, t, o, &arrivals)
	if err != nil {
		return Result{}, err
	}
	took, err := o.measureWaiting(ctx, l, firstWait, take, func(ctx context.Context) error { return transact(ctx, l, t, o) })
	if err != nil {
		return Result{}, err
	}
	return l.result("transaction", o, took, "commit to receive", &arrivals), nil
}

// transact writes each half message when it is due; its answer is followed by its commit.
func transact(ctx context.Context, l *ledger, t target, o Options) error {
	c, err := dial(ctx, t.broker)
	if err != nil {
		return err
	}
	defer c.net.Close()
	var unused histograms
	o.InFlight = o.Count // every message has a slot of its own
	s := newSender(c, l, t, o, newUniqueKeys(), unused.one())
	s.header.SysFlag = message.SysTransactionPrepared
	s.half = true
	reader := &conn{net: c.net, in: c.in}
	answers := newLoops()
	answers.start(func() error {
		left := l.total
		return reader.loop(ctx, nil, func(a *remoting.Command) (bool, error) {
			if a.Code != remoting.ResSuccess {
				return true, refusal(a, "a half message")
			}
			if err := commit(reader, l, a); err != nil {
				return true, err
			}
			l.stored.Add(1)
			if left--; left == 0 {
				return true, reader.flush()
			}
			return false, nil
		})
	})
	err = l.pace(ctx, o.Rate, func(number int64) error {
		s.slots[number].number = number
		s.send(int32(number))
		return c.flush()
	})
	if err != nil {
		c.net.Close()
		answers.wait()
		return err
	}
	return answers.wait()
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
	l.ended[a.Opaque].Store(int64(time.Since(l.epoch)))
	c.oneway(remoting.ReqEndTransaction, &remoting.EndTransactionRequest{ProducerGroup: producerGroup, TranStateTableOffset: stored.QueueOffset,
		CommitLogOffset: at, CommitOrRollback: message.SysTransactionCommit, MsgID: stored.TransactionID, TransactionID: stored.TransactionID})
	return nil
}

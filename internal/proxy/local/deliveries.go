package local

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Popper is what is asked of POP.
type Popper interface {
	Pop(r pop.Request, done func(pop.Result, error))
	AckBatch(group, topic string, handles []receipt.Handle, done func([]error))
	ChangeInvisible(group, topic string, h receipt.Handle, invisible int64, suspend bool, done func(receipt.Handle, error))
	Forward(group, topic string, h receipt.Handle, done func(error))
}

// Pop implements proxy.Deliveries. Like Apache RocketMQ's proxy it lets a new group begin
// at the newest messages.
func (b *Backend) Pop(r proxy.PopRequest, done func(proxy.Popped, error)) {
	if b.o.Pops != nil {
		b.o.Pops(r.Group, r.Topic)
	}
	answer := func(res pop.Result, err error) { b.popped(res, err, done) }
	if r.Lite {
		b.receiveLite(&r, answer)
		return
	}
	b.o.Pop.Pop(pop.Request{
		Group:       r.Group,
		Topic:       r.Topic,
		QueueID:     r.QueueID,
		Max:         r.Max,
		Invisible:   r.InvisibleTime.Milliseconds(),
		PollTime:    r.PollTime,
		InitMode:    pop.InitMax,
		Filter:      r.Filter,
		Order:       r.Order,
		OnePerGroup: r.OnePerGroup,
		AttemptID:   r.AttemptID,
		Holder:      r.Holder,
		Peer:        r.Waiter,
		AutoRenew:   r.AutoRenew,
	}, answer)
}

// popped is what POP found in the words of the proxy.
func (b *Backend) popped(res pop.Result, err error, done func(proxy.Popped, error)) {
	if err != nil {
		done(proxy.Popped{}, translate(err))
		return
	}
	p := proxy.Popped{
		Broker:        b.o.Name,
		PopTime:       res.PopTime,
		InvisibleTime: res.Invisible,
		ReviveQueue:   res.ReviveQueue(),
		Batches:       res.Batches,
	}
	switch res.Status {
	case pop.Found:
		p.Release = res.Release
	case pop.PollingFull:
		p.Status = proxy.PopPollingFull
	case pop.Throttled:
		p.Status, p.Reason = proxy.PopThrottled, res.Reason
	default:
		p.Status = proxy.PopNoNew
	}
	done(p, nil)
}

// Withdraw implements proxy.Deliveries.
func (b *Backend) Withdraw(r proxy.PopRequest) { b.o.Release(r.Waiter) }

// Ack implements proxy.Deliveries.
func (b *Backend) Ack(group, topic string, handles []receipt.Handle, done func([]error)) {
	for i := range handles {
		if handles[i].Broker != b.o.Name {
			b.ackOwn(group, topic, handles, done)
			return
		}
	}
	b.o.Pop.AckBatch(group, topic, handles, func(errs []error) {
		for i, err := range errs {
			if err != nil {
				errs[i] = translate(err)
			}
		}
		done(errs)
	})
}

// ackOwn is Ack when some handles name another broker.
func (b *Backend) ackOwn(group, topic string, handles []receipt.Handle, done func([]error)) {
	errs := make([]error, len(handles))
	var own []receipt.Handle
	var at []int
	for i, h := range handles {
		if errs[i] = b.checkBroker(h); errs[i] == nil {
			own, at = append(own, h), append(at, i)
		}
	}
	if len(own) == 0 {
		done(errs)
		return
	}
	b.Ack(group, topic, own, func(results []error) {
		for k, err := range results {
			errs[at[k]] = err
		}
		done(errs)
	})
}

func (b *Backend) checkBroker(h receipt.Handle) error {
	if h.Broker != b.o.Name {
		return fmt.Errorf("%w: there is no broker %q here", proxy.ErrIllegalHandle, h.Broker)
	}
	return nil
}

// ChangeInvisible implements proxy.Deliveries.
func (b *Backend) ChangeInvisible(c proxy.ChangeRequest, done func(receipt.Handle, error)) {
	if err := b.checkBroker(c.Handle); err != nil {
		done(receipt.Handle{}, err)
		return
	}
	b.o.Pop.ChangeInvisible(c.Group, c.Topic, c.Handle, c.Invisible.Milliseconds(), c.Suspend, func(h receipt.Handle, err error) {
		if err != nil {
			err = translate(err)
		}
		done(h, err)
	})
}

// DeadLetter implements proxy.Deliveries.
func (b *Backend) DeadLetter(group, topic string, h receipt.Handle, done func(error)) {
	if err := b.checkBroker(h); err != nil {
		done(err)
		return
	}
	b.o.Pop.Forward(group, topic, h, func(err error) {
		if err != nil {
			err = translate(err)
		}
		done(err)
	})
}

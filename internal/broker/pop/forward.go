package pop

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// Forward moves the message of a delivery to the dead letters of its group, as its
// consumer asks when it has tried often enough. done gets nil once the dead letter is
// stored; dispatching it ends the delivery (P6). Else ErrStale, ErrExpired, ErrIllegal, or
// why it could not be stored, and the delivery goes on as before.
func (p *Popper) Forward(group, topic string, h receipt.Handle, done func(error)) {
	d := DeliveryOf(group, topic, h)
	w := p.window(windowKey{d.Group, d.Topic, d.QueueID})
	if w == nil {
		done(ErrIllegal)
		return
	}
	bit := uint64(1) << (d.Offset & 63)
	w.mu.Lock()
	r, err := p.judgeLocked(w, d, p.now())
	switch {
	case err == nil && r == nil:
		err = ErrExpired // acked already
	case err == nil && r.more != nil && r.more.appended&bit != 0:
		w.mu.Unlock()
		done(nil) // asked for twice
		return
	}
	if err != nil {
		w.mu.Unlock()
		done(err)
		return
	}
	// From here on a lapse leaves the message alone: two copies of one delivery must not
	// be.
	attempts := int32(-1)
	if m := r.extra(); m.group != 0 {
		attempts = m.attempts
	}
	r.more.appended |= bit
	popTime := r.popTime
	w.mu.Unlock()
	p.bury(w, d.Offset, popTime, attempts, func(err error) {
		if err != nil {
			p.unforwarded(w, r, bit)
		}
		done(err)
	})
}

// bury writes the dead letter. attempts is how often the message was delivered before
// where the message itself does not say it, else −1.
func (p *Popper) bury(w *window, offset, popTime int64, attempts int32, done func(error)) {
	res := p.o.Store.Read(storage.ReadRequest{Topic: w.key.topic, QueueID: w.key.queue, Offset: offset, MaxMessages: 1})
	defer res.Release()
	if res.Status != storage.Found || res.Records[0].QueueOffset != offset {
		done(fmt.Errorf("%w: %s", errUnreadable, res.Status))
		return
	}
	var m message.Message
	if _, err := message.DecodeStored(res.Records[0].Bytes, &m); err != nil {
		done(fmt.Errorf("%w: %w", errUnreadable, err))
		return
	}
	if attempts < 0 {
		attempts = m.ReconsumeTimes
	}
	source := w.source(offset, popTime)
	p.o.DeadLetter(publish.Redelivery{
		Message: &m, Group: w.key.group, Spent: attempts + 1, PopTime: popTime, Source: source, Left: func() { p.Dispatched(source) },
	}, publish.ReasonAsked, done)
}

// unforwarded lets a message whose dead letter could not be written lapse like any other.
// If its time came meanwhile, the lapse that left it alone is made up for.
func (p *Popper) unforwarded(w *window, r *record, bit uint64) {
	w.mu.Lock()
	r.more.appended &^= bit
	if r.live&bit != 0 && !p.due.holds(r) && !w.mu.dropped {
		p.due.set(r, p.now()+backoff[0].Milliseconds())
	}
	w.mu.Unlock()
}

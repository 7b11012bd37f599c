package pop

import (
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// forwarding is a message whose dead letter is being written.
type forwarding struct {
	p               *Popper
	w               *window
	r               *record
	offset, popTime int64
	attempts        int32         // deliveries before this one where the message does not say, else −1
	asked           []func(error) // guarded by the window's mutex
}

// Forward moves the message of a delivery to the dead letters of its group, as its
// consumer asks when it has tried often enough. done gets nil once the dead letter is
// stored; dispatching it ends the delivery (P6). Else ErrStale, ErrExpired, ErrIllegal, or
// why it could not be stored.
//
// Asking is a claim, like a lapse: an ack or a change that comes after it is refused, since
// a copy is on its way whose name the delivery must keep. If the copy can't be written the
// delivery goes on as before. Asked twice, both get the one answer.
func (p *Popper) Forward(group, topic string, h receipt.Handle, done func(error)) {
	d := DeliveryOf(group, topic, h)
	w := p.windowOrRevisit(windowKey{d.Group, d.Topic, d.QueueID})
	if w == nil {
		done(ErrIllegal)
		return
	}
	w.mu.Lock()
	if earlier, asked := w.askedLocked(d); asked {
		if earlier == nil {
			w.mu.Unlock()
			done(nil)
			return
		}
		earlier.asked = append(earlier.asked, done)
		w.mu.Unlock()
		return
	}
	r, err := p.judgeLocked(w, d, p.now())
	if err == nil && r == nil {
		err = ErrExpired // acked already
	}
	if err != nil {
		w.mu.Unlock()
		done(err)
		return
	}
	f := &forwarding{p: p, w: w, r: r, offset: d.Offset, popTime: r.popTime, attempts: -1, asked: []func(error){done}}
	m := r.extra()
	if m.group != 0 {
		f.attempts = m.attempts
	}
	m.appended |= f.bit()
	m.forwarded |= f.bit()
	m.forwards = append(m.forwards, f)
	w.mu.Unlock()
	// The copy comes after its delivery is in the database, as in commitNow: after a crash
	// between the two there would be the dead letter, and the message for whoever comes next.
	p.changed(w, func(err error) {
		if err != nil {
			f.end(err)
			return
		}
		p.ready.put(job{f: f}) // the committer is not to wait for the log
	})
}

// askedLocked reports whether d is on its way to the dead letters, or there and not
// dispatched; f is nil for the latter.
func (w *window) askedLocked(d Delivery) (f *forwarding, asked bool) {
	r := w.findLocked(d.Offset)
	if r == nil || r.popTime != d.PopTime || r.more == nil || r.more.forwarded&(1<<(d.Offset&63)) == 0 {
		return nil, false
	}
	for _, f := range r.more.forwards {
		if f.offset == d.Offset {
			return f, true
		}
	}
	return nil, true
}

func (f *forwarding) bit() uint64 { return 1 << (f.offset & 63) }

// write writes the dead letter.
func (f *forwarding) write() {
	p, w := f.p, f.w
	res := p.o.Store.Read(storage.ReadRequest{Topic: w.key.topic, QueueID: w.key.queue, Offset: f.offset, MaxMessages: 1})
	defer res.Release()
	if res.Status != storage.Found || res.Records[0].QueueOffset != f.offset {
		f.end(fmt.Errorf("%w: %s", errUnreadable, res.Status))
		return
	}
	var m message.Message
	if _, err := message.DecodeStored(res.Records[0].Bytes, &m); err != nil {
		f.end(fmt.Errorf("%w: %w", errUnreadable, err))
		return
	}
	attempts := f.attempts
	if attempts < 0 {
		attempts = m.ReconsumeTimes
	}
	source := w.source(f.offset, f.popTime)
	p.o.DeadLetter(publish.Redelivery{
		Message: &m, Group: w.key.group, Spent: attempts + 1, PopTime: f.popTime, Source: source, Left: func() { p.Dispatched(source) },
	}, publish.ReasonAsked, f.end)
}

// end tells whoever asked. A message whose dead letter could not be written lapses like any
// other; if its time came meanwhile, the lapse that left it alone is made up for.
func (f *forwarding) end(err error) {
	p, w, r := f.p, f.w, f.r
	w.mu.Lock()
	r.more.forwards = slices.DeleteFunc(r.more.forwards, func(o *forwarding) bool { return o == f })
	if err != nil {
		r.more.appended &^= f.bit()
		r.more.forwarded &^= f.bit()
		if r.live&f.bit() != 0 && !p.due.holds(r) && !w.mu.dropped {
			p.due.set(r, p.now()+backoff[0].Milliseconds())
		}
	}
	w.mu.Unlock()
	for _, done := range f.asked { // nobody adds to it any more
		done(err)
	}
}

package txn_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// TestEveryWrite crashes a broker before each of the writes of a life in which half messages
// go every way that there is: committed and rolled back, at once, when asked about and after
// they were written again for their log file, given up, and taken up again. The first
// decision stands, whatever crashes; nothing is lost, early or there twice (R084, R087).
func TestEveryWrite(t *testing.T) {
	o := brokertest.Options{Tune: func(b *config.Broker, _ *config.Store) {
		b.TransactionTimeOut, b.TransactionCheckInterval, b.TransactionCheckMax = time.Minute.Milliseconds(), time.Minute.Milliseconds(), 2
	}}
	brokertest.EveryWrite(t, o, func(l *brokertest.Life) brokertest.Course { return &txnCourse{Life: l} })
}

// txnCourse is what was promised of some half messages.
type txnCourse struct {
	*brokertest.Life
	halves []*half
}

func (c *txnCourse) Prepare(b *brokertest.Broker) { makeTopic(c, b, "T") }

func (c *txnCourse) half(b *brokertest.Broker, body string) *half {
	h, err := sendHalf(b, body, "p", "")
	if err != nil || c.Over() {
		h.first = txn.Unknown // it may be there or not
	}
	c.halves = append(c.halves, h)
	return h
}

func (c *txnCourse) decide(b *brokertest.Broker, h *half, commit bool) {
	to := txn.RolledBack
	if commit {
		to = txn.Committed
	}
	h.maybe = to
	switch err := decide(b, h, commit); {
	case c.Over():
	case err != nil:
		c.Errorf("%s: %v", h.body, err)
	default:
		h.first = to
	}
}

// Live goes on after the crash without being believed.
func (c *txnCourse) Live(b *brokertest.Broker) {
	p := &brokertest.Producer{Name: "a"}
	b.Produce(p, "p")
	var h []*half
	for _, body := range []string{"commit", "roll back", "commit when asked", "roll back when asked", "commit moved", "roll back moved", "give up", "leave"} {
		h = append(h, c.half(b, body))
	}
	c.decide(b, h[0], true)
	c.decide(b, h[1], false)
	b.Dispatched()
	c.Clock.Advance(62 * time.Second)
	if n := len(p.Asked()); n != 6 && !c.Over() {
		c.Errorf("%d checks", n)
	}
	c.decide(b, h[2], true)
	c.decide(b, h[3], false)
	b.Dispatched()
	if err := b.Txn.Keep(b.Store.LogEnd()); err != nil && !c.Over() {
		c.Errorf("keep: %v", err)
	}
	c.decide(b, h[4], true)
	c.decide(b, h[5], false)
	b.Dispatched()
	c.decide(b, c.half(b, "late"), true)
	c.Clock.Advance(2 * time.Minute) // the last check, and then no more
	b.Dispatched()
	if entries, err := b.Store.Entries(names.TransCheckMaxTime, 0, 0, 1); err == nil && len(entries) == 1 {
		done := make(chan error, 1)
		b.Txn.Resume(entries[0].PhysicalOffset, func(err error) { done <- err })
		if err := <-done; err != nil && !c.Over() {
			c.Errorf("resume: %v", err)
		}
	} else if !c.Over() {
		c.Error("nothing was given up")
	}
	b.Dispatched()
}

// Settle holds each half message to what was promised, and decides the others.
func (c *txnCourse) Settle(b *brokertest.Broker) {
	b.Dispatched()
	c.Clock.Advance(10 * time.Minute) // nobody is there to be asked
	b.Dispatched()
	var want []string
	for _, h := range c.halves {
		if h.first == txn.Unknown && !c.there(b, h) {
			continue
		}
		err := decide(b, h, true)
		switch {
		case h.first == txn.Committed || err == nil && h.first != txn.RolledBack:
			want = append(want, h.body)
			if err != nil {
				c.Errorf("%s is committed, and once more: %v", h.body, err)
			}
			if err := decide(b, h, false); !errors.Is(err, txn.ErrDecided) {
				c.Errorf("%s is committed, and then rolled back: %v", h.body, err)
			}
		case !errors.Is(err, txn.ErrDecided):
			c.Errorf("%s could not be committed: %v", h.body, err)
		case h.maybe != txn.RolledBack:
			c.Errorf("%s was never rolled back, and now: %v", h.body, err)
		}
	}
	slices.Sort(want)
	if got := seen(c, b); !slices.Equal(got, want) {
		c.Errorf("there are %q, want %q", got, want)
	}
	b = b.Restart()
	defer b.Stop()
	c.Clock.Advance(10 * time.Minute)
	if got := seen(c, b); !slices.Equal(got, want) {
		c.Errorf("after a restart there are %q, want %q", got, want)
	}
	if open := b.Txn.Open(); len(open) > 0 {
		c.Errorf("%v are open", open)
	}
}

// there reports whether a half message that nobody has promised was stored all the same.
func (c *txnCourse) there(b *brokertest.Broker, h *half) bool {
	if h.log == 0 && h.offset == 0 && h.body != "commit" {
		return false // its send was refused
	}
	record, err := b.Store.ReadAt(h.log)
	if err != nil {
		return false
	}
	var m message.Message
	_, err = message.DecodeStored(record, &m)
	return err == nil && m.Topic == names.Half && m.UniqueID() == h.body
}

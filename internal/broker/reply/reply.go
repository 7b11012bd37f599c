// Package reply takes an answer to a request between clients back to the one that asked,
// and keeps it in the reply topic.
//
// A request is an ordinary message with three properties: REPLY_TO_CLIENT names who asks,
// CORRELATION_ID which question it is, TTL how long it waits, in units of its own. The consumer that answers sends
// the reply with the same three, and the broker calls the asker, which is known from its
// heartbeat as a producer.
//
// Invariants: a reply that its topic would not take is pushed to nobody; one that nobody
// takes is answered with the reason, and is stored all the same where replies are; done is
// called once, when the asker has answered or is given up and the store has answered.
//
// Neighbours: brokerrpc reads and answers SEND_REPLY_MESSAGE; publish checks and stores;
// clients knows the asker.
package reply

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Why a reply has reached nobody.
var (
	ErrNoAsker  = errors.New("the reply does not say who has asked")
	ErrGone     = errors.New("who has asked is not connected to this broker as a producer")
	ErrNotTaken = errors.New("who has asked did not take the reply")
)

// askerTime is how long the asker has to take a reply: as long as Apache RocketMQ waits.
const askerTime = 10 * time.Second

// Publisher checks and stores replies.
type Publisher interface {
	Check(r *publish.Request) error
	Send(r *publish.Request, done func(storage.Placed, error))
}

// Askers finds clients by their ids.
type Askers interface {
	Producer(clientID string) (clients.Client, bool)
}

// Options is what a Replier needs.
type Options struct {
	Publish  Publisher
	Askers   Askers
	Broker   *config.Live[config.Broker]
	NowMilli func() int64
}

// Replier is safe for concurrent use and has no state of its own.
type Replier struct{ o Options }

// New returns a replier.
func New(o Options) *Replier { return &Replier{o} }

// Request is one reply. Push is what its sender's header says, as the asker is told it; its
// properties and times are filled in here.
type Request struct {
	Publish publish.Request
	Push    remoting.PushReplyMessageRequest
}

// Reply pushes the reply to the asker and stores it, both at once. stored is false where
// replies are not kept, or this one could not be. All memory of r but r itself is free when
// Reply returns.
func (p *Replier) Reply(r *Request, done func(at storage.Placed, stored bool, err error)) {
	if err := p.o.Publish.Check(&r.Publish); err != nil {
		done(storage.Placed{}, false, err)
		return
	}
	w := &waiting{done: done}
	w.left.Store(2)
	p.push(r, func(err error) { w.err = err; w.arrive() })
	if !p.o.Broker.Get().StoreReplyMessageEnable {
		w.arrive()
		return
	}
	p.o.Publish.Send(&r.Publish, func(at storage.Placed, err error) {
		w.at, w.stored = at, err == nil
		w.arrive()
	})
}

// waiting is a reply of which push or append are still to end.
type waiting struct {
	done   func(storage.Placed, bool, error)
	left   atomic.Int32
	err    error // of the push
	at     storage.Placed
	stored bool
}

func (w *waiting) arrive() {
	if w.left.Add(-1) == 0 {
		w.done(w.at, w.stored, w.err)
	}
}

// push calls the asker with the reply.
func (p *Replier) push(r *Request, done func(error)) {
	m := r.Publish.Message
	id := m.Properties.Value(message.PropertyReplyToClient)
	if id == "" {
		done(fmt.Errorf("%w: it has no property %s", ErrNoAsker, message.PropertyReplyToClient))
		return
	}
	client, ok := p.o.Askers.Producer(id)
	if !ok {
		done(fmt.Errorf("%w: %s is %q", ErrGone, message.PropertyReplyToClient, id))
		return
	}
	asker, ok := client.Channel.(clients.Asked)
	if !ok {
		done(fmt.Errorf("%w: the client %q can't be called", ErrNotTaken, id))
		return
	}
	now := p.o.NowMilli()
	h := &r.Push
	h.StoreTimestamp, h.QueueID = now, m.QueueID
	h.Properties = string(m.Properties.With(message.PropertyPushReplyTime, strconv.FormatInt(now, 10)))
	asker.Ask(clients.Question{Code: remoting.ReqPushReplyMessageToClient, Header: h, Body: m.Body, Timeout: askerTime},
		func(a clients.Answer, err error) {
			switch {
			case errors.Is(err, clients.ErrNoAnswer):
				err = fmt.Errorf("%w: the client %q has not answered within %v", ErrNotTaken, id, askerTime)
			case err != nil:
				err = fmt.Errorf("%w: the client %q: %w", ErrNotTaken, id, err)
			case a.Code != remoting.ResSuccess:
				err = fmt.Errorf("%w: the client %q answered %d %s", ErrNotTaken, id, a.Code, a.Remark)
			}
			done(err)
		})
}

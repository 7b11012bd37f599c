package local

import (
	"sync"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Publisher is what is asked of publish.
type Publisher interface {
	Send(r *publish.Request, done func(storage.Placed, error))
	SendBatch(r *publish.Request, ms []*message.Message, done func([]storage.Placed, error))
}

// send is one send on its way, pooled with the functions that complete it.
type send struct {
	request publish.Request
	half    *Backend // of a half message: whose it is
	done    func(proxy.Sent, error)
	broker  string
	topic   string // where the message was sent to, which may not be where it is stored
	placed  func(storage.Placed, error)
	batch   func([]storage.Placed, error)
}

var sends sync.Pool

func newSend() *send {
	if s, is := sends.Get().(*send); is {
		return s
	}
	s := new(send)
	s.placed = s.finish
	s.batch = func(ps []storage.Placed, err error) {
		var first storage.Placed
		if len(ps) > 0 {
			first = ps[0]
		}
		s.finish(first, err)
	}
	return s
}

// finish gives the send back before it says that it is done: done may start the next.
func (s *send) finish(p storage.Placed, err error) {
	done, half, handle := s.done, s.half, ""
	if s.request.Due > 0 && err == nil {
		handle = message.RecallHandle{Topic: s.topic, Broker: s.broker, Due: s.request.Due, UniqKey: string(s.request.UniqKey)}.String()
	}
	s.done, s.half, s.topic, s.request = nil, nil, "", publish.Request{UniqKey: s.request.UniqKey[:0]}
	sends.Put(s)
	if err != nil {
		done(proxy.Sent{}, translate(err))
		return
	}
	sent := proxy.Sent{Offset: p.QueueOffset, QueueID: p.QueueID, RecallHandle: handle}
	if half != nil {
		sent.TransactionID = half.transactionOf(&p)
	}
	done(sent, nil)
}

// Send implements proxy.Messages.
func (b *Backend) Send(_ string, messages []*message.Message, done func(proxy.Sent, error)) {
	s := newSend()
	s.done, s.broker, s.topic = done, b.o.Name, messages[0].Topic
	s.request.MaxReconsumeTimes = -1
	s.request.Message = messages[0]
	if len(messages) == 1 {
		if message.TransactionType(messages[0].SysFlag) == message.SysTransactionPrepared {
			s.half = b
		}
		s.request.Held = true
		b.o.Publish.Send(&s.request, s.placed)
		return
	}
	// The batch's topic, queue and header data are the first message's; its flags too.
	head := *messages[0]
	head.Body, head.Properties = nil, ""
	s.request.Message = &head
	b.o.Publish.SendBatch(&s.request, messages, s.batch)
}

// Recall implements proxy.Sender.
func (b *Backend) Recall(topic, handle string, done func(string, error)) {
	b.o.Recall(topic, handle, "", func(id string, err error) {
		if err != nil {
			err = translate(err)
		}
		done(id, err)
	})
}

package brokerrpc

import (
	"unsafe"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) sendMessage(r *transport.Request) { s.send(r, false) }

// sending is one send from its header to its answer. It is pooled with everything in it: the
// completion is bound once, so a send allocates nothing here.
type sending struct {
	s         *Server
	header    remoting.SendMessageRequest
	message   message.Message
	request   publish.Request
	answer    remoting.SendMessageResponse
	responder transport.Responder
	id        []byte
	done      func(storage.Placed, error)
}

func (s *Server) newSending() any {
	p := &sending{s: s}
	p.done = p.complete
	return p
}

// send serves both forms of a single send.
func (s *Server) send(r *transport.Request, v2 bool) {
	p := s.sendings.Get().(*sending)
	p.responder, p.header.V2 = r.Responder(), v2
	if err := r.Decode(&p.header); err != nil {
		p.complete(storage.Placed{}, err)
		return
	}
	h := &p.header
	if h.Batch {
		s.sendBatch(r, h)
		p.free()
		return
	}
	p.message = message.Message{Topic: h.Topic, QueueID: h.QueueID, Flag: h.Flag, SysFlag: h.SysFlag,
		BornTimestamp: h.BornTimestamp, BornHost: r.Conn.RemoteAddr(), StoreHost: s.b.StoreHost,
		ReconsumeTimes: h.ReconsumeTimes, Properties: message.Properties(h.Properties), Body: r.Body}
	p.request.Message = &p.message
	fillRequest(&p.request, h, r.Version)
	p.request.Held = true
	if message.TransactionType(h.SysFlag) == message.SysTransactionPrepared {
		// Who sends a half message can be asked about it, whether a heartbeat says so yet or not.
		s.b.Clients.Produces(h.ProducerGroup, clients.Client{ID: channelOf(r.Conn).holder, Language: byte(r.Language), Version: r.Version, Channel: channelOf(r.Conn)})
	}
	s.b.Publish.Send(&p.request, p.done)
}

// versionOfOwnLimit is the first client version whose maxReconsumeTimes counts.
const versionOfOwnLimit = 121 // 3.4.9

func fillRequest(q *publish.Request, h *remoting.SendMessageRequest, version int32) {
	q.DefaultTopic, q.DefaultQueues, q.UnitMode = h.DefaultTopic, h.DefaultTopicQueueNums, h.UnitMode
	q.MaxReconsumeTimes, q.ProducerGroup = -1, h.ProducerGroup
	if h.MaxReconsumeTimes.Set && version >= versionOfOwnLimit {
		q.MaxReconsumeTimes = h.MaxReconsumeTimes.Value
	}
}

// complete answers. Properties and body of the request may be gone.
func (p *sending) complete(placed storage.Placed, err error) {
	s := p.s
	if err != nil {
		s.refuseSend(p.responder, err)
		p.free()
		return
	}
	settings := s.b.Config.Get()
	p.id = message.AppendOffsetID(p.id[:0], s.b.StoreHost, placed.PhysicalOffset)
	p.answer = remoting.SendMessageResponse{MsgID: text(p.id), QueueID: p.request.QueueID, QueueOffset: placed.QueueOffset,
		TransactionID: text(p.request.UniqKey), Region: settings.RegionID, TraceOn: traceOn(settings.TraceOn)}
	if p.request.Due > 0 {
		p.answer.RecallHandle = message.RecallHandle{Topic: p.header.Topic, Broker: settings.BrokerName, Due: p.request.Due, UniqKey: text(p.request.UniqKey)}.String()
	}
	p.responder.Reply(remoting.ResSuccess, "", &p.answer, nil)
	p.free()
}

func (p *sending) free() {
	p.header, p.message, p.answer, p.responder = remoting.SendMessageRequest{}, message.Message{}, remoting.SendMessageResponse{}, transport.Responder{}
	p.request = publish.Request{UniqKey: p.request.UniqKey[:0]}
	p.s.sendings.Put(p)
}

// text is b as a string, for as long as b stays as it is.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func traceOn(on bool) string {
	if on {
		return "true"
	}
	return "false"
}

// sendRefusal is what the answer to a refused send carries beside code and remark.
type sendRefusal struct{ region, trace string }

// Fields names the fields.
func (h *sendRefusal) Fields(v *remoting.Visitor) {
	v.Name("MSG_REGION", &h.region, remoting.Required)
	v.Name("TRACE_ON", &h.trace, remoting.Required)
}

func (s *Server) refuseSend(r transport.Responder, err error) {
	settings := s.b.Config.Get()
	code, remark := s.translate(err)
	r.Reply(code, remark, &sendRefusal{settings.RegionID, traceOn(settings.TraceOn)}, nil)
}

package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// maxHeld bounds the batches that are listed for each queue.
const maxHeld = 1000

// bolideGetPopState tells what a group has in flight, for bolide admin pop.
func (s *Server) bolideGetPopState(r *transport.Request) {
	var h remoting.GetPopStateRequest
	if !s.read(r, &h) {
		return
	}
	answer := remoting.PopState{Now: s.b.Clock.NowMilli()}
	var seen []pop.Inspection
	if at := h.Offset.Or(-1); at >= 0 {
		seen = s.b.Pop.InspectAt(h.Group, h.Topic, h.QueueID, at)
	} else {
		seen = s.b.Pop.Inspect(h.Group, h.Topic, int(min(max(h.Limit, 0), maxHeld)))
	}
	for _, i := range seen {
		answer.Queues = append(answer.Queues, popQueue(&i))
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}

func popQueue(i *pop.Inspection) remoting.PopQueue {
	q := remoting.PopQueue{Topic: i.Topic, QueueID: i.QueueID, Ready: i.Ready, InFlight: int64(i.InFlight), Aside: int64(i.Aside),
		Next: i.Next, Lowest: i.Lowest, End: i.End, Throttled: i.Throttled, Oldest: i.Oldest}
	for _, f := range i.Held {
		q.Held = append(q.Held, remoting.PopHeld{Offsets: f.Offsets, PopTime: f.PopTime, Due: f.Due, Invisible: f.Invisible, Holder: f.Holder,
			Renewed: f.Renewed, Claimed: f.Claimed, Suspended: f.Suspended, Failures: int32(f.Failures), Attempts: f.Attempts, MessageGroup: f.MessageGroup})
	}
	for _, b := range i.Blocked {
		q.Blocked = append(q.Blocked, remoting.PopBlocked{MessageGroup: b.MessageGroup, Offset: b.Offset, Holder: b.Holder, Due: b.Due, Waiting: int32(b.Waiting)})
	}
	return q
}

package brokerrpc

import (
	"maps"
	"slices"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// maxTimers bounds the messages that are listed.
const maxTimers = 1000

// bolideGetTimers tells what waits for a time of its own, for bolide admin timer.
func (s *Server) bolideGetTimers(r *transport.Request) {
	var h remoting.GetTimersRequest
	if !s.read(r, &h) {
		return
	}
	list, err := s.b.Wheel.List(h.Topic, int(min(max(h.Limit, 0), maxTimers)))
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	answer := remoting.Timers{Now: s.b.Clock.WallMilli()}
	counts := s.b.Wheel.Counts()
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if h.Topic == "" || name == h.Topic {
			answer.Topics = append(answer.Topics, remoting.TimerTopic{Topic: name, Count: counts[name]})
		}
	}
	for _, t := range list {
		answer.Next = append(answer.Next, remoting.Timer{Topic: t.Topic, Due: t.Due, MsgID: t.UniqKey, Size: t.Size, Recalled: t.Recalled})
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}

package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// countDeadLetters tells how many dead letters each group has, for bolide admin dlq list.
func (s *Server) countDeadLetters(r *transport.Request) {
	all, err := s.b.Admin.DeadLetters()
	if err != nil {
		s.refuse(r.Responder(), err)
		return
	}
	var answer remoting.DeadLetterCounts
	for _, d := range all {
		answer.Groups = append(answer.Groups, remoting.DeadLetterCount{Group: d.Group, Count: d.Count, Redriven: d.Redriven, Last: d.Last})
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}

package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// getAllProducerInfo lists all producers; tools show the address as Java writes it, with a
// slash.
func (s *Server) getAllProducerInfo(r *transport.Request) {
	answer := remoting.ProducerTable{Data: map[string][]remoting.ProducerInfo{}}
	for group, list := range s.b.Clients.AllProducers() {
		for _, p := range list {
			answer.Data[group] = append(answer.Data[group], remoting.ProducerInfo{ClientID: p.Client.ID, RemoteIP: "/" + p.Client.Channel.RemoteAddr().String(),
				Language: remoting.Language(p.Client.Language).String(), Version: p.Client.Version, LastUpdateTimestamp: p.At.UnixMilli()})
		}
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&answer))
}

package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getProducerConnectionList(r *transport.Request) {
	var h remoting.GetProducerConnectionListRequest
	if !s.read(r, &h) {
		return
	}
	list := s.b.Clients.Producers(h.ProducerGroup)
	if len(list) == 0 {
		r.Responder().Reply(remoting.ResSystemError, "the producer group["+h.ProducerGroup+"] not exist", nil, nil)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, remoting.Marshal(&remoting.ProducerConnection{ConnectionSet: connectionsOf(list)}))
}

func connectionsOf(list []clients.Client) []remoting.Connection {
	out := make([]remoting.Connection, len(list))
	for i, c := range list {
		out[i] = remoting.Connection{ClientID: c.ID, ClientAddr: c.Channel.RemoteAddr().String(),
			Language: remoting.Language(c.Language).String(), Version: c.Version}
	}
	return out
}

package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getBrokerConfig(r *transport.Request) {
	version := s.b.Topics.Version()
	text := config.FormatProperties(append(config.List(s.b.Config.Get()), config.List(s.b.StoreConfig.Get())...))
	r.Responder().Reply(remoting.ResSuccess, "", &remoting.GetBrokerConfigResponse{Version: string(remoting.Marshal(&version))}, text)
}

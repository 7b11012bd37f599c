package namesrvrpc

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// protected can not be changed over the wire, whoever asks.
var protected = map[string]bool{"configBlackList": true, "configStorePath": true, "kvConfigPath": true, "rocketmqHome": true}

func (s *Server) updateNamesrvConfig(r *transport.Request) (a answer, err error) {
	list, err := config.ParseProperties(r.Body)
	if err != nil {
		return a, err
	}
	settings := make(map[string]string, len(list))
	for _, p := range list {
		if protected[p.Name] {
			return a, errProtected
		}
		settings[p.Name] = p.Value
	}
	if err := s.table.Config().Change(settings); err != nil {
		return a, fmt.Errorf("change configuration: %w", err)
	}
	return a, nil
}

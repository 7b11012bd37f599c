package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// getTimerMetrics counts what waits for a time of its own.
func (s *Server) getTimerMetrics(r *transport.Request) {
	if !s.b.StoreConfig.Get().TimerWheelEnable {
		r.Responder().Reply(remoting.ResSystemError, "The timer message store is null: timerWheelEnable is false", nil, nil)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, s.b.Wheel.ExportCounts())
}

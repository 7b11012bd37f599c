package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// getTimerCheckPoint tells how far the timers are. Where there are none, Apache's broker has
// no checkpoint either.
func (s *Server) getTimerCheckPoint(r *transport.Request) {
	if !s.b.StoreConfig.Get().TimerWheelEnable {
		r.Responder().Reply(remoting.ResSystemError, "The checkpoint is null: timerWheelEnable is false", nil, nil)
		return
	}
	r.Responder().Reply(remoting.ResSuccess, "", nil, s.b.Wheel.Checkpoint())
}

package pop

import "fmt"

// A group that takes messages and acknowledges none would make the broker's state grow
// without bound. Where enablePopMessageThreshold is set, a queue whose
// popInflightMessageThreshold messages are in flight for a group gives that group nothing
// more. A request that finds nothing else waits like any other; it is woken when messages
// are done, and says at its end why it got nothing. Other groups do not notice.

// throttled says whom the limit holds back.
func throttled(w *window, limit int64) string {
	return fmt.Sprintf("flow control: group %s has %d messages of topic %s, queue %d in flight, popInflightMessageThreshold allows no more; acknowledge them, or wait until they lapse",
		w.key.group, limit, w.key.topic, w.key.queue)
}

// relieveLocked reports whether requests that w refused may come back, and must then be
// woken by relieved once w is unlocked.
func (p *Popper) relieveLocked(w *window) bool {
	if !w.mu.refused || w.subject == nil {
		return false
	}
	cfg := p.o.Broker.Get()
	if cfg.EnablePopMessageThreshold && int64(w.mu.inFlight) >= cfg.PopInflightMessageThreshold {
		return false
	}
	w.mu.refused = false
	return true
}

// relieved wakes a request that waits for w's queue.
func (p *Popper) relieved(w *window) {
	w.mu.Lock()
	s, flag := w.subject, w.flag
	w.mu.Unlock()
	s.version.Add(1)
	p.wakeOne(s, flag, w.key.queue)
}

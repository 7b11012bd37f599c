package node

import (
	"sync"

	"github.com/bolidemq/bolide/internal/broker"
)

// Why a node that is sound is not ready.
const (
	starting = "starting"
	stopping = "stopping"
)

// standing is how far a node is, for those who ask while it starts and stops.
type standing struct {
	sync.RWMutex
	phase  string         // starting or stopping; empty: every listener serves
	broker *broker.Broker // may be asked; nil: none is open
}

// serves lets the broker be asked from now on.
func (s *standing) serves(b *broker.Broker) {
	s.Lock()
	defer s.Unlock()
	s.phase, s.broker = "", b
}

func (s *standing) stops() {
	s.Lock()
	defer s.Unlock()
	s.phase = stopping
}

// closing lets nobody ask the broker any more, and waits for those who do.
func (s *standing) closing() {
	s.Lock()
	defer s.Unlock()
	s.broker = nil
}

// Troubles are why nobody should be sent here now, a line each: it starts or stops, something
// inside has failed, or messages are refused. There are none while it is ready.
func (n *Node) Troubles() (all []string) {
	n.standing.RLock()
	defer n.standing.RUnlock()
	if n.standing.phase != "" {
		all = append(all, n.standing.phase)
	}
	if n.hasFailed() {
		all = append(all, "something inside has failed; the log says what")
	}
	if b := n.standing.broker; b != nil && n.standing.phase != stopping {
		if err := b.Refusal(); err != nil {
			all = append(all, err.Error())
		}
	}
	return all
}

func (n *Node) hasFailed() bool {
	select {
	case <-n.inner.Failed():
		return true
	default:
		return false
	}
}

package sock

import (
	"sync"
	"time"
)

// Conns are the connections that a server or a client has open, and a timer that looks after
// them while there are any. The zero value is ready.
type Conns[C comparable] struct {
	// Running counts what goes on for them: their readers, which Add counts, and what is
	// started while a reader has not ended. After Close it can be waited for.
	Running sync.WaitGroup

	mu struct {
		sync.Mutex
		open   map[C]struct{}
		closed bool
		sweep  *time.Timer // nil while there are none
	}
}

// Add takes a connection in and reports true, unless Close was called; whoever reads it calls
// Remove and Running.Done in the end. Where it is the only one, sweep is called after a time,
// and later as that says with Again.
func (s *Conns[C]) Add(c C, after time.Duration, sweep func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return false
	}
	if s.mu.open == nil {
		s.mu.open = make(map[C]struct{})
	}
	s.mu.open[c] = struct{}{}
	s.Running.Add(1)
	if s.mu.sweep == nil {
		s.mu.sweep = time.AfterFunc(after, sweep)
	}
	return true
}

// Remove takes a connection out.
func (s *Conns[C]) Remove(c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.open, c)
	if len(s.mu.open) == 0 && s.mu.sweep != nil {
		s.mu.sweep.Stop()
		s.mu.sweep = nil
	}
}

// Again has the sweep called once more, if there are connections.
func (s *Conns[C]) Again(after time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.sweep != nil {
		s.mu.sweep.Reset(after)
	}
}

// All are the connections that are open now.
func (s *Conns[C]) All() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]C, 0, len(s.mu.open))
	for c := range s.mu.open {
		all = append(all, c)
	}
	return all
}

// Close makes Add refuse from now on; those there are stay.
func (s *Conns[C]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
}

// Closed reports whether Close was called.
func (s *Conns[C]) Closed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.closed
}

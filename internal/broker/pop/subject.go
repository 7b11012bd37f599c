package pop

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

type subjectKey struct{ group, topic string }

// subject is a group's consumption of one topic: the lock that no request queues behind.
//
// One request at a time reads; one that comes meanwhile is put into waiting and its
// goroutine goes on with something else. Whoever leaves hands a contended subject, still
// held, to a worker, which serves all that wait. So no wake-up is lost and nobody starves.
type subject struct {
	key   subjectKey
	topic [3]string // real topics by flag

	// version counts what can make a parked request worth another look beside arrivals:
	// messages set aside or given back, an order or a limit that lets more through.
	version atomic.Uint64
	peeks   atomic.Uint64 // like counter, of those who only look

	mu      sync.Mutex
	held    bool
	gone    bool // let go of, see ForgetIdle: the next request makes another
	waiting []*request

	// Used by the holder only.
	counter uint64
	windows [3][]*window // by flag and queue
	steps   []step
	started reach // queues whose windows know where they begin, by flag
	// attempts are the ids of recent ordered requests, in two generations: only an id that
	// came before is worth a search for what it got.
	attempts, oldAttempts map[string]struct{}
}

// attemptSeen reports whether id came before, and notes it.
func (s *subject) attemptSeen(id string) bool {
	_, seen := s.attempts[id]
	if !seen {
		_, seen = s.oldAttempts[id]
	}
	if len(s.attempts) >= 4096 {
		s.oldAttempts, s.attempts = s.attempts, nil
	}
	if s.attempts == nil {
		s.attempts = make(map[string]struct{})
	}
	s.attempts[id] = struct{}{}
	return seen
}

func newSubject(k subjectKey) *subject {
	s := &subject{key: k}
	s.topic[receipt.FlagNormal] = k.topic
	if names.IsLite(k.topic) {
		return s // in order, so nothing of it is ever in a retry topic
	}
	s.topic[receipt.FlagRetryV1] = names.PopRetryV1(k.topic, k.group)
	s.topic[receipt.FlagRetryV2] = names.PopRetryV2(k.topic, k.group)
	return s
}

// enter reports whether q may read now; otherwise q waits and somebody else goes on, or,
// where s was let go of, has to find its subject anew.
func (s *subject) enter(q *request) (entered, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gone:
		return false, true
	case s.held:
		s.waiting = append(s.waiting, q)
		return false, false
	}
	s.held = true
	return true, false
}

// nextOrLeave takes the next waiting request, or gives the subject up if there is none.
func (s *subject) nextOrLeave() *request {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.held = false
		s.waiting = nil
		return nil
	}
	q := s.waiting[0]
	s.waiting[0] = nil
	s.waiting = s.waiting[1:]
	return q
}

// leave gives the subject up, or reports that others wait and it is still held.
func (s *subject) leave() (contended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) > 0 {
		return true
	}
	s.held = false
	return false
}

// abandon takes all that wait, when the server stops.
func (s *subject) abandon() []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.waiting
	s.waiting, s.held = nil, false
	return q
}

func (p *Popper) subject(k subjectKey) *subject {
	p.mu.RLock()
	s := p.mu.subjects[k]
	p.mu.RUnlock()
	if s != nil {
		return s
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s = p.mu.subjects[k]; s == nil {
		s = newSubject(k)
		p.mu.subjects[k] = s
	}
	return s
}

// window returns the window of a key, nil if the group never read that queue.
func (p *Popper) window(k windowKey) *window {
	p.mu.RLock()
	w := p.mu.windows[k]
	p.mu.RUnlock()
	return w
}

// windowOrRevisit is window for one that may have been let go of.
func (p *Popper) windowOrRevisit(k windowKey) *window {
	if w := p.window(k); w != nil {
		return w
	}
	return p.revisit(k)
}

// lockWindow returns the window of a key with its lock held, nil when there is none. It is w,
// not looked up again, where that is it. One that was let go of before it could be locked is
// looked for once more.
func (p *Popper) lockWindow(w *window, k windowKey) *window {
	if w == nil || w.key != k {
		w = p.windowOrRevisit(k)
	}
	for ; w != nil; w = p.windowOrRevisit(k) {
		if w.mu.Lock(); !w.mu.dropped {
			return w
		}
		w.mu.Unlock()
	}
	return nil
}

func (p *Popper) allWindows() []*window {
	p.mu.RLock()
	defer p.mu.RUnlock()
	all := make([]*window, 0, len(p.mu.windows))
	for _, w := range p.mu.windows {
		all = append(all, w)
	}
	return all
}

// windowOf returns the subject's window of one queue, made when there is none. Only the
// holder of s may call it.
func (p *Popper) windowOf(s *subject, flag byte, queue int32) *window {
	known := s.windows[flag]
	if int(queue) < len(known) {
		if w := known[queue]; w != nil && !w.gone() {
			return w
		}
	}
	k := windowKey{group: s.key.group, topic: s.topic[flag], queue: queue}
	p.revisit(k)
	p.mu.Lock()
	w := p.mu.windows[k]
	if w == nil {
		w = newWindow(k, p.mu.nextID)
		w.mu.floor = max(p.now(), p.mu.floor)
		p.mu.nextID++
		p.addLocked(w)
	}
	p.mu.Unlock()
	w.mu.Lock()
	w.subject, w.flag = s, flag
	w.mu.Unlock()
	for int(queue) >= len(s.windows[flag]) {
		s.windows[flag] = append(s.windows[flag], nil)
	}
	s.windows[flag][queue] = w
	return w
}

func (w *window) gone() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.dropped
}

// readyQueue is what the workers have to do: requests that were woken, subjects that were
// handed over with requests waiting, dead letters to write. Putting never blocks.
type readyQueue struct {
	wake   chan struct{}
	rounds *round.Rounds
	mu     sync.Mutex
	jobs   []job
}

type job struct {
	q *request
	s *subject
	f *forwarding
	// do is somebody else's; closing says that the workers have ended.
	do func(closing bool)
}

// Go has a worker do something that may pop; closing says that the workers have ended
// instead, and nothing can be popped any more.
func (p *Popper) Go(do func(closing bool)) { p.ready.put(job{do: do}) }

// put leaves a job to the workers.
func (r *readyQueue) put(j job) {
	r.mu.Lock()
	r.jobs = append(r.jobs, j)
	r.mu.Unlock()
	r.signal()
}

// woken leaves a request that was woken to the workers, or to the end of a round.
func (r *readyQueue) woken(q *request) {
	r.mu.Lock()
	r.jobs = append(r.jobs, job{q: q})
	r.mu.Unlock()
	if !r.rounds.Open() {
		r.signal()
	}
}

func (r *readyQueue) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *readyQueue) take() (j job, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.jobs) == 0 {
		r.jobs = nil
		return job{}, false
	}
	j = r.jobs[0]
	r.jobs[0] = job{}
	r.jobs = r.jobs[1:]
	if len(r.jobs) > 0 {
		r.signal()
	}
	return j, true
}

// only takes the one request that is ready; nil when there is none, or more to do.
func (r *readyQueue) only() *request {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.jobs) == 0:
		return nil
	case len(r.jobs) > 1 || r.jobs[0].q == nil:
		r.signal()
		return nil
	}
	q := r.jobs[0].q
	r.jobs = nil
	return q
}

// Settle goes on with the request that a round which has ended has woken; where there are
// more, the workers do.
func (p *Popper) Settle() {
	if q := p.ready.only(); q != nil {
		p.run(q)
	}
}

// work is one worker.
func (p *Popper) work(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			p.ready.signal() // another worker may still run
			return ctx.Err()
		case <-p.ready.wake:
			p.runReady()
		}
	}
}

// runReady does what is ready now and reports how many jobs that was.
func (p *Popper) runReady() (n int) {
	for ; ; n++ {
		j, ok := p.ready.take()
		switch {
		case !ok:
			return n
		case j.q != nil:
			p.run(j.q)
		case j.s != nil:
			p.serveWaiting(j.s)
		case j.do != nil:
			j.do(false)
		default:
			j.f.write()
		}
	}
}

package poll

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bolidemq/bolide/internal/lifecycle"
)

const (
	// takeOver is how often the watch looks whether the leader is held up.
	takeOver = 2 * time.Millisecond
	// calm is how long nothing has happened when the watch rests.
	calm = 3 * takeOver
	// maxIdle is how many goroutines wait to lead when there is little to do.
	maxIdle = 4
	// plenty is how much at once says that there is more to do than one request.
	plenty = 8 << 10
)

// Poller watches connections.
type Poller struct {
	epoll int
	doze  *doze
	gaps  gaps // the leader's
	tasks lifecycle.Tasks
	late  lifecycle.Tasks // connections that end after Run

	token  chan struct{} // held by who leads
	idle   atomic.Int32  // goroutines that wait for it
	turns  atomic.Uint64
	leader atomic.Uint64 // the turn in which the leader serves a connection; 0: it watches
	awake  atomic.Bool   // the watch is on
	wake   chan struct{} // switches it on
	ended  chan struct{}
	failed chan error

	mu struct {
		sync.RWMutex
		conns  map[int32]*Conn // by descriptor
		closed bool
	}
}

// New returns a poller, or nil where connections are better read by goroutines.
func New(log *slog.Logger) (*Poller, error) {
	if runtime.GOMAXPROCS(0) < 2 {
		return nil, nil
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	doze, err := newDoze(epoll)
	if err != nil {
		unix.Close(epoll)
		return nil, err
	}
	p := &Poller{epoll: epoll, doze: doze, token: make(chan struct{}, 1), wake: make(chan struct{}, 1), ended: make(chan struct{}), failed: make(chan error, 1)}
	p.tasks.Log, p.late.Log = log, log
	p.mu.conns = map[int32]*Conn{}
	p.token <- struct{}{}
	return p, nil
}

// Run serves the connections that are handed over until ctx ends, or what serves one of them
// panics. Those that are open then are not served any more, unless to be closed.
func (p *Poller) Run(ctx context.Context) error {
	stop, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, stop, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(stop)}); err != nil {
		return fmt.Errorf("epoll: %w", err)
	}
	p.run(p.follow)
	err = p.watch(ctx)
	p.mu.Lock()
	p.mu.closed = true
	p.mu.Unlock()
	close(p.ended)
	_, _ = unix.Write(stop, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	p.tasks.Wait()
	unix.Close(stop)
	p.doze.close()
	unix.Close(p.epoll)
	return err
}

// run starts f as a goroutine of the poller. A panic ends the poller: whoever panicked may
// have led.
func (p *Poller) run(f func()) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	tasks := &p.tasks
	if p.mu.closed {
		tasks = &p.late
	}
	tasks.Go("poller", func() {
		defer func() {
			if why := recover(); why != nil {
				select {
				case p.failed <- fmt.Errorf("panic: %v\n%s", why, debug.Stack()):
				default:
				}
			}
		}()
		f()
	})
}

// watch gives the lead away when the leader is held up by what it serves.
func (p *Poller) watch(ctx context.Context) error {
	tick := time.NewTicker(takeOver)
	defer tick.Stop()
	var last uint64
	quiet := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-p.failed:
			return err
		case <-tick.C:
		}
		now := p.turns.Load()
		if now != last {
			last, quiet = now, 0
			continue
		}
		p.release(now) // the same turn for a whole tick
		if quiet++; quiet < int(calm/takeOver) {
			continue
		}
		tick.Stop()
		p.awake.Store(false)
		if p.turns.Load() == now {
			select {
			case <-ctx.Done():
				return nil
			case err := <-p.failed:
				return err
			case <-p.wake:
			}
		}
		p.awake.Store(true)
		tick.Reset(takeOver)
		quiet = 0
	}
}

// follow leads whenever nobody else does.
func (p *Poller) follow() {
	var stint stint
	for p.rest() {
		select {
		case <-p.token:
			p.idle.Add(-1)
		case <-p.ended:
			return
		}
		for p.lead() {
			stint.end()
		}
	}
}

// stint is how long a goroutine has led without a break.
type stint struct{ began time.Time }

// longestStint is less than the 10 ms after which the runtime's monitor takes the processor from
// a goroutine that was not rescheduled. The leader, found in a system call, would lose it again and again,
// and after each time the monitor looks every 20 µs for a while: thousands of wakings a second.
const longestStint = 5 * time.Millisecond

// end has the goroutine rescheduled when its stint has become long.
func (s *stint) end() {
	if now := time.Now(); now.Sub(s.began) > longestStint {
		runtime.Gosched()
		s.began = now
	}
}

// rest counts the caller among those that wait, unless they are enough.
func (p *Poller) rest() bool {
	for {
		n := p.idle.Load()
		if n >= maxIdle {
			return false
		}
		if p.idle.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// lead waits for one thing to happen and sees to it. It reports whether this goroutine
// still leads. One thing at a time: what else is ready is for whoever leads then.
func (p *Poller) lead() bool {
	var events [1]unix.EpollEvent
	busy := p.wait(events[:], 0)
	if !busy && !p.waitLong(events[:]) {
		return true
	}
	select {
	case <-p.ended:
		p.token <- struct{}{}
		return false
	default:
	}
	turn := p.turns.Add(1)
	p.leader.Store(turn)
	if busy {
		p.release(turn)
	} else if !p.awake.Load() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.mu.RLock()
	c := p.mu.conns[events[0].Fd]
	p.mu.RUnlock()
	if c != nil && c.number == events[0].Pad {
		c.happened(events[0].Events, turn)
	}
	return p.leader.CompareAndSwap(turn, 0)
}

// wait waits for at most ms, or for ever when that is less than 0, and reports whether
// something has happened. Nothing can go wrong with descriptors that are open but EINTR.
func (p *Poller) wait(events []unix.EpollEvent, ms int) bool {
	n, _ := unix.EpollWait(p.epoll, events, ms)
	return n > 0
}

// waitLong waits until something happens, and reports whether it has.
func (p *Poller) waitLong(events []unix.EpollEvent) (happened bool) {
	began := time.Now()
	if !p.gaps.last() {
		happened = p.wait(events, -1)
	} else if happened = p.wait(events, brief); !happened {
		p.doze.until(p.epoll)
		happened = p.wait(events, 0)
	}
	p.gaps.ended(time.Since(began))
	return happened
}

// release gives the lead of a turn to somebody else, unless that has happened.
func (p *Poller) release(turn uint64) {
	if turn == 0 || !p.leader.CompareAndSwap(turn, 0) {
		return
	}
	p.token <- struct{}{}
	if p.idle.Load() == 0 {
		p.run(p.follow)
	}
}

// Take takes a connection's socket over and returns the connection to go on with: a *Conn,
// or nc itself where there is no poller or no plain socket.
func (p *Poller) Take(nc net.Conn) net.Conn {
	if p == nil {
		return nc
	}
	if c := p.take(nc); c != nil {
		return c
	}
	return nc
}

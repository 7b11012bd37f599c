package poll

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// doze is how the leader waits after nothing has happened for a moment: as a goroutine that is
// parked. A goroutine that waits in a system call keeps its processor until the runtime's monitor
// takes that away, after 10 ms in which the monitor looks some sixty times; one that is parked
// lets the monitor sleep at once. But then the monitor wakes with the next request, so that where
// they are less than 10 ms apart this costs twice as much: gaps tells which it is.
type doze struct {
	epoll int // of the poller's epoll; it is armed for one waking at a time, so that nobody is woken while the leader is awake
	file  *os.File
	raw   syscall.RawConn
	woken func(fd uintptr) bool
}

// newDoze returns one that hears of what watched does.
func newDoze(watched int) (*doze, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll: %w", err)
	}
	d := &doze{epoll: epoll}
	if err = unix.SetNonblock(epoll, true); err == nil {
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, watched, &unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(watched)})
	}
	if err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("epoll: %w", err)
	}
	d.file = os.NewFile(uintptr(epoll), "epoll") // which the runtime's poller watches, as it does not block
	if d.raw, err = d.file.SyscallConn(); err != nil {
		d.file.Close()
		return nil, fmt.Errorf("epoll: %w", err)
	}
	var events [1]unix.EpollEvent
	d.woken = func(uintptr) bool {
		n, err := unix.EpollWait(d.epoll, events[:], 0)
		return n > 0 || err != nil
	}
	return d, nil
}

// until parks the caller until something happens, or has happened already.
func (d *doze) until(watched int) {
	if unix.EpollCtl(d.epoll, unix.EPOLL_CTL_MOD, watched, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(watched)}) == nil {
		_ = d.raw.Read(d.woken)
	}
}

// close ends it when nobody waits any more.
func (d *doze) close() { d.file.Close() }

const (
	// brief is for how many milliseconds nothing has happened when the leader dozes. Shorter gaps
	// are those within a burst.
	brief = 1
	// lasting is from when on dozing was worth it.
	lasting = 8 * time.Millisecond
	// What one gap that lasted is worth in ones that did not, and how many are remembered.
	worth    = 4
	remember = 2 * worth
)

// gaps is whether those between bursts have lasted of late.
type gaps struct{ score int }

// last reports whether the next one is likely to.
func (g *gaps) last() bool { return g.score > 0 }

// ended counts a gap.
func (g *gaps) ended(d time.Duration) {
	switch {
	case d >= lasting:
		g.score = min(g.score+worth, remember)
	case d >= brief*time.Millisecond:
		g.score = max(g.score-1, -remember)
	}
}

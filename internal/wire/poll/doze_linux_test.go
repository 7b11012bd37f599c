package poll

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// watched is an epoll descriptor with one event counter in it, and how to count it up and down.
func watched(t *testing.T) (epoll int, happen, forget func()) {
	t.Helper()
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	counter, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(counter); unix.Close(epoll) })
	if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, counter, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(counter)}); err != nil {
		t.Fatal(err)
	}
	var b [8]byte
	return epoll, func() { _, _ = unix.Write(counter, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }, func() { _, _ = unix.Read(counter, b[:]) }
}

// Who dozes is woken by what happens then and by what has happened before, and by nothing that
// happened while it was awake.
func TestDoze(t *testing.T) {
	epoll, happen, forget := watched(t)
	d, err := newDoze(epoll)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	doze := func() <-chan struct{} {
		woken := make(chan struct{})
		go func() { d.until(epoll); close(woken) }()
		return woken
	}
	hear := func(when string, woken <-chan struct{}) {
		t.Helper()
		select {
		case <-woken:
		case <-time.After(30 * time.Second):
			t.Fatal("not woken by what happened " + when)
		}
	}
	for range 1000 {
		woken := doze()
		happen()
		hear("at the same time", woken)
		forget()
		happen()
		hear("before", doze())
		forget()
	}
	happen()
	forget()
	woken := doze()
	select {
	case <-woken:
		t.Fatal("woken by what is over")
	case <-time.After(20 * time.Millisecond):
	}
	happen()
	hear("after a while", woken)
}

func TestGaps(t *testing.T) {
	var g gaps
	after := func(last bool, gaps ...time.Duration) {
		t.Helper()
		for _, d := range gaps {
			g.ended(d)
		}
		if g.last() != last {
			t.Errorf("after %v: %t", gaps, g.last())
		}
	}
	const in, short, long = 100 * time.Microsecond, 3 * time.Millisecond, 30 * time.Millisecond
	after(false)
	after(false, short, in, in)
	after(true, long)
	for range 10 { // bursts with a pause in each, far apart
		after(true, in, short, in, in, short, long)
	}
	after(true, long, in, in, in)
	after(false, short, short, short, short, short, short, short, short)
	for range 10 { // requests that come one by one
		after(false, short, in, short)
	}
	after(false, long)
	after(false, short, short, long)
}

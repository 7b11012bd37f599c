package sock

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
)

// shortOf is what Accept says when there are no descriptors left.
type shortOf struct{ error }

func (shortOf) Timeout() bool   { return false }
func (shortOf) Temporary() bool { return true }

// script is a listener whose Accept answers what the test lists, and then waits to be
// closed.
type script struct {
	net.Listener
	answers []error       // nil: a connection
	idle    chan struct{} // closed when all are given
	closed  chan struct{}
}

func (s *script) Accept() (net.Conn, error) {
	if len(s.answers) > 0 {
		err := s.answers[0]
		s.answers = s.answers[1:]
		if err != nil {
			return nil, err
		}
		c, _ := net.Pipe()
		return c, nil
	}
	close(s.idle)
	<-s.closed
	return nil, net.ErrClosed
}

func (s *script) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func TestListeners(t *testing.T) {
	broken := errors.New("broken")
	short := shortOf{errors.New("no descriptors")}
	for name, c := range map[string]struct {
		answers []error
		taken   int
		err     error
		end     func(*Listeners, context.CancelFunc)
	}{
		"ends with its context":       {answers: []error{nil, nil}, taken: 2, end: func(_ *Listeners, cancel context.CancelFunc) { cancel() }},
		"ends when closed":            {answers: []error{nil}, taken: 1, end: func(ls *Listeners, _ context.CancelFunc) { ls.Close() }},
		"outlives a lack of handles":  {answers: []error{short, short, nil}, taken: 1, end: func(ls *Listeners, _ context.CancelFunc) { ls.Close() }},
		"fails with its listener":     {answers: []error{nil, broken}, taken: 1, err: broken},
		"ends when nothing is wanted": {answers: []error{nil, nil, nil, nil, broken}, taken: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ls Listeners
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l := &script{answers: c.answers, idle: make(chan struct{}), closed: make(chan struct{})}
				taken, ended := 0, make(chan error, 1)
				go func() {
					ended <- ls.Serve(ctx, l, slog.New(slog.DiscardHandler), func(net.Conn) bool { taken++; return taken < 4 })
				}()
				if c.end != nil {
					<-l.idle
					c.end(&ls, cancel)
				}
				if err := <-ended; !errors.Is(err, c.err) || taken != c.taken {
					t.Errorf("%d taken, %v; want %d, %v", taken, err, c.taken, c.err)
				}
				select {
				case <-l.closed:
				default:
					t.Error("the listener is open")
				}
			})
		})
	}
	var ls Listeners
	ls.Close()
	l := &script{closed: make(chan struct{})}
	if err := ls.Serve(t.Context(), l, nil, nil); err != nil {
		t.Error(err)
	}
	<-l.closed
}

func TestAddrPort(t *testing.T) {
	for want, a := range map[string]net.Addr{
		"1.2.3.4:5":   &net.TCPAddr{IP: net.ParseIP("::ffff:1.2.3.4"), Port: 5},
		"[fd00::1]:6": &net.TCPAddr{IP: net.ParseIP("fd00::1"), Port: 6},
	} {
		if got := AddrPort(a).String(); got != want {
			t.Errorf("%v: %s, want %s", a, got, want)
		}
	}
	for _, a := range []net.Addr{nil, &net.UnixAddr{Name: "x"}} {
		if got := AddrPort(a); got.Addr() != (netip.Addr{}) {
			t.Errorf("%v: %v", a, got)
		}
	}
}

package sock

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Listeners accepts the connections of a server, of as many listeners as it has. The zero
// value is ready.
type Listeners struct {
	mu     sync.Mutex
	open   map[net.Listener]struct{}
	closed bool
}

// Serve gives each connection of l to take, which must not wait, until ctx ends, l fails,
// take returns false or Close is called; only a failure is an error. It closes l.
func (ls *Listeners) Serve(ctx context.Context, l net.Listener, log *slog.Logger, take func(net.Conn) bool) error {
	defer l.Close()
	if !ls.add(l) {
		return nil
	}
	defer ls.remove(l)
	defer context.AfterFunc(ctx, func() { l.Close() })()
	pause := time.Duration(0)
	for {
		c, err := l.Accept()
		if err == nil {
			pause = 0
			if !take(c) {
				return nil
			}
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) || ls.isClosed() {
			return nil
		}
		if !temporary(err) {
			return err
		}
		// Out of descriptors, most likely: those who leave make room again.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		log.Warn("accept failed", "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

func (ls *Listeners) add(l net.Listener) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed {
		return false
	}
	if ls.open == nil {
		ls.open = map[net.Listener]struct{}{}
	}
	ls.open[l] = struct{}{}
	return true
}

func (ls *Listeners) remove(l net.Listener) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	delete(ls.open, l)
}

// Close ends every Serve, now and later.
func (ls *Listeners) Close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	for l := range ls.open {
		l.Close()
	}
}

func (ls *Listeners) isClosed() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.closed
}

func temporary(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Temporary() //nolint:staticcheck // still what Accept reports
}

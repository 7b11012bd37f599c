package lifecycle

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
)

// Tasks runs short pieces of work that end by themselves, such as looking at the first
// bytes of a connection. A panic ends its task alone and is logged. The zero value is
// ready; Log may be set before the first Go.
type Tasks struct {
	Log     *slog.Logger
	running sync.WaitGroup
}

// Go starts f as a task called name. It must not be called after Wait has begun.
func (t *Tasks) Go(name string, f func()) {
	t.running.Add(1)
	go func() {
		defer t.running.Done()
		defer func() {
			if p := recover(); p != nil && t.Log != nil {
				t.Log.Error("a task failed", "task", name, "err", fmt.Sprint(p), "stack", string(debug.Stack()))
			}
		}()
		f()
	}()
}

// Wait returns when all tasks have ended.
func (t *Tasks) Wait() { t.running.Wait() }

package sock

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestConns: the sweep runs while there are connections and as often as it asks for, and
// what was taken in before Close is waited for.
func TestConns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Conns[string]
		var sweeps atomic.Int32
		add := func(c string) bool {
			return s.Add(c, time.Second, func() { sweeps.Add(1); s.Again(10 * time.Second) })
		}
		passed := func(d time.Duration, want int32) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := sweeps.Load(); n != want {
				t.Errorf("%d sweeps, want %d", n, want)
			}
		}
		add("a")
		add("b")
		passed(1500*time.Millisecond, 1) // one timer for both
		s.Remove("a")
		passed(10*time.Second, 2)
		s.Remove("b")
		passed(time.Hour, 2) // nobody to look after
		s.Again(time.Second)
		passed(time.Hour, 2)
		add("c")
		passed(1500*time.Millisecond, 3)
		if s.Closed() {
			t.Error("closed")
		}
		s.Close()
		if !s.Closed() || add("d") || len(s.All()) != 1 || s.All()[0] != "c" {
			t.Errorf("after Close: %v", s.All())
		}
		waited := make(chan struct{})
		go func() {
			s.Running.Wait()
			close(waited)
		}()
		s.Remove("c")
		for range 2 {
			s.Running.Done()
		}
		synctest.Wait()
		select {
		case <-waited:
			t.Error("c is not waited for")
		default:
		}
		s.Running.Done()
		<-waited
		passed(time.Hour, 3)
	})
}

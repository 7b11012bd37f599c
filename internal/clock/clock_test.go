package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The machine's clock is set back by an hour: time goes on from where it was. Set forward
// again, it is followed.
func TestStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		start := c.NowMilli()
		want := func(ms int64) {
			t.Helper()
			if now := c.NowMilli() - start; now != ms {
				t.Fatalf("it is %d, want %d", now, ms)
			}
		}
		c.Step(-time.Hour)
		want(0)
		time.Sleep(1500 * time.Millisecond)
		want(1500)
		c.Advance(time.Second)
		want(2500)
		c.Step(2 * time.Hour)
		time.Sleep(time.Second)
		want(1500 + 1000 + 1000 + time.Hour.Milliseconds())
	})
}

// What was due before the step is still due as long after it.
func TestAlarmAfterStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		a := c.NewAlarm()
		defer a.Stop()
		began := time.Now()
		a.Set(c.NowMilli() + 5000)
		c.Step(-time.Hour)
		if err := a.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if after := time.Since(began); after != 5*time.Second {
			t.Errorf("the alarm rang after %v", after)
		}
	})
}

// watched returns a clock that is watched until the test ends.
func watched(t *testing.T) *Clock {
	c := New()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Watch(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return c
}

// The machine's clock is set forward while everybody sleeps: what is due by it is noticed
// within a second.
func TestForwardStepWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watched(t)
		for _, a := range []*Alarm{c.NewAlarm(), c.NewWallAlarm()} {
			a.Set(c.NowMilli() + time.Hour.Milliseconds())
			rung := make(chan time.Time)
			go func() { _ = a.Wait(context.Background()); rung <- time.Now() }()
			synctest.Wait()
			began := time.Now()
			c.Step(time.Hour)
			if after := (<-rung).Sub(began); after > lookEvery {
				t.Errorf("it rang after %v", after)
			}
			a.Stop()
		}
	})
}

// A time that people have named comes when the machine's clock shows it, wherever that has
// been before.
func TestWallAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watched(t)
		a := c.NewWallAlarm()
		defer a.Stop()
		due := c.WallMilli() + 10_000
		rings := func(steps ...time.Duration) (after time.Duration) {
			a.Set(due)
			rung := make(chan time.Time)
			go func() { _ = a.Wait(context.Background()); rung <- time.Now() }()
			began := time.Now()
			for _, d := range steps {
				synctest.Wait()
				c.Step(d)
				time.Sleep(5 * time.Second)
			}
			after = (<-rung).Sub(began)
			if wall := c.WallMilli(); wall < due {
				t.Errorf("%v: it rang %d ms early", steps, due-wall)
			}
			return after
		}
		if after := rings(-time.Hour); after != time.Hour+10*time.Second {
			t.Errorf("set back: after %v", after)
		}
		due += 10_000
		if after := rings(-time.Hour, time.Hour); after < 10*time.Second || after > 10*time.Second+lookEvery {
			t.Errorf("set back and forward again: after %v", after)
		}
		c.Step(-time.Minute)
		due = c.WallMilli() + 5000
		a.Set(due)
		worked := make(chan struct{})
		go func() {
			defer close(worked)
			_ = a.Wait(context.Background())
			a.Set(0)
			_ = a.Wait(t.Context())
		}()
		c.Advance(4 * time.Second)
		c.mu.Lock()
		early := a.due == 0
		c.mu.Unlock()
		c.Advance(time.Second)
		c.mu.Lock()
		late := a.due != 0
		c.mu.Unlock()
		if early || late {
			t.Errorf("moved to its due time: rung before %v, not rung then %v", early, late)
		}
	})
}

package clock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// The machine's clock is set back by an hour: time goes on from where it was, a little slower.
// Set forward again, it is followed.
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
		time.Sleep(1600 * time.Millisecond)
		want(1500)
		c.Advance(time.Second)
		want(2500)
		c.Step(2 * time.Hour)
		time.Sleep(time.Second)
		want(1600 + 1000 + 1000 + time.Hour.Milliseconds())
	})
}

// What was due before the step is still due as long after it, never sooner; and the machine's
// clock has caught up at some time.
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
		if after := time.Since(began); after < 5*time.Second || after > 5*time.Second*slower/(slower-1)+time.Millisecond {
			t.Errorf("the alarm rang after %v", after)
		}
		time.Sleep(slower*time.Hour - time.Minute)
		if now, wall := c.Read(); now <= wall {
			t.Errorf("caught up early: %d, %d", now, wall)
		}
		time.Sleep(time.Minute)
		if now, wall := c.Read(); now != wall {
			t.Errorf("not caught up: %d ahead", now-wall)
		}
	})
}

// A process that begins after the machine's clock was set back goes on from where the last one
// was; one that begins later than that has nothing to make up for, and none believes a clock that
// was a year ahead.
func TestReach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		start := c.NowMilli()
		rung := make(chan time.Time)
		go func() {
			a := c.NewAlarm()
			defer a.Stop()
			a.Set(start + 60_000)
			_ = a.Wait(context.Background())
			rung <- time.Now()
		}()
		synctest.Wait()
		for _, k := range []struct{ to, want int64 }{{-1000, 0}, {Credible.Milliseconds() + 1, 0}, {60_000, 60_000}, {30_000, 60_000}} {
			c.Reach(start + k.to)
			if now, wall := c.Read(); now != start+k.want || wall != start {
				t.Errorf("reached %d: it is %d and %d", k.to, now-start, wall-start)
			}
		}
		if at := (<-rung).UnixMilli(); at != start {
			t.Errorf("what was due before that rang after %d ms", at-start)
		}
		time.Sleep(16 * time.Second)
		if now := c.NowMilli(); now != start+75_000 {
			t.Errorf("it is %d after 16 s", now-start)
		}
	})
}

// watched returns a clock that is watched until the test ends.
func watched(t *testing.T) *Clock {
	c := New()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Watch(ctx, func(time.Duration) {}) }()
	t.Cleanup(func() { cancel(); <-ended })
	return c
}

// The machine's clock is set forward while everybody sleeps: what is due by it is noticed
// within a second.
func TestForwardStepWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watched(t)
		for _, set := range []func(*Alarm, int64){(*Alarm).Earlier, (*Alarm).EarlierWall} {
			a := c.NewAlarm()
			set(a, c.NowMilli()+time.Hour.Milliseconds())
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
		a := c.NewAlarm()
		defer a.Stop()
		due := c.WallMilli() + 10_000
		rings := func(steps ...time.Duration) (after time.Duration) {
			a.EarlierWall(due)
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
		a.EarlierWall(due)
		go func() {
			_ = a.Wait(context.Background())
			_ = a.Wait(t.Context())
		}()
		c.Advance(4 * time.Second)
		c.mu.Lock()
		early := a.wall == 0
		c.mu.Unlock()
		c.Advance(time.Second)
		c.mu.Lock()
		late := a.wall != 0
		c.mu.Unlock()
		if early || late {
			t.Errorf("moved to its due time: rung before %v, not rung then %v", early, late)
		}
	})
}

// One alarm rings by both times; the one that has not come stays.
func TestAlarmOfBothTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := watched(t)
		a := c.NewAlarm()
		defer a.Stop()
		c.Step(-time.Minute)
		a.Earlier(c.NowMilli() + 15_000)
		a.EarlierWall(c.WallMilli() + 30_000)
		began := time.Now()
		for _, want := range []time.Duration{16 * time.Second, 30 * time.Second} {
			_ = a.Wait(context.Background())
			if after := time.Since(began).Round(10 * time.Millisecond); after != want {
				t.Errorf("it rang after %v, want %v", after, want)
			}
		}
	})
}

// Whoever works while the clock is moved can know that somebody waits for it.
func TestAdvancing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		a := c.NewAlarm()
		defer a.Stop()
		a.Set(c.NowMilli() + 1000)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var while []bool
		go func() {
			for a.Wait(ctx) == nil {
				while = append(while, c.Advancing())
			}
		}()
		c.Advance(2 * time.Second)
		a.Set(c.NowMilli() + 1000)
		time.Sleep(2 * time.Second)
		stop()
		synctest.Wait()
		if len(while) != 2 || !while[0] || while[1] || c.Advancing() {
			t.Errorf("the clock was being moved at the two alarms: %v", while)
		}
	})
}

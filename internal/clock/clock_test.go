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

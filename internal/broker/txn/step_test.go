package txn_test

import (
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
)

// The machine's clock is set forward while the server sleeps: checks that are due by it come
// soon. Set back, they come when as much time has passed as was to pass.
func TestClockSteps(t *testing.T) {
	b, c := openByTheHour(t)
	p := produce(b)
	if _, err := sendHalf(b, "x", "p", ""); err != nil {
		t.Fatal(err)
	}
	c.Advance(2 * time.Second) // it is looked at
	c.Step(time.Hour)
	brokertest.Until(t, "the first check", func() bool { return len(p.Asked()) == 1 })
	c.Step(-5 * time.Hour)
	c.Advance(10*time.Hour - time.Minute)
	if n := len(p.Asked()); n != 0 {
		t.Fatalf("asked %d times within the interval", n)
	}
	c.Advance(time.Minute)
	if n := len(p.Asked()); n != 1 {
		t.Errorf("asked %d times after the interval", n)
	}
}

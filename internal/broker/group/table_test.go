package group

import (
	"errors"
	"testing"

	"github.com/bolidemq/bolide/internal/config"
)

func TestDelay(t *testing.T) {
	exp := RetryPolicy{Exponential: true, Initial: 5000, Max: 7_200_000, Multiplier: 2}
	for _, c := range []struct {
		policy RetryPolicy
		times  int32
		want   int64
	}{
		{RetryPolicy{}, 0, 10_000}, {RetryPolicy{}, 1, 30_000}, {RetryPolicy{}, 15, 7_200_000},
		{RetryPolicy{}, 1000, 7_200_000}, {RetryPolicy{}, -1, 10_000},
		{RetryPolicy{Next: []int64{7}}, 0, 7}, {RetryPolicy{Next: []int64{1, 2, 3, 4}}, 1, 4},
		{exp, 0, 5000}, {exp, 1, 10_000}, {exp, 3, 40_000}, {exp, 30, 7_200_000}, {exp, 1 << 30, 7_200_000},
		{RetryPolicy{Exponential: true, Initial: 1 << 60, Max: 1 << 61, Multiplier: 1 << 40}, 32, 1 << 61},
		{RetryPolicy{Exponential: true}, 0, 10_000},
	} {
		if got := c.policy.Delay(c.times); got != c.want {
			t.Errorf("%+v after %d: %d, want %d", c.policy, c.times, got, c.want)
		}
	}
}

func TestGetOrCreate(t *testing.T) {
	settings := config.NewLive(config.DefaultBroker())
	table, err := Open(Options{Config: settings})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := table.GetOrCreate("g"); err != nil || c.RetryMaxTimes != 16 || !c.ConsumeEnable {
		t.Fatal(c, err)
	}
	if _, err := table.GetOrCreate("g g"); !errors.Is(err, ErrIllegalName) {
		t.Fatal(err)
	}
	off := *settings.Get()
	off.AutoCreateSubscriptionGroup = false
	settings.Replace(off)
	if _, err := table.GetOrCreate("h"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
	if _, err := table.GetOrCreate("CID_RMQ_SYS_X"); err != nil {
		t.Fatal(err)
	}
	c := New("h")
	c.Attributes = map[string]string{"+priority.factor": "101"}
	if err := table.Put(c); !errors.Is(err, config.ErrAttribute) {
		t.Fatal(err)
	}
	c.Attributes = map[string]string{"+priority.factor": "50"}
	if err := table.Put(c); err != nil {
		t.Fatal(err)
	}
	if err := table.Delete("h"); err != nil {
		t.Fatal(err)
	}
	if err := table.Delete("h"); !errors.Is(err, ErrNotFound) {
		t.Fatal(err)
	}
}

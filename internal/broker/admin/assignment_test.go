package admin

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestStrategies(t *testing.T) {
	for _, c := range []struct {
		strategy string
		n, c     int32
		want     [][]int32
	}{
		{"AVG", 4, 1, [][]int32{{0, 1, 2, 3}}},
		{"AVG", 5, 2, [][]int32{{0, 1, 2}, {3, 4}}},
		{"AVG", 8, 3, [][]int32{{0, 1, 2}, {3, 4, 5}, {6, 7}}},
		{"AVG", 2, 3, [][]int32{{0}, {1}, nil}},
		{"AVG", 0, 2, [][]int32{nil, nil}},
		{"AVG_BY_CIRCLE", 5, 2, [][]int32{{0, 2, 4}, {1, 3}}},
	} {
		for i := range c.c {
			if got := strategies[c.strategy](c.n, c.c, i); !slices.Equal(got, c.want[i]) {
				t.Errorf("%s: %d queues, client %d of %d: %v, want %v", c.strategy, c.n, i, c.c, got, c.want[i])
			}
		}
	}
	// Every queue belongs to exactly one client.
	for name, f := range strategies {
		for n := range int32(20) {
			for c := int32(1); c < 12; c++ {
				var dealt []int32
				for i := range c {
					dealt = append(dealt, f(n, c, i)...)
				}
				slices.Sort(dealt)
				if !slices.Equal(dealt, all(n)) {
					t.Fatalf("%s: %d queues, %d clients: %v", name, n, c, dealt)
				}
			}
		}
	}
}

func TestPopShare(t *testing.T) {
	for _, c := range []struct {
		n, c, i, share int32
		want           []int32
	}{
		{8, 3, 0, 0, []int32{-1}},
		{8, 3, 0, 2, []int32{-1}},
		{8, 4, 0, 1, []int32{0, 1, 2, 3}},
		{8, 4, 3, 1, []int32{0, 1, 6, 7}},
		{2, 5, 4, 1, []int32{0}},
		{0, 5, 4, 1, nil},
	} {
		if got := popShare(c.n, c.c, c.i, c.share, average); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		for range 120 {
			m.Add(10)
			time.Sleep(time.Second)
		}
		c := m.Read()
		if c.Total != 1200 || c.PerSecond[0] != 10 || c.PerSecond[1] != 10 || c.PerSecond[2] != 10 {
			t.Fatalf("%+v", c)
		}
		time.Sleep(30 * time.Second)
		if c = m.Read(); c.PerSecond[0] != 0 || c.PerSecond[1] != 5 {
			t.Fatalf("%+v", c)
		}
		time.Sleep(time.Hour)
		if c = m.Read(); c.PerSecond[2] != 0 || c.Total != 1200 {
			t.Fatalf("%+v", c)
		}
		time.Sleep(24 * time.Hour)
		if c = m.Read(); c.TodayBegan != 1200 || c.YesterBegan != 0 {
			t.Fatalf("%+v", c)
		}
		time.Sleep(24 * time.Hour)
		if c = m.Read(); c.TodayBegan != 1200 || c.YesterBegan != 1200 {
			t.Fatalf("%+v", c)
		}
	})
}

func TestSpell(t *testing.T) {
	if got := spell(25*time.Hour + time.Minute + time.Second); got != "[ 1 days, 1 hours, 1 minutes, 1 seconds ]" {
		t.Error(got)
	}
	if got := bytesText(3 << 30); got != "3.0 GiB" {
		t.Error(got)
	}
}

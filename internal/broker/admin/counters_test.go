package admin

import (
	"testing"
	"time"
)

func TestCounterForgetsWhatIsLongAgo(t *testing.T) {
	var c Counter
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(d time.Duration) time.Time { return began.Add(d) }
	for s := range 120 { // one a second for two minutes, two at a time
		c.add(at(time.Duration(s)*time.Second), 2, 1)
	}
	f := c.read(at(2 * time.Minute))
	if f.Minute.Sum < 100 || f.Minute.Sum > 140 || f.Hour.Sum != 240 || f.Day.Sum != 240 {
		t.Errorf("sums %+v", f)
	}
	if f.Minute.PerSecond < 1.9 || f.Minute.PerSecond > 2.1 || f.Minute.PerTime != 2 {
		t.Errorf("rates %+v", f.Minute)
	}
	f = c.read(at(30 * time.Minute))
	if f.Minute.Sum != 0 || f.Minute.PerSecond != 0 || f.Hour.Sum != 240 {
		t.Errorf("after half an hour %+v", f)
	}
	f = c.read(at(25 * time.Hour))
	if f.Hour.Sum != 0 || f.Day.Sum != 0 {
		t.Errorf("after a day %+v", f)
	}
	c.add(at(26*time.Hour), 5, 1)
	if f = c.read(at(26*time.Hour + time.Second)); f.Minute.Sum != 5 || f.Day.Sum != 5 {
		t.Errorf("anew %+v", f)
	}
}

func TestCountersByKey(t *testing.T) {
	var c Counters
	c.Get(GroupGetNums, "T", "g").Add(3)
	c.Get(TopicPutNums, "T", "").Add(1)
	c.Get(TopicPutNums, "U", "").Add(1)
	if n, ok := c.Look(GroupGetNums, "T@g"); !ok || n.Read().Minute.Sum != 3 {
		t.Error("not found by the text of its key")
	}
	if _, ok := c.Look(GroupGetNums, "T"); ok {
		t.Error("found without its group")
	}
	c.Forget("T")
	if _, ok := c.Look(TopicPutNums, "T"); ok || c.Rate(GroupGetNums, "T", "g") != 0 {
		t.Error("a deleted topic is remembered")
	}
	if _, ok := c.Look(TopicPutNums, "U"); !ok {
		t.Error("another topic is forgotten")
	}
}

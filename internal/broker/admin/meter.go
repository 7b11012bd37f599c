package admin

import (
	"sync"
	"time"
)

// windowSeconds is the longest time that a rate is told over.
const windowSeconds = 600

// Meter counts something and knows how much of it there was lately and on which day.
// Nothing runs behind it: old seconds are dropped when somebody adds or asks.
type Meter struct {
	mu      sync.Mutex
	total   int64
	largest int64 // the most that one Add has added
	seconds [windowSeconds]int64
	last    int64 // the newest second in the window
	first   int64 // the second of the first Add or question
	day     int   // of today and yesterday
	// What the total was at the beginning of today and of yesterday.
	today, yesterday int64
}

// Add counts n.
func (m *Meter) Add(n int64) {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	m.total += n
	m.largest = max(m.largest, n)
	m.seconds[m.last%windowSeconds] += n
}

// Counts is what a Meter says.
type Counts struct {
	Total                   int64
	PerSecond               [3]float64 // over the last 10, 60 and 600 seconds
	TodayBegan, YesterBegan int64      // the total at the beginning of today and of yesterday
}

// Read returns the counts of now.
func (m *Meter) Read() Counts {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.turn(now)
	c := Counts{Total: m.total, TodayBegan: m.today, YesterBegan: m.yesterday}
	for i, span := range []int64{10, 60, windowSeconds} {
		var sum int64
		for s := range span { // the running second is not over and does not count
			if at := m.last - 1 - s; at >= m.first {
				sum += m.seconds[at%windowSeconds]
			}
		}
		if span == windowSeconds { // its oldest second has just been taken by the running one
			span--
		}
		lived := min(span, max(m.last-m.first, 1))
		c.PerSecond[i] = float64(sum) / float64(lived)
	}
	return c
}

// turn makes now the newest second and today the day; mu is held.
func (m *Meter) turn(now time.Time) {
	second := now.Unix()
	if m.first == 0 {
		m.first, m.last, m.day = second, second, dayOf(now)
	}
	if second-m.last >= windowSeconds {
		m.seconds = [windowSeconds]int64{}
		m.last = second
	}
	for m.last < second {
		m.last++
		m.seconds[m.last%windowSeconds] = 0
	}
	if day := dayOf(now); day != m.day {
		m.yesterday = m.today
		if day != m.day+1 {
			m.yesterday = m.total
		}
		m.today, m.day = m.total, day
	}
}

// dayOf numbers the days of local time.
func dayOf(t time.Time) int {
	_, offset := t.Zone()
	return int((t.Unix() + int64(offset)) / (24 * 3600))
}

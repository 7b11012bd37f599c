// Package qlock is the queue locks of orderly consumers: for each group and queue at
// most one client that may consume it now.
//
// Invariants: a lock lives 60 s of real time after its last renewal and then belongs to
// whoever asks first; only its owner can release it earlier; a lock never outlives its
// group for longer than that.
//
// Neighbours: the fronts lock and unlock, publish asks HasLock to know an orderly group.
package qlock

import (
	"sync"
	"time"
)

// Lifetime is how long a lock lives after its last renewal.
const Lifetime = 60 * time.Second

// Queue names a queue of this broker.
type Queue struct {
	Topic   string
	QueueID int32
}

type lock struct {
	client  string
	renewed time.Time
}

// Table is the locks of all groups. It holds no goroutine: what has expired is taken
// over, or dropped when its group next asks.
type Table struct {
	mu     sync.Mutex
	groups map[string]map[Queue]lock
	swept  time.Time
}

// New returns a table without locks.
func New() *Table { return &Table{groups: make(map[string]map[Queue]lock)} }

// Lock takes or renews the queues for the client and appends those that it holds now to
// locked.
func (t *Table) Lock(group, client string, queues []Queue, locked []Queue) []Queue {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	held := t.groups[group]
	if held == nil {
		held = make(map[Queue]lock, len(queues))
		t.groups[group] = held
	}
	for _, q := range queues {
		l, ok := held[q]
		if ok && l.client != client && now.Sub(l.renewed) < Lifetime {
			continue
		}
		held[q] = lock{client, now}
		locked = append(locked, q)
	}
	return locked
}

// Unlock releases those of the queues that the client holds.
func (t *Table) Unlock(group, client string, queues []Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.groups[group]
	for _, q := range queues {
		if l, ok := held[q]; ok && l.client == client {
			delete(held, q)
		}
	}
	if len(held) == 0 {
		delete(t.groups, group)
	}
}

// Holds tells whether the client holds the queue now.
func (t *Table) Holds(group, client string, q Queue) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, ok := t.groups[group][q]
	return ok && l.client == client && time.Since(l.renewed) < Lifetime
}

// HasLock tells whether any queue of the group is locked now, which is how a broker
// knows that the group consumes in order.
func (t *Table) HasLock(group string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.groups[group] {
		if time.Since(l.renewed) < Lifetime {
			return true
		}
	}
	return false
}

// DeleteGroup drops all locks of a group.
func (t *Table) DeleteGroup(group string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.groups, group)
}

// sweep drops what has expired, at most once in a lifetime, so that a table of groups
// that are gone does not grow for ever. mu is held.
func (t *Table) sweep(now time.Time) {
	if now.Sub(t.swept) < Lifetime {
		return
	}
	t.swept = now
	for group, held := range t.groups {
		for q, l := range held {
			if now.Sub(l.renewed) >= Lifetime {
				delete(held, q)
			}
		}
		if len(held) == 0 {
			delete(t.groups, group)
		}
	}
}

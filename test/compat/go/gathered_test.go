package compat

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"time"
)

// gathered is what the listeners of a test note, by key, in the order in which it came.
type gathered[V any] struct {
	mu   sync.Mutex
	of   map[string][]V
	more chan struct{} // holds a token when something has come since the last look
}

func gather[V any]() *gathered[V] {
	return &gathered[V]{of: map[string][]V{}, more: make(chan struct{}, 1)}
}

// add notes one, and returns how many there are now of this key.
func (g *gathered[V]) add(key string, v V) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of[key] = append(g.of[key], v)
	select {
	case g.more <- struct{}{}:
	default:
	}
	return len(g.of[key])
}

// all is a copy of what there is.
func (g *gathered[V]) all() map[string][]V {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := maps.Clone(g.of)
	for key, values := range all {
		all[key] = slices.Clone(values)
	}
	return all
}

// await returns what there is as soon as that is enough.
func (g *gathered[V]) await(t *testing.T, limit time.Duration, what string, enough func(map[string][]V) bool) map[string][]V {
	t.Helper()
	deadline := time.After(limit)
	for {
		all := g.all()
		if enough(all) {
			return all
		}
		select {
		case <-g.more:
		case <-deadline:
			t.Fatalf("within %v: %s; there is %v", limit, what, all)
		}
	}
}

// times says how often each key came.
func times[V any](all map[string][]V) map[string]int {
	n := map[string]int{}
	for key, values := range all {
		n[key] = len(values)
	}
	return n
}

// keysOf is an await's condition: there are so many different keys.
func keysOf[V any](n int) func(map[string][]V) bool {
	return func(all map[string][]V) bool { return len(all) >= n }
}

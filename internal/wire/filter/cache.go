package filter

import "sync"

// Cache keeps compiled expressions by their text: consumers send the same ones for ever.
// Its zero value is ready.
type Cache struct {
	mu    sync.RWMutex
	known map[cacheKey]*Expression
}

type cacheKey struct{ kind, text string }

// maxCached and maxCachedText bound what clients can make a cache hold: it starts anew
// beyond the one, and keeps no expression that is longer than the other.
const (
	maxCached     = 4096
	maxCachedText = 4 << 10
)

// Compile is the package's Compile, once for each text.
func (c *Cache) Compile(kind, text string) (*Expression, error) {
	k := cacheKey{kind, text}
	c.mu.RLock()
	e, ok := c.known[k]
	c.mu.RUnlock()
	if ok {
		return e, nil
	}
	e, err := Compile(kind, text)
	if err != nil || len(text) > maxCachedText {
		return e, err
	}
	c.mu.Lock()
	if c.known == nil || len(c.known) >= maxCached {
		c.known = make(map[cacheKey]*Expression)
	}
	c.known[k] = e
	c.mu.Unlock()
	return e, nil
}

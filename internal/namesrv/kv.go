package namesrv

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"sync"
)

// OrderNamespace holds the queues of order topics: topic → "broker:queues;…".
const OrderNamespace = "ORDER_TOPIC_CONFIG"

// Limits that keep a hostile peer from filling the memory.
const (
	maxNamespaces = 10_000
	maxValues     = 100_000 // of one namespace
	maxValueBytes = 1 << 20
	maxAllBytes   = 64 << 20 // of all namespaces, keys and values: all are saved at each change
)

// KV is small configuration values by namespace and key. Its zero value is empty and in
// memory; a change is in the file before it is visible where Save is given.
type KV struct {
	// Save makes a text durable; nil = nothing is kept.
	Save func(text []byte) error
	Log  *slog.Logger

	changing sync.Mutex // held across Save; only other changes wait for it
	mu       sync.RWMutex
	values   map[string]map[string]string
}

type kvFile struct {
	ConfigTable map[string]map[string]string `json:"configTable"`
}

// Load replaces all values by those of a text in the form of Apache's kvConfig.json.
func (c *KV) Load(text []byte) error {
	var f kvFile
	if err := json.Unmarshal(text, &f); err != nil {
		return fmt.Errorf("read key-value configuration: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = f.ConfigTable
	return nil
}

// Get returns one value.
func (c *KV) Get(namespace, key string) (string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.values[namespace][key]
	return v, ok
}

// List returns a namespace's values; false when it has never had any.
func (c *KV) List(namespace string) (map[string]string, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	values, ok := c.values[namespace]
	return maps.Clone(values), ok
}

// Put sets one value.
func (c *KV) Put(namespace, key, value string) error {
	if namespace == "" || key == "" {
		return fmt.Errorf("%w: namespace or key is empty", ErrIllegal)
	}
	if len(value) > maxValueBytes {
		return fmt.Errorf("%w: value has %d bytes, the limit is %d", ErrIllegal, len(value), maxValueBytes)
	}
	return c.change(func(all map[string]map[string]string) error {
		if all[namespace] == nil {
			if len(all) >= maxNamespaces {
				return fmt.Errorf("%w: there are %d namespaces, the limit", ErrIllegal, maxNamespaces)
			}
			all[namespace] = make(map[string]string)
		}
		if _, ok := all[namespace][key]; !ok && len(all[namespace]) >= maxValues {
			return fmt.Errorf("%w: namespace has %d keys, the limit", ErrIllegal, maxValues)
		}
		all[namespace][key] = value
		if n := sizeOf(all); n > maxAllBytes {
			return fmt.Errorf("%w: all values together would have %d bytes, the limit is %d", ErrIllegal, n, maxAllBytes)
		}
		return nil
	})
}

func sizeOf(all map[string]map[string]string) (n int) {
	for namespace, values := range all {
		n += len(namespace)
		for key, value := range values {
			n += len(key) + len(value)
		}
	}
	return n
}

// Delete removes one value; that it is not there is no error.
func (c *KV) Delete(namespace, key string) error {
	if namespace == "" || key == "" {
		return fmt.Errorf("%w: namespace or key is empty", ErrIllegal)
	}
	return c.change(func(all map[string]map[string]string) error {
		delete(all[namespace], key)
		return nil
	})
}

// change applies f to a copy, saves that and makes it visible.
func (c *KV) change(f func(all map[string]map[string]string) error) error {
	c.changing.Lock()
	defer c.changing.Unlock()
	c.mu.RLock()
	next := make(map[string]map[string]string, len(c.values)+1)
	for namespace, values := range c.values {
		next[namespace] = maps.Clone(values)
	}
	c.mu.RUnlock()
	if err := f(next); err != nil {
		return err
	}
	if c.Save != nil {
		text, err := json.MarshalIndent(kvFile{next}, "", "\t")
		if err != nil {
			return fmt.Errorf("write key-value configuration: %w", err)
		}
		if err := c.Save(text); err != nil {
			return fmt.Errorf("save key-value configuration: %w", err)
		}
	}
	c.mu.Lock()
	c.values = next
	c.mu.Unlock()
	return nil
}

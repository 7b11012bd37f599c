package timer

import "maps"

// Counts are how many messages wait for a time of their own, by the topic that they go to.
// One is counted until its copy there can be read.
func (w *Wheel) Counts() map[string]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := maps.Clone(w.mu.counts)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

package namesrv

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// goneFor is how long a broker that is gone is remembered, and mostGone how many are: enough
// for an operator to see who is missing, and for a broker that never comes again to be forgotten.
const (
	goneFor  = 24 * time.Hour
	mostGone = 256
)

// Gone is a broker that was registered and has no living address any more. Nothing routes to it;
// it is told to who asks what is missing.
type Gone struct {
	Cluster, Name string
	Address       Address // the last one that it had
	Since         time.Time
	Stopped       bool // it said goodbye
}

// leave ends a registration as remove does, and remembers the broker if that was its last one.
func (r *routes) leave(k liveKey, number uint64, now time.Time, stopped bool) bool {
	l := r.live[k]
	if !r.remove(k, number) {
		return false
	}
	if r.brokers[l.broker] != nil {
		return true
	}
	r.forgetOld(now)
	if len(r.gone) >= mostGone {
		oldest := slices.MinFunc(slices.Collect(maps.Values(r.gone)), func(a, b Gone) int { return a.Since.Compare(b.Since) })
		delete(r.gone, oldest.Name)
	}
	r.gone[l.broker] = Gone{Cluster: k.cluster, Name: l.broker, Address: k.address, Since: now, Stopped: stopped}
	return true
}

func (r *routes) forgetOld(now time.Time) {
	maps.DeleteFunc(r.gone, func(_ string, g Gone) bool { return now.Sub(g.Since) > goneFor })
}

// Gone lists the brokers that went in the last day and have not come again, by name. A name
// server that was started since knows of none.
func (t *Table) Gone() []Gone {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.r.forgetOld(now)
	return slices.SortedFunc(maps.Values(t.mu.r.gone), func(a, b Gone) int { return cmp.Compare(a.Name, b.Name) })
}

package txn

import "github.com/bolidemq/bolide/internal/wire/remoting"

// Export is the text of Apache's transactionMetrics: how many half messages are open, by the
// topics that they are for. Those that have just come are left out: most are decided before
// anybody reads where they go.
func (t *Txn) Export() ([]byte, error) {
	now := t.o.Clock.NowMilli()
	c := remoting.TransactionCounts{TransactionCount: make(map[string]remoting.WaitingCount)}
	tallies := t.Tallies()
	for i := range tallies {
		of := &tallies[i]
		c.TransactionCount[of.Topic] = remoting.WaitingCount{TimeStamp: of.Changed}
		c.DataVersion.Counter += of.Committed + of.RolledBack + of.GivenUp
		c.DataVersion.Timestamp = max(c.DataVersion.Timestamp, of.Changed)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.mu.open {
		if e.topic == "" {
			continue
		}
		n, known := c.TransactionCount[e.topic]
		if n.Count++; !known {
			n.TimeStamp = now
		}
		c.TransactionCount[e.topic] = n
		c.DataVersion.Counter++
		c.DataVersion.Timestamp = max(c.DataVersion.Timestamp, n.TimeStamp)
	}
	return remoting.Marshal(&c), nil
}

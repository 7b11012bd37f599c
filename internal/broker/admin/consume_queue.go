package admin

import (
	"fmt"

	"github.com/bolidemq/bolide/internal/storage"
)

// mostEntries is how many entries of a consume queue are shown at once.
const mostEntries = 1024

// QueueEntries is a piece of one consume queue.
type QueueEntries struct {
	Min, Max int64
	Entries  []storage.QueueEntry // empty where the queue has none
}

// ConsumeQueue returns up to count entries of a consume queue from number from on.
func (a *Admin) ConsumeQueue(topic string, queueID int32, from int64, count int32) (QueueEntries, error) {
	entries, err := a.o.Store.Entries(topic, queueID, from, int(min(max(count, 0), mostEntries)))
	if err != nil {
		return QueueEntries{}, fmt.Errorf("%d@%s: %w", queueID, topic, err)
	}
	return QueueEntries{Min: a.o.Store.MinOffset(topic, queueID), Max: a.o.Store.MaxOffset(topic, queueID), Entries: entries}, nil
}

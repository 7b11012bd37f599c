package node

import (
	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/storage"
)

// brokerEvents tells the log what an operator wants to know.
func (n *Node) brokerEvents() broker.Events {
	return broker.Events{
		Storage: storage.Events{
			SegmentDeleted: func(first, end int64, forced bool) {
				n.log.Info("log file deleted", "from", first, "to", end, "for lack of room", forced)
			},
			DiskFull: func(full bool) {
				if full {
					n.log.Error("disk full: messages are refused until there is room")
				} else {
					n.log.Info("room on the disk again: messages are taken")
				}
			},
		},
	}
}

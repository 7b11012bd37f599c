package admin

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/broker/topic"
)

// PutTopic creates or changes a topic. Queues that still hold messages that a group has not
// consumed are not taken away from its readers (R073), unless by force.
func (a *Admin) PutTopic(cfg *topic.Config, force bool) error {
	if !force {
		if held := a.stranded(cfg); len(held) > 0 {
			return fmt.Errorf("%w: %s would lose queues with messages that were not consumed: %s; first lower writeQueueNums alone (mqadmin updateTopic -w) and let its groups consume them",
				ErrIllegal, cfg.Name, strings.Join(held, ", "))
		}
	}
	return a.o.Topics.Put(cfg)
}

// stranded names the queues that a change of a topic would hide from its readers although
// a group has messages there, or nobody has consumed it yet.
func (a *Admin) stranded(cfg *topic.Config) []string {
	old, ok := a.o.Topics.Get(cfg.Name)
	if !ok || cfg.ReadQueues >= old.ReadQueues {
		return nil
	}
	groups := a.GroupsOf(cfg.Name)
	var held []string
	for q := max(0, cfg.ReadQueues); q < old.ReadQueues; q++ {
		low, high := a.o.Store.MinOffset(cfg.Name, q), a.o.Store.MaxOffset(cfg.Name, q)
		if high <= low {
			continue
		}
		behind := len(groups) == 0
		for _, g := range groups {
			off, _ := a.o.Offsets.Query(g, cfg.Name, q)
			behind = behind || off < high
		}
		if behind {
			held = append(held, "queue "+strconv.Itoa(int(q)))
		}
	}
	return held
}

package pop

import (
	"strconv"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// step is one queue to read, in the order of a request.
type step struct {
	flag  byte // receipt.FlagNormal or the retry topic
	queue int32
	// last: only if nothing was found so far.
	last bool
}

// planInput is all that decides the order in which a request reads queues.
type planInput struct {
	queue       int32  // the requested one, negative for all
	queues      int32  // of the topic
	retryQueues reach  // of the retry topics by flag; 0 = does not exist
	counter     uint64 // earlier requests of this group and topic

	ordered             bool
	priority            bool
	factor              int32 // percent of requests that honour priorities
	probability         int   // percent of requests that read retry topics first
	priorityProbability int   // the same for those that honour priorities
	ascending           bool  // queue ids are walked from high to low, so high priorities first
}

func (q *request) planInput(cfg *config.Broker, r reach, counter uint64) planInput {
	return planInput{
		queue: q.QueueID, queues: r[receipt.FlagNormal], retryQueues: r, counter: counter,
		ordered: q.ordered, priority: q.priority, factor: q.factor,
		probability:         int(cfg.PopFromRetryProbability),
		priorityProbability: int(cfg.PopFromRetryProbabilityByPriority),
		ascending:           cfg.PriorityOrderAsc,
	}
}

// plan appends the steps of a request to dst.
//
// A request for one queue reads retry topics in its turn like any other; besides, where
// Apache RocketMQ would let it go empty-handed, it looks into them last, so that a
// redelivery never waits for a turn.
func plan(dst []step, in planInput) []step {
	byPriority := in.priority && !in.ordered && int32(in.counter%100) < in.factor
	probability := in.probability
	if byPriority {
		probability = in.priorityProbability
	}
	probability = min(max(probability, 0), 100)
	retryFirst := probability > 0 && in.counter%uint64(100/probability) == 0
	start := in.counter
	if byPriority {
		start = 0
	}
	normal := func(dst []step) []step {
		if in.queue >= 0 {
			return append(dst, step{flag: receipt.FlagNormal, queue: in.queue})
		}
		return rotate(dst, receipt.FlagNormal, in.queues, start, in.ascending, false)
	}
	retries := func(dst []step, last bool) []step {
		dst = rotate(dst, receipt.FlagRetryV1, in.retryQueues[receipt.FlagRetryV1], start, in.ascending, last)
		return rotate(dst, receipt.FlagRetryV2, in.retryQueues[receipt.FlagRetryV2], start, in.ascending, last)
	}
	switch {
	case in.ordered:
		return normal(dst)
	case retryFirst:
		return normal(retries(dst, false))
	default:
		return retries(normal(dst), in.queue >= 0)
	}
}

func rotate(dst []step, flag byte, n int32, start uint64, ascending, last bool) []step {
	for i := range n {
		index := uint64(i)
		if ascending {
			index = uint64(n - 1 - i)
		}
		dst = append(dst, step{flag: flag, queue: int32((index + start) % uint64(n)), last: last})
	}
	return dst
}

// priorityFactor is the percent of requests of a group that honour priorities.
func priorityFactor(g *group.Config) int32 {
	n, err := strconv.ParseInt(g.Attributes["priority.factor"], 10, 32)
	if err != nil {
		return 100
	}
	return int32(n)
}

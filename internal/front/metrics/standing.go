package metrics

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// place is what a group consumes: a topic, or what it has of that topic to try again.
// Retries of POP count under the topic that they are of; those of a group that pulls are of
// all its topics, and count under the name of the retry topic.
type place struct {
	group, topic string
	retry        bool
}

// standing is how a group stands there. Each message is ready, blocked, in flight, or done;
// the first three are the lag. Delayed ones are not in the topic yet.
type standing struct {
	place
	lag, inFlight, ready, blocked, delayed int64
	oldest, oldestReady                    int64 // ages in milliseconds, 0: there is none
}

// behind is a queue with messages that are not done.
type behind struct {
	group, topic string
	queue        int32
	lag          int64
}

// census gathers the standings of one moment.
type census struct {
	b      *broker.Broker
	now    int64
	at     map[place]*standing
	queues []behind
}

// standings asks what administration requests ask.
func standings(b *broker.Broker) ([]standing, []behind, error) {
	c := &census{b: b, now: b.Clock.NowMilli(), at: make(map[place]*standing)}
	b.Admin.EachProgress(func(group string, list []admin.Progress) {
		for i := range list {
			c.queue(group, &list[i])
		}
	})
	if err := c.delays(); err != nil {
		return nil, nil, fmt.Errorf("count delayed messages: %w", err)
	}
	list := make([]standing, 0, len(c.at))
	for _, s := range c.at {
		list = append(list, *s)
	}
	slices.SortFunc(list, func(x, y standing) int {
		return cmp.Or(cmp.Compare(x.group, y.group), cmp.Compare(x.topic, y.topic), cmp.Compare(truth(x.retry), truth(y.retry)))
	})
	slices.SortFunc(c.queues, func(x, y behind) int {
		return cmp.Or(cmp.Compare(x.group, y.group), cmp.Compare(x.topic, y.topic), cmp.Compare(x.queue, y.queue))
	})
	return list, c.queues, nil
}

func (c *census) standing(group, topic string, retry bool) *standing {
	at := place{group, topic, retry}
	s := c.at[at]
	if s == nil {
		s = &standing{place: at}
		c.at[at] = s
	}
	return s
}

// queue takes in how far a group is in one queue.
func (c *census) queue(group string, q *admin.Progress) {
	name, retry := q.Topic, names.IsRetry(q.Topic)
	if origin, ok := names.OriginTopic(name, group); ok {
		name = origin
	} else if q.Pops {
		c.standing(group, name, true) // it may have none, which is a zero
	}
	s, lag := c.standing(group, name, retry), q.Ready+q.InFlight+q.Blocked
	s.lag += lag
	s.ready += q.Ready
	s.inFlight += q.InFlight
	s.blocked += q.Blocked
	if lag > 0 {
		s.oldest = max(s.oldest, c.age(q, q.Oldest))
		c.queues = append(c.queues, behind{group, q.Topic, q.QueueID, lag})
	}
	if q.Ready > 0 {
		s.oldestReady = max(s.oldestReady, c.age(q, q.Next))
	}
}

func (c *census) age(q *admin.Progress, offset int64) int64 {
	stored := c.b.Store.StoreTimeAt(q.Topic, q.QueueID, offset)
	if stored <= 0 {
		return 0
	}
	return c.now - stored
}

// delays takes in what groups have given back to get it again later.
func (c *census) delays() error {
	waiting, err := c.b.Timer.Waiting()
	for name, n := range waiting {
		group, ok := names.GroupOf(name)
		if _, known := c.b.Groups.Get(group); ok && known && names.IsRetry(name) {
			c.standing(group, name, true).delayed += n
		}
	}
	return err
}

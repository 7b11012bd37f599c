package pop

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Apache RocketMQ keeps what is in flight in its log, as timer messages for its revive
// topic: a check point per popped batch, due when the batch lapses, and an ack per message
// or per batch. They lie in the topic of its timer wheel and, once they were due, in the
// revive topic; docs/formats/pop-checkpoints.md draws them.

// The tags of messages in the revive topic.
const (
	tagCheckpoint = "ck"
	tagAck        = "ack"
	tagBatchAck   = "bAck"
)

// checkpoint is one batch that Apache has popped.
type checkpoint struct {
	Group     string  `json:"c"`
	Topic     string  `json:"t"` // the real one
	Queue     int32   `json:"q"`
	Start     int64   `json:"so"`
	PopTime   int64   `json:"pt"`
	Invisible int64   `json:"it"`
	Bits      int64   `json:"bm"` // of Java's int: the 32nd is its sign
	Count     int     `json:"n"`
	Diffs     []int64 `json:"d"` // of the messages' offsets from Start; empty: they follow one another
	Again     string  `json:"rp"`
	Suspend   bool    `json:"sp"`

	acked uint64
}

// revivedAck is one message, or a list of them, that Apache has acknowledged.
type revivedAck struct {
	Group   string  `json:"c"`
	Topic   string  `json:"t"`
	Queue   int32   `json:"q"`
	Start   int64   `json:"so"`
	PopTime int64   `json:"pt"`
	Offset  int64   `json:"ao"`
	Offsets []int64 `json:"aol"`
}

// checkpointKey is what acks name a check point by.
type checkpointKey struct {
	group, topic   string
	queue          int32
	start, popTime int64
}

func (c *checkpoint) key() checkpointKey {
	return checkpointKey{c.Group, c.Topic, c.Queue, c.Start, c.PopTime}
}

func (a *revivedAck) key() checkpointKey {
	return checkpointKey{a.Group, a.Topic, a.Queue, a.Start, a.PopTime}
}

// offset is that of the i-th message.
func (c *checkpoint) offset(i int) int64 {
	if len(c.Diffs) == 0 {
		return c.Start + int64(i)
	}
	return c.Start + c.Diffs[i]
}

// ack ends the message at offset.
func (c *checkpoint) ack(offset int64) {
	for i := range c.Count {
		if c.offset(i) == offset {
			c.acked |= 1 << i
			return
		}
	}
}

// outstanding lists the messages that are not acknowledged.
func (c *checkpoint) outstanding() (offsets []int64) {
	for i := range c.Count {
		if c.acked&(1<<i) == 0 {
			offsets = append(offsets, c.offset(i))
		}
	}
	return offsets
}

// parseCheckpoint reads the body of a check point.
func parseCheckpoint(body []byte) (*checkpoint, error) {
	c := &checkpoint{}
	if err := json.Unmarshal(body, c); err != nil {
		return nil, fmt.Errorf("check point: %w", err)
	}
	switch {
	case c.Group == "" || c.Topic == "" || c.Queue < 0 || c.Start < 0 || c.PopTime < 0 || c.Invisible < 0:
		return nil, fmt.Errorf("check point: a field is missing or negative: %.200s", body)
	case c.Count < 0 || c.Count > 64, len(c.Diffs) > 0 && len(c.Diffs) < c.Count:
		return nil, fmt.Errorf("check point: %d messages, %d offsets", c.Count, len(c.Diffs))
	}
	for _, d := range c.Diffs {
		if d < 0 || d > 1<<31 {
			return nil, fmt.Errorf("check point: offset %d behind its start", d)
		}
	}
	c.acked = uint64(c.Bits) & (1<<32 - 1)
	c.Invisible = boundInvisible(c.Invisible)
	return c, nil
}

func parseRevivedAck(body []byte) (*revivedAck, error) {
	a := &revivedAck{}
	if err := json.Unmarshal(body, a); err != nil {
		return nil, fmt.Errorf("ack: %w", err)
	}
	if a.Group == "" || a.Topic == "" {
		return nil, fmt.Errorf("ack: a field is missing: %.200s", body)
	}
	return a, nil
}

// checkpoints is what a scan of the two topics has found so far.
type checkpoints struct {
	reviveTopic string
	open        map[checkpointKey]*checkpoint
	// processed is, for each revive queue, a time before which everything that the timer
	// has given to it is done: half a minute before that of the last one that is.
	processed map[int32]int64
	unread    int // messages that could not be made sense of
}

// fromWheel takes a message of the timer's topic.
func (s *checkpoints) fromWheel(m *message.Message) {
	if m.Properties.Value(message.PropertyRealTopic) != s.reviveTopic {
		return
	}
	due, _ := strconv.ParseInt(m.Properties.Value(message.PropertyTimerOutMs), 10, 64)
	queue, _ := strconv.ParseInt(m.Properties.Value(message.PropertyRealQueue), 10, 32)
	if due < s.processed[int32(queue)] {
		return
	}
	s.add(m)
}

// fromRevive takes a message of the revive topic; done says that Apache is through with it.
func (s *checkpoints) fromRevive(m *message.Message, done bool) {
	if !done {
		s.add(m)
		return
	}
	if m.Tag() != tagCheckpoint {
		return
	}
	if c, err := parseCheckpoint(m.Body); err == nil {
		// One that was put there again because it could not be revived has the same key.
		if known := s.open[c.key()]; known != nil && known.Again == c.Again {
			delete(s.open, c.key())
		}
	}
}

func (s *checkpoints) add(m *message.Message) {
	switch m.Tag() {
	case tagCheckpoint:
		c, err := parseCheckpoint(m.Body)
		if err != nil {
			s.unread++
			return
		}
		if known := s.open[c.key()]; known != nil && known.Again == c.Again {
			return // its acks may be known already
		}
		s.open[c.key()] = c
	case tagAck, tagBatchAck:
		a, err := parseRevivedAck(m.Body)
		if err != nil {
			s.unread++
			return
		}
		c := s.open[a.key()]
		if c == nil {
			return
		}
		if m.Tag() == tagAck {
			c.ack(a.Offset)
		}
		for _, off := range a.Offsets {
			c.ack(off)
		}
	}
}

// reviveTopicOf is the topic of a cluster's check points.
func reviveTopicOf(cluster string) string { return names.ReviveTopicPrefix + cluster }

package admin

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// DeadLetters is what lies in the dead-letter topic of one group.
type DeadLetters struct {
	Group    string
	Count    int64
	Redriven int64 // of Count
	Last     int64 // when the newest was stored, ms; 0 = there is none
}

// DeadLetters counts those of all groups that have a dead-letter topic, in no order.
func (a *Admin) DeadLetters() (all []DeadLetters, err error) {
	for _, t := range a.o.Topics.All() {
		if !names.IsDeadLetter(t.Name) {
			continue
		}
		extents, err := a.TopicStats(t.Name)
		if err != nil {
			continue // deleted meanwhile
		}
		one := DeadLetters{Group: strings.TrimPrefix(t.Name, names.DeadLetterPrefix)}
		for _, e := range extents {
			one.Count += e.Max - e.Min
			one.Last = max(one.Last, e.LastStored)
		}
		if one.Redriven, err = a.redriven.count(a.o.State, t.Name, extents); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// count is how many of the letters that are still there were redriven.
func (r *redriven) count(db *state.DB, topic string, extents []QueueExtent) (n int64, err error) {
	prefix := topic + "\x00"
	chunks := make(map[string][chunkBytes]byte)
	r.mu.Lock()
	defer r.mu.Unlock()
	if db != nil {
		err = db.Scan(state.Redriven, []byte(prefix), func(key, value []byte) error {
			var c [chunkBytes]byte
			copy(c[:], value)
			chunks[string(key)] = c
			return nil
		})
	}
	for key, c := range r.chunks { // newer than the state
		if strings.HasPrefix(key, prefix) {
			chunks[key] = *c
		}
	}
	for key, c := range chunks {
		rest := key[len(prefix):]
		if len(rest) != 12 {
			continue
		}
		queue, first := int32(binary.BigEndian.Uint32([]byte(rest))), int64(binary.BigEndian.Uint64([]byte(rest[4:])))*chunkBytes*8
		for _, e := range extents {
			if e.QueueID == queue {
				n += within(&c, first, e.Min, e.Max)
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("what was redriven of %s: %w", topic, err)
	}
	return n, err
}

// within counts the bits from offset low to before high, where the first bit is offset first.
func within(c *[chunkBytes]byte, first, low, high int64) (n int64) {
	for i, b := range c {
		at := first + int64(i)*8
		if low > at {
			b &= byte(0xff) << min(8, low-at)
		}
		if high < at+8 {
			b &= byte(0xff) >> min(8, at+8-high)
		}
		n += int64(bits.OnesCount8(b))
	}
	return n
}

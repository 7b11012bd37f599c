package admin

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/topic"
)

// Sentinels of the use cases; details are wrapped around them.
var (
	ErrIllegal      = errors.New("illegal parameter")
	ErrRetryTopic   = errors.New("retry topic is not allowed to set mode")
	ErrNotConnected = errors.New("client is not connected")
)

// Assigned is a queue for one client; QueueID -1 stands for all of the broker's queues.
type Assigned struct {
	QueueID int32
	Pop     bool
}

// Ask is a client's question which queues of this broker it consumes.
type Ask struct {
	Topic, Group, ClientID string
	Strategy               string // AVG or AVG_BY_CIRCLE
	Broadcast              bool
}

// Assignment answers a client's question. An error says that nothing is known and the
// client keeps what it has.
func (a *Admin) Assignment(q Ask) ([]Assigned, error) {
	t, ok := a.o.Topics.Get(q.Topic)
	if !ok {
		return nil, fmt.Errorf("%w: %s", topic.ErrNotFound, q.Topic)
	}
	mode := a.Mode(q.Topic, q.Group)
	ids := a.o.Clients.ConsumerIDs(q.Group)
	if kind, model, ok := a.o.Clients.Model(q.Group); ok && model == clients.Broadcasting && kind != clients.ConsumePop {
		q.Broadcast = true
	}
	if q.Broadcast {
		return assignments(all(t.ReadQueues), false), nil
	}
	at := slices.Index(ids, q.ClientID)
	if at < 0 {
		return nil, fmt.Errorf("%w: %s in group %s", ErrNotConnected, q.ClientID, q.Group)
	}
	share, ok := strategies[q.Strategy]
	if !ok && q.Strategy != "" {
		return nil, fmt.Errorf("%w: strategy %q", ErrIllegal, q.Strategy)
	}
	if share == nil {
		share = average
	}
	if !mode.Pop {
		return assignments(share(t.ReadQueues, int32(len(ids)), int32(at)), false), nil
	}
	return assignments(popShare(t.ReadQueues, int32(len(ids)), int32(at), mode.ShareQueues, share), true), nil
}

func assignments(queues []int32, pop bool) []Assigned {
	out := make([]Assigned, 0, len(queues))
	for _, q := range queues {
		out = append(out, Assigned{q, pop})
	}
	return out
}

// strategy gives client i of c its part of n queues.
type strategy func(n, c, i int32) []int32

var strategies = map[string]strategy{"AVG": average, "AVG_BY_CIRCLE": circle}

func all(n int32) []int32 {
	out := make([]int32, 0, n)
	for q := range n {
		out = append(out, q)
	}
	return out
}

// average gives each client neighbouring queues, the first ones one more.
func average(n, c, i int32) []int32 {
	mod := n % c
	size := n / c
	start := i*size + mod
	switch {
	case n <= c:
		size, start = 1, i
	case i < mod:
		size++
		start = i * size
	}
	var out []int32
	for q := start; q < min(start+size, n); q++ {
		out = append(out, q)
	}
	return out
}

// circle deals the queues out one by one.
func circle(n, c, i int32) []int32 {
	var out []int32
	for q := i; q < n; q += c {
		out = append(out, q)
	}
	return out
}

// popShare gives a popping client the queues that it pops from: by default all of the
// broker, as -1; with a share of s, its own part and those of the s clients after it.
func popShare(n, c, i, s int32, share strategy) []int32 {
	if n == 0 {
		return nil
	}
	if s <= 0 || s >= c-1 {
		return []int32{-1}
	}
	if c > n {
		return []int32{i % n}
	}
	var out []int32
	for k := range s + 1 {
		out = append(out, share(n, c, (i+k)%c)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

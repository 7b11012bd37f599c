// Package admin is the use cases that cross domains: deleting topics and groups with all
// that hangs on them, statistics that join offsets with queues, resets of offsets, and
// who of a group consumes which queue.
//
// Invariants: what is deleted goes in one batch of the state database, its queues on disk
// after that; a crash in between leaves a grave, and the next start finishes (Sweep).
// Nothing here runs on the way of a message.
//
// Neighbours: the fronts call one method per request; broker builds it from its domains.
package admin

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/qlock"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
)

// Store is the part of the store that use cases read.
type Store interface {
	MinOffset(topic string, queueID int32) int64
	MaxOffset(topic string, queueID int32) int64
	StoreTimeAt(topic string, queueID int32, offset int64) int64
	OffsetByTime(topic string, queueID int32, ms int64, upper bool) int64
	Entries(topic string, queueID int32, from int64, count int) ([]storage.QueueEntry, error)
}

// Pop is the part of POP's state that use cases show and change.
type Pop interface {
	Leave(group, topic string)
	Figures(match func(group string) bool) []pop.Figures
	DropTopic(topic string, b *state.Batch)
	DropGroup(group string, b *state.Batch)
}

// Options is what the use cases need. All but Pop, ModesChanged and Log are required.
type Options struct {
	Config    *config.Live[config.Broker]
	State     *state.DB
	Store     Store
	CommitLog CommitLog
	Files     Files
	Topics    *topic.Table
	Groups    *group.Table
	Offsets   *offset.Table
	Clients   *clients.Registry
	Locks     *qlock.Table
	Publish   Redriver
	Pop       Pop // nil = this broker has none
	// Wake has the suspended requests of a topic look again; nil: nobody waits.
	Wake func(topic string)
	// ModesChanged is called when request modes have changed, and must not block.
	ModesChanged func()
	Version      string // of this program
	Log          *slog.Logger
}

// Admin is the use cases of one broker.
type Admin struct {
	// Put, PutBytes and Got count messages stored, their bytes, and messages handed out;
	// broker feeds them from events.
	Put, PutBytes, Got Meter

	// PutTimes is how long the log takes to write.
	PutTimes PutTimes
	// Counters are what was sent and received by topic and by group; fed like the meters.
	Counters Counters

	o      Options
	booted time.Time

	redriven redriven
	modes    struct {
		sync.RWMutex
		of   map[modeKey]Mode
		left map[modeKey]bool // those that pull now and popped before
	}
	leaving atomic.Int32 // size of modes.left
}

// Open returns the use cases, with the request modes that were stored.
func Open(o Options) (*Admin, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &Admin{o: o, booted: time.Now()}
	a.modes.of = make(map[modeKey]Mode)
	a.modes.left = make(map[modeKey]bool)
	if err := a.loadModes(); err != nil {
		return nil, fmt.Errorf("read request modes: %w", err)
	}
	return a, nil
}

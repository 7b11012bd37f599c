// Package topic is the table of topic configurations: what exists on this broker, who
// may read and write it, with how many queues, and since which place of the log.
//
// Invariants: a *Config that has been published never changes, a change publishes a new
// one; the data version grows with every change; a change is in the state database
// before any caller sees it, so no message ever lies under a topic that a restart
// forgets; a deleted topic leaves its grave (the log's end at that moment), so records
// of an earlier life of a name are not dispatched into a later one (P8).
//
// Neighbours: publish creates topics on send, clients and pop create retry topics,
// admin changes and deletes; register and the exports hear of changes through Events.
package topic

import (
	"errors"
	"maps"
	"slices"
)

// The bits of a permission.
const (
	PermInherit  int32 = 1 // other topics are created after this one
	PermWrite    int32 = 2
	PermRead     int32 = 4
	PermPriority int32 = 8
)

// SingleTag is the only filter type that a topic has in practice.
const SingleTag = "SINGLE_TAG"

// The bits of a topic's system flag.
const (
	SysFlagUnit    int32 = 1
	SysFlagUnitSub int32 = 2
)

// Sentinels of the table; details are wrapped around them.
var (
	ErrNotFound    = errors.New("topic does not exist")
	ErrIllegalName = errors.New("illegal topic name")
	ErrSystemTopic = errors.New("topic is a system topic")
	ErrIllegal     = errors.New("illegal topic configuration")
	ErrMixed       = errors.New("MIXED message type is not supported: enableMixedMessageType is off")
	ErrNoTemplate  = errors.New("topic can not be created from this template")
)

// Config is one topic as it is at one moment. Once published it never changes: copy it
// with Clone to make another one.
type Config struct {
	Name        string
	ReadQueues  int32
	WriteQueues int32
	Perm        int32
	FilterType  string
	SysFlag     int32
	Order       bool
	Attributes  map[string]string // without the plus signs
	Birth       int64             // records before this place of the log belong to an earlier topic of the name
}

// New returns the configuration that a topic has unless told otherwise: 16 queues,
// readable and writable.
func New(name string) *Config {
	return &Config{Name: name, ReadQueues: 16, WriteQueues: 16, Perm: PermRead | PermWrite, FilterType: SingleTag}
}

// Readable tells whether consumers may read the topic.
func (c *Config) Readable() bool { return c.Perm&PermRead != 0 }

// Writable tells whether producers may write to the topic.
func (c *Config) Writable() bool { return c.Perm&PermWrite != 0 }

// Inherits tells whether other topics may be created after this one.
func (c *Config) Inherits() bool { return c.Perm&PermInherit != 0 }

// Queues is the number of queues that exist for readers or writers.
func (c *Config) Queues() int32 { return max(c.ReadQueues, c.WriteQueues) }

// MessageType is the kind of messages that the topic takes: NORMAL unless its
// attributes say otherwise.
func (c *Config) MessageType() string {
	if kind := c.Attributes["message.type"]; kind != "" {
		return kind
	}
	return "NORMAL"
}

// Compacted tells whether the topic keeps the last message of each key only.
func (c *Config) Compacted() bool { return c.Attributes["cleanup.policy"] == "COMPACTION" }

// Clone returns a copy that may be changed.
func (c *Config) Clone() *Config {
	n := *c
	n.Attributes = maps.Clone(c.Attributes)
	return &n
}

// Equal tells whether both describe the same topic; the birth does not count.
func (c *Config) Equal(o *Config) bool {
	return c.Name == o.Name && c.ReadQueues == o.ReadQueues && c.WriteQueues == o.WriteQueues &&
		c.Perm == o.Perm && c.FilterType == o.FilterType && c.SysFlag == o.SysFlag && c.Order == o.Order &&
		maps.Equal(c.Attributes, o.Attributes)
}

func sortByName(list []*Config) {
	slices.SortFunc(list, func(a, b *Config) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
}

// Package message is what a message is: its fields, its properties and its bytes in the
// log, as Apache RocketMQ 5.5.0 stores them (docs/formats/record.md).
//
// Invariants: decode∘encode is the identity; no input panics; a record of format 1 is
// never rewritten as format 2.
//
// Neighbours: storage appends what AppendStored made; fronts and publish build Messages;
// names of properties are the constants in properties.go.
package message

import (
	"bytes"
	"net/netip"
	"strings"
)

// Message is one message, on its way into the log or read from it. Body and Properties
// may alias the buffer that they were decoded from: whoever keeps a Message longer than
// that buffer calls Clone.
type Message struct {
	Topic          string
	QueueID        int32
	Flag           int32 // the application's own, passed through
	SysFlag        int32 // Sys… bits
	BornTimestamp  int64 // ms, the sender's clock
	BornHost       netip.AddrPort
	StoreTimestamp int64 // ms, the server's clock, never runs backwards in what one process writes
	StoreHost      netip.AddrPort
	ReconsumeTimes int32
	Properties     Properties
	Body           []byte

	// PreparedTransactionOffset is the log offset of the half message that a commit or
	// rollback record belongs to, else 0.
	PreparedTransactionOffset int64

	// Set by the store.
	QueueOffset    int64
	PhysicalOffset int64
	StoreSize      int32
	BodyCRC        int32
}

// Clone returns a copy that shares no bytes with m.
func (m *Message) Clone() *Message {
	c := *m
	c.Topic = strings.Clone(m.Topic)
	c.Properties = Properties(strings.Clone(string(m.Properties)))
	c.Body = bytes.Clone(m.Body)
	return &c
}

// Tag is the TAGS property, "" when the message has none.
func (m *Message) Tag() string { return m.Properties.Value(PropertyTags) }

// UniqueID is the id that the sender gave the message, "" when it gave none.
func (m *Message) UniqueID() string { return m.Properties.Value(PropertyUniqKey) }

// OffsetID is the id made of where the message is stored.
func (m *Message) OffsetID() string { return OffsetID(m.StoreHost, m.PhysicalOffset) }

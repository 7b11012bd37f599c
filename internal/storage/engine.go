// Package storage is the store: append, read, offsets, dispatch, retention and check of
// log, queues and key index.
//
// Invariants: readers see a message only after it was dispatched; Done is called once
// for every append, in log order; recovery cuts what is torn and rebuilds what is
// behind. Neighbours: publish appends, pull and pop read, broker opens it.
package storage

import (
	"context"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// Engine is one open store.
type Engine struct{}

type readBuffers struct{}

// Loop is a part of the store that the owner runs until it stops the store.
type Loop struct {
	Name string
	Run  func(ctx context.Context) error
}

// Open recovers the store in o.Dir, or makes an empty one, and returns when everything
// in the log has been dispatched.
func Open(o Options) (*Engine, error) { panic("unwritten") }

// Loops are to be started in this order and stopped in the reverse order, then Close.
func (e *Engine) Loops() []Loop { panic("unwritten") }

// Append puts m at the log's end. m and its body may be reused when it returns. done is
// called once: from the log's writer in log order, or before Append returns when the
// message is refused. Append waits only while the open buffers are full.
func (e *Engine) Append(m *message.Message, done func(Placed, error)) { panic("unwritten") }

// AppendBatch puts all of ms, for one topic and queue, side by side with consecutive
// queue offsets, or none of them.
func (e *Engine) AppendBatch(ms []*message.Message, done func([]Placed, error)) { panic("unwritten") }

// Read gives records of one queue.
func (e *Engine) Read(r ReadRequest) ReadResult { panic("unwritten") }

// Release gives the result's buffers back.
func (r *ReadResult) Release() { panic("unwritten") }

// ReadAt gives a copy of the record at a log offset.
func (e *Engine) ReadAt(physicalOffset int64) ([]byte, error) { panic("unwritten") }

// MinOffset is the first offset of a queue that can be read; 0 for an unknown queue.
func (e *Engine) MinOffset(topic string, queueID int32) int64 { panic("unwritten") }

// MaxOffset is the dispatched end of a queue; 0 for an unknown queue.
func (e *Engine) MaxOffset(topic string, queueID int32) int64 { panic("unwritten") }

// OffsetByTime is the first offset stored at or after ms, or with upper the last one
// stored at or before it.
func (e *Engine) OffsetByTime(topic string, queueID int32, ms int64, upper bool) int64 {
	panic("unwritten")
}

// StoreTimeAt is the store timestamp of a queue's record, -1 when there is none.
func (e *Engine) StoreTimeAt(topic string, queueID int32, offset int64) int64 { panic("unwritten") }

// EarliestStoreTime is the store timestamp of the first record of a queue, -1 when empty.
func (e *Engine) EarliestStoreTime(topic string, queueID int32) int64 { panic("unwritten") }

// QueryKey finds records of topic by unique key or by a word of their KEYS, newest first,
// stored between begin and end (ms, inclusive). The records are copies.
func (e *Engine) QueryKey(topic, key string, max int, begin, end int64) ([]Record, error) {
	panic("unwritten")
}

// LogMin is the first log offset that is still there.
func (e *Engine) LogMin() int64 { panic("unwritten") }

// LogMax is the end of the log as far as it is dispatched.
func (e *Engine) LogMax() int64 { panic("unwritten") }

// Queues names the queues that have records, sorted.
func (e *Engine) Queues() []QueueName { panic("unwritten") }

// Topics names the topics that have queues, sorted.
func (e *Engine) Topics() []string { panic("unwritten") }

// DeleteTopic removes a topic's queues. Its records stay in the log until retention and
// are found by nobody.
func (e *Engine) DeleteTopic(topic string) error { panic("unwritten") }

// Check walks log, queues and index and reports the first contradiction.
func (e *Engine) Check() error { panic("unwritten") }

// Close flushes everything and marks a clean stop. The loops must have ended.
func (e *Engine) Close() error { panic("unwritten") }

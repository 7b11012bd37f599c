package pull

import "github.com/bolidemq/bolide/internal/storage"

// Answer is what a pull is told, each with its own response code.
type Answer uint8

// The answers.
const (
	Found    Answer = iota // messages
	NotFound               // nothing yet: the only one that may wait
	Again                  // nothing here that the filter wants: go on at Next at once
	Moved                  // the offset is not in the queue: go on at Next
)

// Outcome says what the outcome of a read means for a pull at offset.
func Outcome(status storage.ReadStatus, offset int64) Answer {
	switch status {
	case storage.Found:
		return Found
	case storage.MessageWasRemoved, storage.NoMatchedMessage:
		return Again
	case storage.NoMatchedQueue, storage.NoMessageInQueue:
		if offset != 0 {
			return Moved
		}
		return NotFound
	case storage.OffsetFoundNull, storage.OffsetOverflowOne:
		return NotFound
	}
	return Moved // too small, or far beyond the end
}

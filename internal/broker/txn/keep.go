package txn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/storage"
)

// keepMost is how many bytes of open half messages are written again when their log file
// goes. With more of them the file stays.
const keepMost = 64 << 20

// ErrTooMuch says that a log file holds more open half messages than are written again.
var ErrTooMuch = errors.New("too many half messages that nobody has decided")

// Keep is called before the log before end is deleted: the half messages there that are open
// are written once more. Their producers know them by their old place, which stays their name.
func (t *Txn) Keep(end int64) error {
	var list []*entry
	bytes := 0
	t.mu.Lock()
	for _, e := range t.mu.open {
		if e.physical < end {
			list = append(list, e)
			bytes += int(e.size)
		}
	}
	t.mu.Unlock()
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.first, b.first) })
	if bytes > keepMost {
		return fmt.Errorf("%w: they have %d bytes, the limit is %d", ErrTooMuch, bytes, keepMost)
	}
	if len(list) == 0 {
		return nil
	}
	done := make(chan error, len(list))
	for _, e := range list {
		t.again(e, func(err error) { done <- err })
	}
	var errs []error
	for range list {
		errs = append(errs, <-done)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("keep half messages: %w", err)
	}
	if err := t.o.Store.Sync(); err != nil {
		return fmt.Errorf("keep half messages: %w", err)
	}
	t.commitOffsets() // behind what goes
	t.o.Log.Info("half messages are written again while the log file that they were in goes", "messages", len(list))
	return nil
}

// again writes a half message once more.
func (t *Txn) again(e *entry, done func(error)) {
	t.mu.Lock()
	physical, gone := e.physical, e.gone
	t.mu.Unlock()
	if gone {
		done(nil)
		return
	}
	h, err := t.read(physical)
	if err != nil {
		done(err)
		return
	}
	t.o.Publish.Rehalve(h.message, sourceOf(Moved, e.first), func(at storage.Placed, err error) {
		if err == nil {
			// Not only when it is dispatched: the file goes before that.
			t.mu.Lock()
			t.movedLocked(e.first, &at)
			t.mu.Unlock()
		}
		done(err)
	})
}

package admin

import (
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// DeleteGroup removes a group with its offsets, POP state, locks and request modes
// (R100): a group of the same name that comes later begins anew. Its retry and dead
// letter topics are topics of their own and stay until somebody deletes them. One that
// does not exist is no error; one of the server's own does not go.
func (a *Admin) DeleteGroup(name string) error {
	if names.IsSystemGroup(name) {
		return fmt.Errorf("%w: %s", group.ErrSystemGroup, name)
	}
	if err := a.o.State.Full(); err != nil { // the batch is made by changing what is in memory
		return fmt.Errorf("delete group %s: %w", name, err)
	}
	drop := func(b *state.Batch) {
		a.o.Offsets.DropGroup(name, b)
		if a.o.Pop != nil {
			a.o.Pop.DropGroup(name, b)
		}
		a.dropModes(b, func(k modeKey) bool { return k.group == name })
	}
	err := a.o.Groups.DeleteWith(name, drop)
	if errors.Is(err, group.ErrNotFound) {
		b := a.o.State.NewBatch()
		drop(b)
		err = a.o.State.Commit(b)
	}
	if err != nil {
		return fmt.Errorf("delete group %s: %w", name, err)
	}
	a.o.Locks.DeleteGroup(name)
	a.o.Log.Info("group deleted", "group", name)
	return nil
}

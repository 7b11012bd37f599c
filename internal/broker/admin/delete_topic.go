package admin

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// DeleteTopic removes a topic with its messages, offsets, POP state and request modes,
// and the POP retry topics of its groups (P8, R099, R100). One that does not exist is no
// error: its remains, if any, go. The name is checked like one to create, for it becomes
// the name of the folder that goes.
func (a *Admin) DeleteTopic(name string) error {
	if strings.TrimSpace(name) == "" {
		return fmt.Errorf("%w: The specified topic is blank.", topic.ErrIllegalName)
	}
	if a.o.Topics.IsSystem(name) {
		return fmt.Errorf("%w: %s", topic.ErrSystemTopic, name)
	}
	if err := names.CheckTopic(name); err != nil {
		if _, exists := a.o.Topics.Get(name); !exists { // what an older store brought can go
			return fmt.Errorf("%w: %w", topic.ErrIllegalName, err)
		}
	}
	if err := a.o.State.Full(); err != nil { // the batch is made by changing what is in memory
		return fmt.Errorf("delete topic %s: %w", name, err)
	}
	doomed := []string{name}
	if a.o.Config.Get().ClearRetryTopicWhenDeleteTopic {
		doomed = append(doomed, a.popRetryTopics(name)...)
	}
	return a.deleteTopics(doomed)
}

// deleteTopics ends the topics in one batch and then removes their queues.
func (a *Admin) deleteTopics(doomed []string) error {
	drop := func(b *state.Batch) {
		for _, t := range doomed {
			a.o.Offsets.DropTopic(t, b)
			a.dropRedriven(t, b)
			if a.o.Pop != nil {
				a.o.Pop.DropTopic(t, b)
			}
			a.dropModes(b, func(k modeKey) bool { return k.topic == t })
		}
	}
	err := a.o.Topics.DeleteWith(doomed, drop)
	if errors.Is(err, topic.ErrNotFound) {
		b := a.o.State.NewBatch()
		drop(b)
		err = a.o.State.Commit(b)
	}
	if err != nil {
		return fmt.Errorf("delete topic %s: %w", doomed[0], err)
	}
	var errs []error
	for _, t := range doomed {
		a.Counters.Forget(t)
		if err := a.o.Files.DeleteTopic(t); err != nil {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete the queues of topic %s: %w", doomed[0], err)
	}
	if retries := doomed[1:]; len(retries) > 0 {
		a.o.Log.Info("topic deleted", "topic", doomed[0], "with", retries)
	} else {
		a.o.Log.Info("topic deleted", "topic", doomed[0])
	}
	return nil
}

// popRetryTopics are the topics in which POP's retries of a topic wait, in both forms of
// their names, of every group that is known to have read it.
func (a *Admin) popRetryTopics(name string) []string {
	var out []string
	for _, g := range a.o.Groups.All() {
		for _, retry := range []string{names.PopRetryV1(name, g.Name), names.PopRetryV2(name, g.Name)} {
			if retry == name {
				continue
			}
			if _, ok := a.o.Topics.Get(retry); ok && (len(retry) > 0 && !a.sharedRetry(retry, name, g.Name)) {
				out = append(out, retry)
			}
		}
	}
	return out
}

// sharedRetry tells whether a v1 name can also be that of another topic and group that
// exist, or of a group's own retry topic: it then stays.
func (a *Admin) sharedRetry(retry, name, group string) bool {
	if _, ok := a.o.Groups.Get(strings.TrimPrefix(retry, names.RetryPrefix)); ok {
		return true
	}
	for _, g := range a.o.Groups.All() {
		if g.Name == group {
			continue
		}
		if origin, ok := names.OriginTopic(retry, g.Name); ok && origin != name {
			if _, exists := a.o.Topics.Get(origin); exists {
				return true
			}
		}
	}
	return false
}

// Sweep removes the queues of topics that were deleted and whose queues a crash has left.
// queued are the topics that have queues on disk.
func (a *Admin) Sweep(queued []string) error {
	var errs []error
	for _, name := range queued {
		if a.o.Topics.Buried(name) {
			a.o.Log.Info("removing the queues of a topic that was deleted", "topic", name)
			errs = append(errs, a.o.Files.DeleteTopic(name))
		}
	}
	return errors.Join(errs...)
}

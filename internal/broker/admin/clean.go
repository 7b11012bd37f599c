package admin

import (
	"errors"
	"fmt"
)

// Files is the part of the store that is cleaned by command.
type Files interface {
	Topics() []string
	DeleteTopic(topic string) error
	DeleteExpired() error // log files past their age, whatever the hour
	DeletePassed() error  // files of queues and index that only point to deleted log files
}

// DeleteExpired deletes the log files past their age now.
func (a *Admin) DeleteExpired() error {
	if err := a.o.Files.DeleteExpired(); err != nil {
		return fmt.Errorf("delete expired log files: %w", err)
	}
	return nil
}

// CleanQueues deletes the files of queues that only point to log files that are gone.
func (a *Admin) CleanQueues() error {
	if err := a.o.Files.DeletePassed(); err != nil {
		return fmt.Errorf("delete passed queue files: %w", err)
	}
	return nil
}

// CleanTopics deletes the queues of topics that do not exist any more.
func (a *Admin) CleanTopics() error {
	var errs []error
	for _, name := range a.o.Files.Topics() {
		if a.o.Topics.IsSystem(name) {
			continue
		}
		errs = append(errs, a.o.Topics.IfAbsent(name, func() error {
			a.o.Log.Info("removing the queues of a topic that does not exist", "topic", name)
			return a.o.Files.DeleteTopic(name)
		}))
	}
	return errors.Join(errs...)
}

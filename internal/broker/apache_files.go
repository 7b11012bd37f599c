package broker

import (
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/broker/exports"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/timer"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/storage/state"
)

// Apache's files below the store's root folder, and the folder they are in.
const (
	exportsDir  = "config"
	topicsFile  = "topics.json"
	groupsFile  = "subscriptionGroup.json"
	offsetsFile = "consumerOffset.json"
	lmqFile     = "lmqConsumerOffset.json" // the same, of a broker with enableLmq
	delaysFile  = "delayOffset.json"
	modesFile   = "messageRequestMode.json"
	halvesFile  = "transactionMetrics"
)

// openExports takes over what another server has written, and makes ready to write.
func (b *Broker) openExports(o *Options) (err error) {
	b.exports, err = exports.Open(exports.Options{FS: o.FS, Dir: o.FS.PathJoin(o.Dir, exportsDir), State: b.State, Log: o.Log},
		exports.File{Name: topicsFile, Export: b.Topics.Export, Import: b.Topics.Import},
		exports.File{Name: groupsFile, Export: b.Groups.Export, Import: b.Groups.Import},
		exports.File{Name: offsetsFile, Export: b.Offsets.Export, Import: b.importOffsets},
		exports.File{Name: lmqFile, Export: b.Offsets.ExportLMQ, Import: b.importOffsets},
		exports.File{Name: delaysFile, Export: b.Timer.Export, Import: b.Timer.Import},
		exports.File{Name: modesFile, Export: func() ([]byte, error) { return b.Admin.ExportModes() }, Import: func(text []byte) error { return admin.ImportModes(b.State, text) }},
		exports.File{Name: halvesFile, Export: b.Txn.Export},
	)
	return err
}

// importOffsets replaces the consumer offsets. POP's progress was of the time before
// another server moved them, so it ends; POP begins again from the offsets.
func (b *Broker) importOffsets(text []byte) error {
	if err := b.Offsets.Import(text); err != nil {
		return err
	}
	batch := b.State.NewBatch()
	for _, s := range []state.Space{state.PopWindows, state.PopRecords, state.PopAside, state.Transactions} {
		batch.DeletePrefix(s, nil)
	}
	batch.Put(state.Meta, metaTakeOver, []byte{1})
	if err := b.State.Commit(batch); err != nil {
		return fmt.Errorf("end POP's progress: %w", err)
	}
	return nil
}

// metaTakeOver is there from the import of another server's offsets until what it had in
// flight is imported, too, which needs the store.
var metaTakeOver = []byte("pop.takeover")

// takeOver imports what another server had in flight.
func (b *Broker) takeOver() error {
	if _, ok, err := b.State.Get(state.Meta, metaTakeOver); err != nil || !ok {
		return err
	}
	halves, err := b.Txn.TakeOver()
	if err != nil {
		return fmt.Errorf("take over open transactions: %w", err)
	}
	if halves != (txn.TakenOver{}) {
		b.log.Info("took over the transactions of another server", "open", halves.Open, "decided", halves.Decided, "written again", halves.Repeated)
	}
	got, err := b.Pop.Import(func(group string) bool { _, ok := b.Groups.Get(group); return ok })
	if err != nil {
		return fmt.Errorf("take over what is in flight: %w", err)
	}
	if got != (pop.Imported{}) {
		b.log.Info("took over what another server had in flight", "messages", got.Messages, "unreadable", got.Unread)
	}
	batch := b.State.NewBatch()
	batch.Delete(state.Meta, metaTakeOver)
	return b.State.Commit(batch)
}

// export notes that a table has changed; before the exports are open it is written anyway.
func (b *Broker) export(file string) {
	if b.exports != nil {
		b.exports.Changed(file)
	}
}

// txnEvents are the caller's, and the export's.
func (b *Broker) txnEvents(o *Options) txn.Events {
	events := o.Events.Txn
	ended := events.Ended
	events.Ended = func(topic string, committed bool, after time.Duration) {
		b.export(halvesFile)
		if ended != nil {
			ended(topic, committed, after)
		}
	}
	return events
}

// timerEvents are the caller's, and the export's.
func (b *Broker) timerEvents(o *Options) timer.Events {
	events := o.Events.Timer
	delivered := events.Delivered
	events.Delivered = func(level int32, late time.Duration) {
		b.export(delaysFile)
		if delivered != nil {
			delivered(level, late)
		}
	}
	return events
}

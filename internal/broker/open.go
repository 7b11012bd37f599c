package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/pull"
	"github.com/bolidemq/bolide/internal/broker/qlock"
	"github.com/bolidemq/bolide/internal/broker/reply"
	"github.com/bolidemq/bolide/internal/broker/timer"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/segment"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

const (
	stateDir = "state" // in the store's root folder
	// recentBytes is how near to the log's end a queue's first message must be for a group
	// that starts from the newest to take the whole queue: such a queue has just begun.
	recentBytes = 1 << 30
)

// Open recovers the broker in o.Dir, or makes an empty one. When it returns, requests may
// come as soon as the loops run.
func Open(o Options) (b *Broker, err error) {
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tune.MaxWaiting == 0 {
		o.Tune.MaxWaiting = int(o.Broker.Get().MaxPopPollingSize)
	}
	settings := o.Broker.Get()
	b = &Broker{Name: settings.BrokerName, Cluster: settings.BrokerClusterName, StoreHost: o.StoreHost,
		Config: o.Broker, StoreConfig: o.StoreConfig, Clock: o.Clock, announce: o.Announce, reconfigured: o.Reconfigured, log: o.Log, engine: &engine{}}
	defer func() {
		if err == nil {
			return
		}
		// What can't be closed either fails of the same cause, which is to be told in one line.
		if closing := b.abandon(); closing != nil {
			o.Log.Debug("closing what could not be opened", "err", closing)
		}
		b = nil
		if vfs.IsNoSpaceError(err) || errors.Is(err, state.ErrFull) {
			err = fmt.Errorf("the disk of %s is full; a start needs some megabytes: make room and start again (%w)", o.Dir, err)
		}
	}()
	if err := b.openTables(&o); err != nil {
		return b, err
	}
	levels, err := publish.ParseLevels(o.StoreConfig.Get().MessageDelayLevel)
	if err != nil {
		return b, err
	}
	if err := b.makeDomains(&o, levels); err != nil {
		return b, err
	}
	if b.Store, err = storage.Open(b.storeOptions(&o, levels)); err != nil {
		return b, fmt.Errorf("open the store in %s: %w", o.Dir, err)
	}
	b.engine.Engine = b.Store
	b.synced.Store(b.Store)
	return b, b.reconcile()
}

// openTables opens the state and what lives in it alone.
func (b *Broker) openTables(o *Options) (err error) {
	sc := o.StoreConfig.Get()
	// Durably: a folder that a power cut takes away takes everything in it along.
	if err := segment.MkdirAll(o.FS, o.Dir); err != nil {
		return fmt.Errorf("make the store's folder: %w", err)
	}
	b.State, err = state.Open(state.Options{FS: o.FS, Dir: o.FS.PathJoin(o.Dir, stateDir), Sync: sc.FlushDiskType == "SYNC_FLUSH",
		SyncInterval: time.Duration(sc.FlushIntervalCommitLog) * time.Millisecond, BeforeSync: b.syncLog, Rounds: &b.rounds, Log: o.Log})
	if err != nil {
		return err
	}
	if err := b.wind(o); err != nil {
		return err
	}
	b.LongPoll = longpoll.New(longpoll.Limits{Total: o.Tune.MaxWaiting})
	b.LongPoll.Properties = func(physical int64, size int32) (message.Properties, bool) {
		return b.engine.PropertiesAt(physical, size)
	}
	b.Topics, err = topic.Open(topic.Options{State: b.State, Config: o.Broker, LogEnd: b.logEnd, Log: o.Log,
		Events: topic.Events{Changed: func(names []string) { b.topicsChanged(o, names) }}})
	if err != nil {
		return err
	}
	b.Groups, err = group.Open(group.Options{State: b.State, Config: o.Broker, Log: o.Log,
		Events: group.Events{Changed: func([]string) { b.export(groupsFile) }}})
	if err != nil {
		return err
	}
	b.Offsets, err = offset.Open(offset.Options{State: b.State, Log: o.Log,
		Events:     offset.Events{Changed: func() { b.export(offsetsFile); b.export(lmqFile) }},
		FlushEvery: time.Duration(o.Broker.Get().FlushConsumerOffsetInterval) * time.Millisecond})
	return err
}

// makeDomains makes the domains that need the store; none looks at it before reconcile.
func (b *Broker) makeDomains(o *Options, levels publish.Levels) (err error) {
	b.Locks = qlock.New()
	b.Clients = clients.New(clients.Options{Config: o.Broker, Topics: b.Topics, Groups: b.Groups, Announce: o.Announce,
		Events: b.clientsEvents(o), Log: o.Log})
	b.Publish = publish.New(publish.Options{Store: b.engine, Topics: b.Topics, Group: b.groupLimits, Ordered: b.Locks.HasLock,
		MaxBody:  func() int { return int(o.StoreConfig.Get().MaxMessageSize) },
		Announce: announceMade(o), Lights: func() bool { return lightsOn(o.StoreConfig.Get()) }, Broker: o.Broker, Levels: levels,
		Timers: b.timerRules, NowMilli: o.Clock.NowMilli, WallMilli: o.Clock.WallMilli, StoreHost: o.StoreHost, Find: b.find, CatchUp: b.catchUp, Events: b.publishEvents(o)})
	b.Reply = reply.New(reply.Options{Publish: b.Publish, Askers: b.Clients, Broker: o.Broker, NowMilli: o.Clock.NowMilli})
	b.Pull = pull.New(pull.Options{Store: b.engine, Topics: b.Topics, Groups: b.Groups, Offsets: b.Offsets, Clients: b.Clients,
		LongPoll: b.LongPoll, Broker: o.Broker, NowMilli: o.Clock.NowMilli,
		MaxMessages: func() int { return int(o.StoreConfig.Get().MaxTransferCountOnMessage) }, Events: b.pullEvents(o)})
	b.Timer, err = timer.Open(timer.Options{Store: b.engine, State: b.State, Publish: b.Publish, Topic: b.Topics.Get, Clock: o.Clock,
		Events: b.timerEvents(o), Log: o.Log})
	if err != nil {
		return err
	}
	b.Wheel, err = timer.OpenWheel(timer.WheelOptions{Store: b.engine, State: b.State, Publish: b.Publish, Topic: b.Topics.Get, Broker: o.Broker, Round: b.loopRound, Host: o.StoreHost, Clock: o.Clock,
		Events: o.Events.Wheel, Near: o.Tune.NearTimers, Log: o.Log,
		Files: timer.ApacheFiles{FS: o.FS, Dir: o.Dir, Slots: o.Tune.WheelSlots, Log: o.Tune.TimerLog}})
	if err != nil {
		return err
	}
	b.Txn, err = txn.Open(txn.Options{Store: b.engine, State: b.State, Publish: b.Publish, Offsets: b.Offsets, Topic: b.Topics.Get,
		Producers: b.Clients.Producers, Broker: o.Broker, Clock: o.Clock, Events: b.txnEvents(o), Log: o.Log,
		MaxAge: func() time.Duration { return time.Duration(o.StoreConfig.Get().FileReservedTime) * time.Hour }})
	if err != nil {
		return err
	}
	// Before POP is opened: what another server has consumed ends what POP knew.
	if err := b.openExports(o); err != nil {
		return err
	}
	b.Pop, err = pop.Open(pop.Options{State: b.State, Store: b.engine, Offsets: b.Offsets, Clock: o.Clock, LongPoll: b.LongPoll, Rounds: &b.rounds,
		Topic: b.Topics.Get, Group: b.Groups.GetOrCreate, Forbidden: b.forbidden, Subscriptions: b.Clients.Subscriptions,
		Compile: b.Pull.CompileAny, Present: b.Clients.Present, InMemory: b.recent,
		LiteFree: func(group, queue string) { b.Lite.Free(group, queue) },
		Left:     func(group, topic string) bool { return b.Admin.Left(group, topic) },
		Retry:    b.Publish.Retry, DeadLetter: b.Publish.DeadLetter, Broker: o.Broker, Events: b.popEvents(o), Log: o.Log})
	if err != nil {
		return err
	}
	b.Lite = lite.New(lite.Options{Pop: b.Pop, Store: b.engine, Offsets: b.Offsets, LongPoll: b.LongPoll, Topics: b.Topics, Groups: b.Groups,
		Clock: o.Clock, Broker: o.Broker, Events: o.Events.Lite, Log: o.Log})
	b.Admin, err = admin.Open(admin.Options{Config: o.Broker, State: b.State, Store: b.engine, CommitLog: b.engine, Files: b.engine, Topics: b.Topics,
		Groups: b.Groups, Offsets: b.Offsets, Clients: b.Clients, Locks: b.Locks, Publish: b.Publish, Pop: b.Pop, Wake: b.wake,
		ModesChanged: func() { b.export(modesFile) }, Version: o.Version, Log: o.Log})
	return err
}

// announceMade is for topics that a send has made.
func announceMade(o *Options) func(topics []string, known func()) {
	if o.Announce == nil || o.Spread == nil {
		return o.Announce
	}
	return func(topics []string, known func()) {
		if !slices.ContainsFunc(topics, names.IsRetry) { // a heartbeat makes those
			o.Spread(topics)
		}
		o.Announce(topics, known)
	}
}

func (b *Broker) storeOptions(o *Options, levels publish.Levels) storage.Options {
	sc := o.StoreConfig.Get()
	s := storage.Options{
		FS: o.FS, Dir: o.Dir,
		LogSegmentSize: sc.MappedFileSizeCommitLog, QueueFileEntries: int(sc.MappedFileSizeConsume / 20),
		IndexSlots: int(sc.MaxHashSlotNum), IndexEntries: int(sc.MaxIndexNum), MaxMessageSize: config.LargestMessage, RecordCRC: sc.EnabledAppendPropCRC,
		FlushInterval: time.Duration(sc.FlushIntervalCommitLog) * time.Millisecond,
		StoreHost:     o.StoreHost, DelayLevels: levels, Clock: o.Clock,
		Retention: func() storage.Retention { return retention(o.Tune.Retention, o.StoreConfig.Get()) },
		Birth:     b.Topics.Birth, OnDispatch: b.dispatched, Settle: b.settle, Full: b.State.Full, BeforeDelete: func(ctx context.Context, _, end int64) error {
			return errors.Join(b.Timer.Keep(end), b.Wheel.Move(ctx, end), b.Txn.Keep(end))
		},
		Rounds: &b.rounds, Log: o.Log, Events: b.storageEvents(o),
		QueryRecords: o.Tune.QueryRecords,
		Lights:       b.State.Shelf(state.LightQueues), MaxLights: func() int { return maxLights(o.StoreConfig.Get()) },
		ExportLights: func() bool { return o.StoreConfig.Get().LightQueuesForApache },
	}
	if sc.FlushDiskType == "SYNC_FLUSH" {
		s.Flush = storage.Sync
	}
	if o.Tune.IndexSlots > 0 {
		s.IndexSlots, s.IndexEntries = o.Tune.IndexSlots, o.Tune.IndexEntries
	}
	return s
}

// lightsOn reports whether messages get into further queues beside their own.
func lightsOn(sc *config.Store) bool { return sc.EnableLmq && sc.EnableMultiDispatch }

// maxLights is how many such queues there may be; 0 for any number.
func maxLights(sc *config.Store) int {
	if !sc.EnableLmqQuota {
		return 0
	}
	return int(sc.MaxLmqConsumeQueueNum)
}

// retention takes what tuned leaves open from the settings.
func retention(tuned storage.Retention, sc *config.Store) storage.Retention {
	r := tuned
	if r.MaxAge == 0 {
		r.MaxAge = time.Duration(sc.FileReservedTime) * time.Hour
	}
	if r.CleanPercent == 0 {
		r.CleanPercent = int(sc.DiskMaxUsedSpaceRatio)
	}
	r.RefuseWhenFull = r.RefuseWhenFull || !sc.CleanFileForciblyEnable
	if r.DeleteWhen == nil {
		r.DeleteWhen, _ = config.Hours(sc.DeleteWhen) // was sound when it was set
	}
	return r
}

// reconcile brings what the tables say back into what recovery has found (P4).
func (b *Broker) reconcile() error {
	born, err := b.Topics.Clamp(b.Store.LogEnd())
	if err != nil {
		return err
	}
	if born > 0 {
		b.log.Warn("topics were born beyond the log's end", "moved", born)
	}
	moved := b.Offsets.Clamp(func(topic string, queue int32) (low, high int64) {
		return b.Store.MinOffset(topic, queue), b.Store.MaxOffset(topic, queue)
	})
	if moved > 0 {
		b.log.Warn("consumer offsets were outside their queues", "moved", moved)
	}
	timers := b.Timer.Clamp()
	if err := b.Wheel.Clamp(); err != nil {
		return fmt.Errorf("bring the index of the timers up to their queue: %w", err)
	}
	halves, err := b.Txn.Clamp()
	if err != nil {
		return err
	}
	if err := b.Admin.Sweep(b.Store.Topics()); err != nil {
		return err
	}
	b.Admin.Resume()
	b.dropHomeless()
	dropped, err := b.Pop.DropBeyond()
	if dropped.Windows > 0 {
		b.log.Warn("POP progress was beyond the end of its queues", "queues", dropped.Windows, "messages", dropped.Messages)
	}
	if err != nil {
		return err
	}
	if born+moved+timers+halves+dropped.Windows > 0 {
		// Before anything is appended where they pointed: with the next power cut they would
		// point there again, now past messages that nobody has had.
		if err := errors.Join(b.Offsets.Flush(), b.State.Sync()); err != nil {
			return fmt.Errorf("store what recovery has corrected: %w", err)
		}
	}
	return b.takeOver()
}

// recent reports whether a queue's first message is near the log's end.
func (b *Broker) recent(topic string, queueID int32) bool {
	res := b.engine.Read(storage.ReadRequest{Topic: topic, QueueID: queueID, Offset: 0, MaxMessages: 1})
	defer res.Release()
	return len(res.Records) == 0 || b.engine.LogMax()-res.Records[0].PhysicalOffset < recentBytes
}

// abandon closes what a failed Open had opened.
func (b *Broker) abandon() error {
	var errs []error
	if b.Pop != nil {
		b.Pop.Close()
	}
	if b.Lite != nil {
		b.Lite.Close()
	}
	if b.Store != nil {
		errs = append(errs, b.Store.Close())
	}
	if b.State != nil {
		errs = append(errs, b.State.Close())
	}
	return errors.Join(errs...)
}

func (b *Broker) logEnd() int64 {
	if b.engine.Engine == nil {
		return 0
	}
	return b.engine.LogEnd()
}

// syncLog makes the log durable before the state is, so that after a power cut the state
// never knows more than the log.
func (b *Broker) syncLog() error {
	if e := b.synced.Load(); e != nil {
		return e.Sync()
	}
	return nil
}

// settle makes durable what dispatch has changed in the state, before the store forgets
// that it was dispatched.
func (b *Broker) settle() error {
	b.Wheel.Settle()
	batch := b.State.NewBatch()
	saved := b.Txn.Save(batch)
	err := b.State.Commit(batch)
	saved(err)
	if err != nil {
		return err
	}
	return b.State.Sync()
}

func (b *Broker) groupLimits(name string) (publish.GroupLimits, error) {
	g, err := b.Groups.GetOrCreate(name)
	if err != nil {
		return publish.GroupLimits{}, err
	}
	return publish.GroupLimits{RetryQueues: g.RetryQueues, RetryMaxTimes: g.RetryMaxTimes}, nil
}

func (b *Broker) timerRules() publish.TimerRules {
	sc := b.StoreConfig.Get()
	return publish.TimerRules{Enabled: sc.TimerWheelEnable, MaxDelaySec: sc.TimerMaxDelaySec}
}

// forbidden reports whether a group may not read a topic by command (353).
func (b *Broker) forbidden(name, topic string) bool {
	return b.Groups.Forbidden(name, topic)&group.ForbiddenRead != 0
}

// wake has the requests that wait for messages of a topic look again: a command has moved
// their group's offset.
func (b *Broker) wake(topic string) {
	b.LongPoll.WakeIf(func(w *longpoll.Waiter) bool { return w.Key.Topic == topic })
	if names.IsLite(topic) {
		b.Lite.Arrived(topic)
	}
}

// topicsChanged tells the name servers, and ends the waiting for what is gone.
func (b *Broker) topicsChanged(o *Options, changed []string) {
	b.export(topicsFile)
	if o.TopicsChanged != nil {
		o.TopicsChanged(changed)
	}
	for _, name := range changed {
		if b.gone(name) {
			b.dropPopped(name)
			b.Timer.Gone()
			b.Wheel.Gone(name)
			b.LongPoll.WakeIf(func(w *longpoll.Waiter) bool { return w.Key.Topic == name })
		}
	}
}

func (b *Broker) gone(topic string) bool { _, ok := b.Topics.Get(topic); return !ok }

// dropPopped ends what POP knows of a topic. While it is not opened yet, because another server's
// table replaces ours, dropHomeless will.
func (b *Broker) dropPopped(topic string) {
	if b.Pop == nil {
		return
	}
	batch := b.State.NewBatch()
	b.Pop.DropTopic(topic, batch)
	b.State.CommitAsync(batch, nil)
}

// dropHomeless ends what POP knows of topics that are gone.
func (b *Broker) dropHomeless() {
	topics := make(map[string]struct{})
	for _, f := range b.Pop.Figures(nil) {
		if parent, _, ok := names.OfLite(f.Topic); ok {
			f.Topic = parent
		}
		topics[f.Topic] = struct{}{}
	}
	for topic := range topics {
		if b.gone(topic) {
			b.dropPopped(topic)
		}
	}
}

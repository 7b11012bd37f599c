// Package brokertest opens whole brokers for tests: small files on a memory file system,
// loops running, and the whole check when the test ends; and it runs transcripts against
// them.
//
// Invariants: a broker that a test opens here is stopped, checked and closed with the
// test; a crash leaves what was written and nothing that was only in memory.
// Neighbours: tests of the broker's domains and of its fronts.
package brokertest

import (
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/lifecycle"
)

// Host is the store host of every broker here.
var Host = netip.MustParseAddrPort("127.0.0.1:10911")

// Options are what a test may want to have otherwise. The zero value will do.
type Options struct {
	FS    *vfs.MemFS // nil: a new, crashable one
	Clock *clock.Clock
	Tune  func(*config.Broker, *config.Store)
	// NearTimers is how many timers are kept in memory; 0: as many as a server keeps.
	NearTimers int
	// Wrap is put between the broker and its file system; nil: nothing.
	Wrap func(*vfs.MemFS) vfs.FS
	// Check has the whole check run when the broker is opened, too.
	Check bool
	Log   *slog.Logger
}

// Broker is an open broker whose loops run.
type Broker struct {
	*broker.Broker
	t     testing.TB
	o     Options
	group *lifecycle.Group
	ended bool
}

// Open opens a broker and starts its loops.
func Open(t testing.TB, o Options) *Broker {
	t.Helper()
	if o.FS == nil {
		o.FS = vfs.NewCrashableMem()
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	bc, sc := config.DefaultBroker(), config.DefaultStore()
	sc.MappedFileSizeCommitLog, sc.MappedFileSizeConsume, sc.MaxMessageSize = 1<<20, 20*256, 32<<10
	if o.Tune != nil {
		o.Tune(&bc, &sc)
	}
	var fs vfs.FS = o.FS
	if o.Wrap != nil {
		fs = o.Wrap(o.FS)
	}
	opened, err := broker.Open(broker.Options{FS: fs, Log: o.Log, Dir: "data", Broker: config.NewLive(bc), StoreConfig: config.NewLive(sc),
		StoreHost: Host, Clock: o.Clock, Tune: broker.Tuning{IndexSlots: 100, IndexEntries: 1000, MaxWaiting: 1000, NearTimers: o.NearTimers, WheelSlots: 10_000, TimerLog: 2000}})
	if err != nil {
		t.Fatal(err)
	}
	if o.Check {
		if err := opened.Check(); err != nil {
			t.Fatal(err)
		}
	}
	b := &Broker{Broker: opened, t: t, o: o, group: lifecycle.New(slog.New(slog.DiscardHandler))}
	for _, l := range b.Loops() {
		b.group.Go(l.Name, l.Run)
	}
	t.Cleanup(b.Stop)
	return b
}

// Stop is a clean stop. Later calls do nothing.
func (b *Broker) Stop() {
	b.t.Helper()
	if b.ended {
		return
	}
	b.ended = true
	b.Quiesce()
	if err := b.group.Stop(); err != nil {
		b.t.Errorf("a loop failed: %v", err)
	}
	if err := b.Check(); err != nil {
		b.t.Error(err)
	}
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
}

// Restart stops the broker in order and opens it again on the same files.
func (b *Broker) Restart() *Broker {
	b.t.Helper()
	return b.RestartAt(b.o.Clock)
}

// RestartAt is Restart with another clock, as a process has that begins.
func (b *Broker) RestartAt(c *clock.Clock) *Broker {
	b.t.Helper()
	b.Stop()
	b.o.Clock = c
	return Open(b.t, b.o)
}

// Kill opens a second broker on what a killed process would leave now: all that was
// written, synced or not. The first goes on on its own files until the test ends.
func (b *Broker) Kill() *Broker {
	b.t.Helper()
	return b.KillAt(b.o.Clock)
}

// KillAt is Kill with another clock for the second broker.
func (b *Broker) KillAt(c *clock.Clock) *Broker {
	b.t.Helper()
	o := b.o
	o.Clock = c
	o.FS = b.o.FS.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(1, 2))})
	return Open(b.t, o)
}

// PowerCut is Kill with what was not synced lost, or kept in part, as seed decides.
func (b *Broker) PowerCut(seed uint64) *Broker {
	b.t.Helper()
	o := b.o
	rng := rand.New(rand.NewPCG(seed, seed))
	o.FS = b.o.FS.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	return Open(b.t, o)
}

// Dispatched waits until everything that was appended can be read.
func (b *Broker) Dispatched() {
	b.t.Helper()
	Until(b.t, "dispatch", func() bool { return b.Store.LogMax() >= b.Store.LogEnd() })
}

// Until polls a condition for a generous time.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

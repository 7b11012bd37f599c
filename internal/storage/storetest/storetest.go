// Package storetest opens stores for tests: small files, in memory unless told otherwise,
// loops running, and checked when the test ends.
//
// Invariants: a store that a test opens through Open is stopped, checked and closed with
// the test. Neighbours: tests of storage and of everything that stands on it.
package storetest

import (
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/lifecycle"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Store is an open store whose loops run.
type Store struct {
	*storage.Engine
	t     testing.TB
	group *lifecycle.Group
	once  sync.Once
}

// Small fills in sizes that suit a memory file system, which really holds every byte.
func Small(o storage.Options) storage.Options {
	if o.FS == nil {
		o.FS = vfs.NewMem()
	}
	if o.Dir == "" {
		o.Dir = "store"
	}
	if o.LogSegmentSize == 0 {
		o.LogSegmentSize = 64 << 10
	}
	if o.QueueFileEntries == 0 {
		o.QueueFileEntries = 64
	}
	if o.IndexSlots == 0 {
		o.IndexSlots = 100
	}
	if o.IndexEntries == 0 {
		o.IndexEntries = 400
	}
	if o.CheckpointInterval == 0 {
		o.CheckpointInterval = 20 * time.Millisecond
	}
	if o.FlushInterval == 0 {
		o.FlushInterval = 5 * time.Millisecond
	}
	return o
}

// Open opens a store and starts its loops. When the test ends it is stopped, checked and
// closed.
func Open(t testing.TB, o storage.Options) *Store {
	t.Helper()
	s, err := TryOpen(t, o)
	if err != nil {
		t.Fatalf("opening the store: %v", err)
	}
	t.Cleanup(func() { s.CloseChecked() })
	return s
}

// TryOpen is Open without the end: the test stops the store itself.
func TryOpen(t testing.TB, o storage.Options) (*Store, error) {
	return TryOpenLarge(t, Small(o))
}

// TryOpenLarge is TryOpen with the sizes that the options say, or the real ones.
func TryOpenLarge(t testing.TB, o storage.Options) (*Store, error) {
	e, err := storage.Open(o)
	if err != nil {
		return nil, err
	}
	s := &Store{Engine: e, t: t, group: lifecycle.New(slog.New(slog.DiscardHandler))}
	for _, l := range e.Loops() {
		s.group.Go(l.Name, l.Run)
	}
	return s, nil
}

// CloseChecked stops, checks and closes the store; later calls do nothing.
func (s *Store) CloseChecked() {
	s.t.Helper()
	s.once.Do(func() {
		if err := s.group.Stop(); err != nil {
			s.t.Errorf("stopping the store: %v", err)
		}
		if err := s.Check(); err != nil {
			s.t.Errorf("%v", err)
		}
		if err := s.Close(); err != nil {
			s.t.Errorf("closing the store: %v", err)
		}
	})
}

// Abandon stops the loops and leaves the files as they are, as a killed process would.
func (s *Store) Abandon() {
	s.once.Do(func() { _ = s.group.Stop() })
}

// StopClose stops and closes the store, however broken it is, and returns what it said.
func (s *Store) StopClose() (err error) {
	s.once.Do(func() {
		err = s.group.Stop()
		if cerr := s.Close(); err == nil {
			err = cerr
		}
	})
	return err
}

// Append appends m and waits for the answer.
func (s *Store) Append(m *message.Message) (storage.Placed, error) {
	type answer struct {
		placed storage.Placed
		err    error
	}
	c := make(chan answer, 1)
	s.Engine.Append(m, func(p storage.Placed, err error) { c <- answer{p, err} })
	a := <-c
	return a.placed, a.err
}

// MustAppend is Append that must succeed.
func (s *Store) MustAppend(m *message.Message) storage.Placed {
	s.t.Helper()
	p, err := s.Append(m)
	if err != nil {
		s.t.Fatalf("append: %v", err)
	}
	return p
}

// AwaitDispatch waits until everything that is complete so far can be read.
func (s *Store) AwaitDispatch(end int64) {
	s.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); s.LogMax() < end; {
		if time.Now().After(deadline) {
			s.t.Fatalf("dispatched up to %d, waiting for %d", s.LogMax(), end)
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// Message is a message with a body of size bytes, a tag, a unique key and a key.
func Message(topic string, queue int32, n int, size int) *message.Message {
	body := make([]byte, size)
	copy(body, fmt.Sprintf("%s/%d/%d ", topic, queue, n))
	return &message.Message{
		Topic: topic, QueueID: queue, Body: body, BornTimestamp: time.Now().UnixMilli(),
		BornHost:   netip.MustParseAddrPort("127.0.0.1:5000"),
		Properties: message.Properties(fmt.Sprintf("UNIQ_KEY\x01%s-%d-%d\x02KEYS\x01k%d all\x02TAGS\x01t%d\x02", topic, queue, n, n, n%3)),
	}
}

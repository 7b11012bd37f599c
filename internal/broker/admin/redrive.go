package admin

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// ErrRedriving says that the same dead letter is being redriven by somebody else.
var ErrRedriving = errors.New("the dead letter is being redriven by another request")

// Redriver publishes dead letters again.
type Redriver interface {
	Redrive(r publish.Redrive, done func(topic string, err error))
}

// letter names a dead letter.
type letter struct {
	topic  string // %DLQ%group
	queue  int32
	offset int64
}

// redriven is which dead letters were redriven: a bit each, 512 to an entry of the state.
// A letter's bit is set when its copy is dispatched, in recovery too, so that it has one
// copy whatever crashes; until then it is in flight.
//
// mu is held across reads of the state, never across an append or a commit.
type redriven struct {
	mu      sync.Mutex
	chunks  map[string]*[chunkBytes]byte // what was looked at, by key of the state
	flying  map[letter]struct{}
	pending int // changes that are not known to be in the state
}

const (
	chunkBytes  = 64
	mostChunks  = 1024 // kept in memory
	redrivePart = "dlq"
)

// key is topic, 0, queue (4 bytes), offset / 512 (8 bytes), all big endian.
func (l letter) key() []byte {
	b := append(make([]byte, 0, len(l.topic)+13), l.topic...)
	b = binary.BigEndian.AppendUint32(append(b, 0), uint32(l.queue))
	return binary.BigEndian.AppendUint64(b, uint64(l.offset/(chunkBytes*8)))
}

func (l letter) bit() (at int, mask byte) {
	n := l.offset % (chunkBytes * 8)
	return int(n / 8), 1 << (n % 8)
}

// source is the name that a copy carries.
func (l letter) source() string {
	return fmt.Sprint(redrivePart, "/", l.queue, "/", l.offset, "/", l.topic)
}

func parseLetter(source string) (letter, bool) {
	parts := strings.SplitN(source, "/", 4)
	if len(parts) != 4 || parts[0] != redrivePart {
		return letter{}, false
	}
	queue, err1 := strconv.ParseInt(parts[1], 10, 32)
	offset, err2 := strconv.ParseInt(parts[2], 10, 64)
	return letter{parts[3], int32(queue), offset}, err1 == nil && err2 == nil && offset >= 0
}

// Redrive gives a dead letter of a group another life, once: before tells that an earlier
// request has. With ask nothing is done but that. to is where the copy goes.
func (a *Admin) Redrive(group string, queue int32, offset int64, toTopic, ask bool, done func(before bool, to string, err error)) {
	l := letter{names.DeadLetter(group), queue, offset}
	m, err := a.deadLetter(l)
	if err != nil {
		done(false, "", err)
		return
	}
	before, err := a.claim(l, ask)
	if err != nil || before || ask {
		done(before, "", err)
		return
	}
	r := publish.Redrive{Message: m, Group: group, ToTopic: toTopic, Source: l.source(), Left: func() { a.Dispatched(l.source()) }}
	a.o.Publish.Redrive(r, func(to string, err error) {
		if err != nil {
			a.release(l)
		}
		done(false, to, err)
	})
}

// deadLetter reads a dead letter.
func (a *Admin) deadLetter(l letter) (*message.Message, error) {
	entries, err := a.o.Store.Entries(l.topic, l.queue, l.offset, 1)
	if err == nil && len(entries) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("dead letter %d in queue %d of %s: %w", l.offset, l.queue, l.topic, err)
	}
	record, err := a.o.CommitLog.ReadAt(entries[0].PhysicalOffset)
	if err != nil {
		return nil, fmt.Errorf("dead letter %d in queue %d of %s: %w", l.offset, l.queue, l.topic, err)
	}
	m := new(message.Message)
	if _, err := message.DecodeStored(record, m); err != nil {
		return nil, fmt.Errorf("dead letter %d in queue %d of %s: %w", l.offset, l.queue, l.topic, err)
	}
	return m, nil
}

// claim tells whether a letter was redriven, and unless ask marks it as in flight.
func (a *Admin) claim(l letter, ask bool) (before bool, err error) {
	a.redriven.mu.Lock()
	defer a.redriven.mu.Unlock()
	chunk, err := a.redriven.chunkOf(a.o.State, l)
	if err != nil {
		return false, err
	}
	if at, mask := l.bit(); chunk[at]&mask != 0 {
		return true, nil
	}
	if _, flying := a.redriven.flying[l]; flying {
		return false, fmt.Errorf("%w: %d in queue %d of %s", ErrRedriving, l.offset, l.queue, l.topic)
	}
	if !ask {
		a.redriven.flying[l] = struct{}{}
	}
	return false, nil
}

func (a *Admin) release(l letter) {
	a.redriven.mu.Lock()
	defer a.redriven.mu.Unlock()
	delete(a.redriven.flying, l)
}

// chunkOf returns the bits around a letter; mu is held.
func (r *redriven) chunkOf(db *state.DB, l letter) (*[chunkBytes]byte, error) {
	key := l.key()
	if c := r.chunks[string(key)]; c != nil {
		return c, nil
	}
	c := new([chunkBytes]byte)
	if db != nil {
		v, ok, err := db.Get(state.Redriven, key)
		if err != nil {
			return nil, fmt.Errorf("what was redriven of %s: %w", l.topic, err)
		}
		if ok {
			copy(c[:], v)
		}
	}
	if r.chunks == nil {
		r.chunks, r.flying = make(map[string]*[chunkBytes]byte), make(map[letter]struct{})
	}
	if len(r.chunks) >= mostChunks && len(r.flying)+r.pending == 0 {
		clear(r.chunks) // all of it is in the state
	}
	r.chunks[string(key)] = c
	return c, nil
}

// Dispatched notes that the copy of a dead letter is in its queue. It reports whether
// source is a dead letter's name. The store's dispatcher calls it, one after the other.
func (a *Admin) Dispatched(source string) bool {
	l, ok := parseLetter(source)
	if !ok {
		return false
	}
	bits, err := a.redriven.note(a.o.State, l)
	if err != nil {
		a.o.Log.Error("a redriven dead letter could not be noted", "topic", l.topic, "queue", l.queue, "offset", l.offset, "err", err)
		return true
	}
	if a.o.State != nil {
		b := a.o.State.NewBatch()
		b.Put(state.Redriven, l.key(), bits[:])
		a.o.State.CommitAsync(b, a.noted) // may call it at once, so not under the lock
	}
	return true
}

// note sets a letter's bit and returns the bits around it.
func (r *redriven) note(db *state.DB, l letter) (bits [chunkBytes]byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	chunk, err := r.chunkOf(db, l)
	if err != nil {
		return bits, err
	}
	at, mask := l.bit()
	chunk[at] |= mask
	delete(r.flying, l)
	r.pending++
	return *chunk, nil
}

// noted is told how the commit of a change went. One that failed stays pending: what is in
// memory is the only place that knows.
func (a *Admin) noted(err error) {
	if err != nil {
		a.o.Log.Error("a redriven dead letter could not be noted", "err", err)
		return
	}
	a.redriven.mu.Lock()
	a.redriven.pending--
	a.redriven.mu.Unlock()
}

// dropRedriven forgets what was redriven of a topic that is deleted.
func (a *Admin) dropRedriven(topic string, b *state.Batch) {
	if !names.IsDeadLetter(topic) {
		return
	}
	a.redriven.mu.Lock()
	defer a.redriven.mu.Unlock()
	prefix := topic + "\x00"
	for key := range a.redriven.chunks {
		if strings.HasPrefix(key, prefix) {
			delete(a.redriven.chunks, key)
		}
	}
	b.DeletePrefix(state.Redriven, []byte(prefix))
}

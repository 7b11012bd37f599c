package admin

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

type modeKey struct{ topic, group string }

// Mode is how a group gets the messages of a topic.
type Mode struct {
	Pop         bool
	ShareQueues int32 // of how many other clients' queues a popping client pops, too; ≤ 0 = all
}

// The keys of the keyspace state.PopModes: topic, 0, group → 1 byte mode, 4 bytes share.
const (
	modePull byte = iota
	modePop
	modeLeft // pulls now and popped before
)

func storeKey(k modeKey) []byte {
	return append(append(append([]byte{}, k.topic...), 0), k.group...)
}

func (a *Admin) loadModes() error {
	return a.o.State.Scan(state.PopModes, nil, func(k, v []byte) error {
		topic, group, ok := bytes.Cut(k, []byte{0})
		if !ok || len(v) != 5 {
			return fmt.Errorf("%q is malformed", k)
		}
		mk := modeKey{string(topic), string(group)}
		a.modes.of[mk] = Mode{v[0] == modePop, int32(binary.BigEndian.Uint32(v[1:]))}
		a.leftLocked(mk, v[0] == modeLeft)
		return nil
	})
}

func (a *Admin) leftLocked(k modeKey, left bool) {
	if left {
		a.modes.left[k] = true
	} else {
		delete(a.modes.left, k)
	}
	a.leaving.Store(int32(len(a.modes.left)))
}

// Left reports whether a group was switched over from POP to pulling a topic, so that what
// POP still has of it belongs in the group's own retry topic.
func (a *Admin) Left(group, topic string) bool {
	if a.leaving.Load() == 0 {
		return false
	}
	a.modes.RLock()
	defer a.modes.RUnlock()
	return a.modes.left[modeKey{topic, group}]
}

// Resume goes on with switches from POP to pull that an earlier process has begun.
func (a *Admin) Resume() {
	a.modes.RLock()
	defer a.modes.RUnlock()
	for k := range a.modes.left {
		a.o.Pop.Leave(k.group, k.topic)
	}
}

// Popped is told that a client pops which asks for no assignment: one of a proxy. A group
// that was switched over to pull, but consumes in this way, pops.
func (a *Admin) Popped(group, topic string) {
	if !a.Left(group, topic) {
		return
	}
	k := modeKey{topic, group}
	a.modes.Lock()
	b := a.o.State.NewBatch()
	b.Put(state.PopModes, storeKey(k), encodeMode(a.modes.of[k], false))
	a.leftLocked(k, false)
	a.modes.Unlock()
	a.o.State.CommitAsync(b, nil)
}

// Mode returns how a group gets the messages of a topic.
func (a *Admin) Mode(topic, group string) Mode {
	a.modes.RLock()
	m, ok := a.modes.of[modeKey{topic, group}]
	a.modes.RUnlock()
	if ok {
		return m
	}
	c := a.o.Config.Get()
	if names.IsRetry(topic) || c.DefaultMessageRequestMode != remoting.ModePop {
		return Mode{}
	}
	return Mode{true, c.DefaultPopShareQueueNum}
}

// SetMode sets how a group gets the messages of a topic. Its members are told to ask for
// their assignments anew. When it goes over from POP to pull, what POP still has of the
// topic moves to the group's own retry topic; the other way, POP goes on from the consumer
// offset.
func (a *Admin) SetMode(topicName, groupName string, m Mode) error {
	if names.IsRetry(topicName) {
		return fmt.Errorf("%w: %s", ErrRetryTopic, topicName)
	}
	if _, ok := a.o.Topics.Get(topicName); !ok {
		return fmt.Errorf("%w: %s", topic.ErrNotFound, topicName)
	}
	if _, ok := a.o.Groups.Get(groupName); !ok {
		return fmt.Errorf("%w: %s", group.ErrNotFound, groupName)
	}
	k := modeKey{topicName, groupName}
	left := !m.Pop && (a.Mode(topicName, groupName).Pop || a.Left(groupName, topicName))
	b := a.o.State.NewBatch()
	b.Put(state.PopModes, storeKey(k), encodeMode(m, left))
	if err := a.o.State.Commit(b); err != nil {
		return fmt.Errorf("store request mode: %w", err)
	}
	a.modes.Lock()
	a.modes.of[k] = m
	a.leftLocked(k, left)
	a.modes.Unlock()
	a.modesChanged()
	if left && a.o.Pop != nil {
		a.o.Pop.Leave(groupName, topicName)
	}
	a.o.Clients.Reassign(groupName)
	return nil
}

// dropModes forgets modes as a part of the caller's batch.
func (a *Admin) dropModes(b *state.Batch, match func(modeKey) bool) {
	a.modes.Lock()
	defer a.modes.Unlock()
	for k := range a.modes.of {
		if match(k) {
			b.Delete(state.PopModes, storeKey(k))
			delete(a.modes.of, k)
			a.leftLocked(k, false)
			defer a.modesChanged()
		}
	}
}

func (a *Admin) modesChanged() {
	if a.o.ModesChanged != nil {
		a.o.ModesChanged()
	}
}

// Modes is all modes in the protocol's form: answer to request 402 and Apache's
// messageRequestMode.json.
func (a *Admin) Modes() remoting.MessageRequestModes {
	out := remoting.MessageRequestModes{Modes: make(map[string]map[string]remoting.SetMessageRequestModeBody)}
	a.modes.RLock()
	defer a.modes.RUnlock()
	for k, m := range a.modes.of {
		of := out.Modes[k.topic]
		if of == nil {
			of = make(map[string]remoting.SetMessageRequestModeBody)
			out.Modes[k.topic] = of
		}
		mode := remoting.ModePull
		if m.Pop {
			mode = remoting.ModePop
		}
		of[k.group] = remoting.SetMessageRequestModeBody{Topic: k.topic, ConsumerGroup: k.group, Mode: mode, PopShareQueueNum: m.ShareQueues}
	}
	return out
}

// ExportModes is the text of messageRequestMode.json.
func (a *Admin) ExportModes() ([]byte, error) {
	modes := a.Modes()
	return append(remoting.Marshal(&modes), '\n'), nil
}

// ImportModes replaces all modes by those of a messageRequestMode.json.
func ImportModes(db *state.DB, text []byte) error {
	var in remoting.MessageRequestModes
	if err := remoting.Unmarshal(text, &in); err != nil {
		return fmt.Errorf("read request modes: %w", err)
	}
	if in.Modes == nil {
		return fmt.Errorf("read request modes: there is no messageRequestModeMap")
	}
	b := db.NewBatch()
	b.DeletePrefix(state.PopModes, nil)
	for topic, groups := range in.Modes {
		for group, m := range groups {
			b.Put(state.PopModes, storeKey(modeKey{topic, group}), encodeMode(Mode{m.Mode == remoting.ModePop, m.PopShareQueueNum}, false))
		}
	}
	if err := db.Commit(b); err != nil {
		return fmt.Errorf("store request modes: %w", err)
	}
	return nil
}

func encodeMode(m Mode, left bool) []byte {
	v := binary.BigEndian.AppendUint32([]byte{modePull}, uint32(m.ShareQueues))
	switch {
	case m.Pop:
		v[0] = modePop
	case left:
		v[0] = modeLeft
	}
	return v
}

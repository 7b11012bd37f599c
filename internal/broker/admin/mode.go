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

func storeKey(k modeKey) []byte {
	return append(append(append([]byte{}, k.topic...), 0), k.group...)
}

func (a *Admin) loadModes() error {
	return a.o.State.Scan(state.PopModes, nil, func(k, v []byte) error {
		topic, group, ok := bytes.Cut(k, []byte{0})
		if !ok || len(v) != 5 {
			return fmt.Errorf("%q is malformed", k)
		}
		a.modes.of[modeKey{string(topic), string(group)}] = Mode{v[0] == 1, int32(binary.BigEndian.Uint32(v[1:]))}
		return nil
	})
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

// SetMode sets how a group gets the messages of a topic.
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
	b := a.o.State.NewBatch()
	b.Put(state.PopModes, storeKey(k), encodeMode(m))
	if err := a.o.State.Commit(b); err != nil {
		return fmt.Errorf("store request mode: %w", err)
	}
	a.modes.Lock()
	a.modes.of[k] = m
	a.modes.Unlock()
	a.modesChanged()
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
			b.Put(state.PopModes, storeKey(modeKey{topic, group}), encodeMode(Mode{m.Mode == remoting.ModePop, m.PopShareQueueNum}))
		}
	}
	if err := db.Commit(b); err != nil {
		return fmt.Errorf("store request modes: %w", err)
	}
	return nil
}

func encodeMode(m Mode) []byte {
	v := binary.BigEndian.AppendUint32([]byte{0}, uint32(m.ShareQueues))
	if m.Pop {
		v[0] = 1
	}
	return v
}

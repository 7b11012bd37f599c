package publish

import (
	"errors"
	"fmt"
	"strings"

	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Errors of messages for further queues.
var (
	// ErrLightsOff: enableLmq or enableMultiDispatch is off.
	ErrLightsOff = errors.New("the broker serves no lite topics")
	// ErrLiteTopic: the lite topic or its parent is not what it has to be.
	ErrLiteTopic = errors.New("illegal lite topic")
)

// settleLights finds the further queues that a message gets into beside its own: that of its
// lite topic, or those that it names itself, as far as the broker serves that.
func (t *traits) settleLights(m *message.Message, cfg *topic.Config, on bool) error {
	if !names.MayHaveLights(m.Topic) {
		return nil // it has been there
	}
	switch {
	case t.hasLite:
		if err := checkLite(t.lite, cfg); err != nil {
			return err
		}
		if !on {
			return fmt.Errorf("%w: enableLmq and enableMultiDispatch must both be true", ErrLightsOff)
		}
		if t.level > 0 || t.timer || t.transaction {
			return fmt.Errorf("%w: a message for lite topic %s can't be delayed and can't be in a transaction", ErrLiteTopic, t.lite)
		}
		t.lights = []string{names.Lite(m.Topic, t.lite)}
		m.Properties = m.Properties.Without(message.PropertyInnerMultiDispatch).With(message.PropertyInnerMultiDispatch, t.lights[0])
	case t.multi != "" && on:
		t.lights = strings.Split(t.multi, ",")
		for _, name := range t.lights {
			if !names.IsLight(name) {
				continue
			}
			if err := names.CheckLight(name); err != nil {
				return fmt.Errorf("%w: property %s: %w", ErrMessageIllegal, message.PropertyInnerMultiDispatch, err)
			}
			if names.IsLite(name) {
				return fmt.Errorf("%w: property %s: %s is the queue of a lite topic, which property %s names", ErrMessageIllegal,
					message.PropertyInnerMultiDispatch, name, message.PropertyLiteTopic)
			}
		}
	}
	return nil
}

func checkLite(lite string, cfg *topic.Config) error {
	if err := names.CheckLite(lite); err != nil {
		return fmt.Errorf("%w: property %s: %w", ErrLiteTopic, message.PropertyLiteTopic, err)
	}
	if kind := cfg.MessageType(); kind != "LITE" {
		return fmt.Errorf("%w: %s has the message type %s, and only a topic with message.type LITE has lite topics; this message names %s in property %s",
			ErrLiteTopic, cfg.Name, kind, lite, message.PropertyLiteTopic)
	}
	return nil
}

// append stores m where it belongs: in its topic, and in the further queues that it names.
func (p *Publisher) append(m *message.Message, lights []string, held bool, done func(storage.Placed, error)) {
	switch {
	case len(lights) > 0 && names.MayHaveLights(m.Topic):
		p.o.Store.AppendLight(m, lights, held, done)
	case held:
		p.o.Store.AppendHeld(m, done)
	default:
		p.o.Store.Append(m, done)
	}
}

// lightsOf are the further queues of a message that was kept elsewhere until now. A copy for
// a retry or dead-letter topic has none: its first life was there.
func (p *Publisher) lightsOf(m *message.Message, t *traits) []string {
	if t.multi == "" && !t.placed {
		return nil
	}
	m.Properties = m.Properties.Without(message.PropertyInnerMultiQueueOffset)
	if !names.MayHaveLights(m.Topic) {
		if m.Topic != names.Schedule && m.Topic != names.WheelTimer {
			m.Properties = m.Properties.Without(message.PropertyInnerMultiDispatch)
		}
		return nil
	}
	if t.multi == "" || !p.o.Lights() {
		return nil
	}
	return strings.Split(t.multi, ",")
}

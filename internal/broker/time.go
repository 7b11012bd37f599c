package broker

import (
	"encoding/binary"
	"fmt"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
)

// metaClock is the protocol's time at the last clean stop. After a crash the newest stamps of the
// log and of POP say how far it was.
var metaClock = []byte("clock")

// wind has the clock go on from where the last process has left it, if the machine's was set back
// since: what waits has waited until then, and not for so much less.
func (b *Broker) wind(o *Options) error {
	b.Clock.Reach(storage.Reached(o.FS, o.Dir))
	v, ok, err := b.State.Get(state.Meta, metaClock)
	if err != nil {
		return fmt.Errorf("read the time of the last stop: %w", err)
	}
	if ok && len(v) == 8 {
		b.Clock.Reach(int64(binary.BigEndian.Uint64(v)))
	}
	return nil
}

// noteTime is for the next wind.
func (b *Broker) noteTime() error {
	batch := b.State.NewBatch()
	batch.Put(state.Meta, metaClock, binary.BigEndian.AppendUint64(nil, uint64(b.Clock.NowMilli())))
	if err := b.State.Commit(batch); err != nil {
		return fmt.Errorf("store the time of the stop: %w", err)
	}
	return nil
}

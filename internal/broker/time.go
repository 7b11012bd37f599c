package broker

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bolidemq/bolide/internal/clock"
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

// worthTelling is how much further the protocol's time is ahead when that is said again. POP
// alone has it be a second ahead after a quick restart.
const worthTelling = 5 * time.Second

// watchTime watches the clock until ctx ends, and says so when the machine's was set back.
func (b *Broker) watchTime(ctx context.Context) error {
	var told time.Duration
	return b.Clock.Watch(ctx, func(ahead time.Duration) {
		if ahead > told+worthTelling {
			b.tellAhead(ahead)
		}
		told = ahead
	})
}

func (b *Broker) tellAhead(ahead time.Duration) {
	remedy := "none is needed"
	if ahead > clock.Credible {
		remedy = "restart the broker, and its time is right at once"
	}
	b.log.Warn("the machine's clock was set back; delays and invisible times take as long as they were to, store times are ahead until it has caught up",
		"ahead", ahead, "for", clock.MakesUpIn(ahead), "remedy", remedy)
}

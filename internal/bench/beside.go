package bench

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Beside is what plain sends at a fixed rate met before the server had anything else to do,
// and during what is measured.
type Beside struct {
	Rate    int     `json:"per_second"`
	Before  Latency `json:"before_ms"`
	During  Latency `json:"during_ms"`
	Refused int64   `json:"refused"`
}

const (
	// besideCalm is for how long they are sent before anything else is.
	besideCalm = 5 * time.Second
	// besideLeast is the least time of what is measured.
	besideLeast = time.Second
	// besideLongest is how long a run may be.
	besideLongest = 15 * time.Minute
)

// traffic is these sends while they go on, over Remoting. A nil one is none.
type traffic struct {
	rate    int
	ledger  *ledger
	files   atomic.Pointer[hdrhistogram.Histogram] // where latencies go now, if anywhere
	before  histograms
	during  histograms
	end     chan struct{}
	sending *loops
}

// traffic starts plain sends to a topic of their own and returns when the calm is over.
func (o Options) traffic(ctx context.Context) (*traffic, error) {
	if o.Beside == 0 {
		return nil, nil
	}
	o.Topic, o.shape = "", shape{}
	t, err := o.prepare(ctx)
	if err != nil {
		return nil, err
	}
	b := &traffic{rate: o.Beside, end: make(chan struct{}), sending: newLoops()}
	o.Rate, o.Duration, o.until = o.Beside, besideLongest, b.end
	o.Count = o.paced()
	b.ledger = newLedger(o.Count)
	b.files.Store(b.before.one())
	b.sending.start(func() error {
		return publishRemoting(ctx, b.ledger, t, o, func(_ *conn, _ *remoting.Command, sent time.Time) error {
			if h := b.files.Load(); h != nil {
				record(h, time.Since(sent))
			}
			return nil
		})
	})
	err = pause(ctx, besideCalm)
	b.files.Store(nil)
	return b, err
}

// measured tells that what is measured begins. It returns when there is enough to tell of it.
func (b *traffic) measured(ctx context.Context) error {
	if b == nil {
		return nil
	}
	b.files.Store(b.during.one())
	return pause(ctx, besideLeast)
}

// stop ends the sends, at the end of what is measured.
func (b *traffic) stop() (*Beside, error) {
	if b == nil {
		return nil, nil
	}
	b.files.Store(nil)
	close(b.end)
	if err := b.sending.wait(); err != nil {
		return nil, err
	}
	return &Beside{Rate: b.rate, Before: b.before.latency(), During: b.during.latency(), Refused: b.ledger.refused.Load()}, nil
}

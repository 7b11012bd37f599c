package crash

import (
	"context"
	"testing"
	"time"

	"github.com/bolidemq/bolide/test/load"
)

const invisible = 3 * time.Second

// produce sends messages of growing numbers until the server is gone.
func produce(ctx context.Context, p load.Place, l *load.Ledger) {
	c, err := load.DialRemoting(ctx, p)
	if err != nil {
		return
	}
	defer c.Close()
	for ctx.Err() == nil {
		n := l.Next()
		ok, err := c.Send(n)
		if err != nil {
			return
		}
		if ok {
			l.Stored(n)
		}
	}
}

// consume receives and acknowledges. Under load it leaves every seventh delivery alone for its
// invisible time; to drain the topic it acknowledges all, and ends when none came for long.
func consume(ctx context.Context, t *testing.T, p load.Place, l *load.Ledger, drain bool) {
	c, err := load.DialRemoting(ctx, p)
	if err != nil {
		return
	}
	defer c.Close()
	seen, last, life := 0, time.Now(), l.Life()
	for ctx.Err() == nil {
		deliveries, err := c.Receive(16, invisible, 500*time.Millisecond)
		if err != nil {
			if ctx.Err() == nil && drain {
				t.Errorf("pop: %v", err)
			}
			return
		}
		if len(deliveries) > 0 {
			last = time.Now()
		} else if drain && time.Since(last) > 3*invisible {
			return
		}
		for _, d := range deliveries {
			l.Delivered(d.Number, d.Handle, c.Protocol(), life)
		}
		for i, d := range deliveries {
			if seen++; !drain && seen%7 == 0 {
				l.Did(d.Number, d.Handle, load.Left)
				continue
			}
			l.Asked(d.Number)
			answers, err := c.Ack(deliveries[i : i+1])
			if err != nil {
				l.Unanswered(d.Number)
				return
			}
			l.Answered(d.Number, d.Handle, answers[0] == load.Accepted)
		}
	}
}

package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r rarely
		if !r.now("k", "g", "t") || r.now("k", "g", "t") || !r.now("k", "g", "u") {
			t.Error("the second of a kind is held back, another kind is not")
		}
		time.Sleep(rareEvery)
		if !r.now("k", "g", "t") {
			t.Error("after a while it is let through again")
		}
		for i := range 3 * rareMost {
			r.now("k", "g", fmt.Sprint(i))
		}
		if len(r.last) > rareMost {
			t.Errorf("%d kinds remembered", len(r.last))
		}
	})
}

package local

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/proxy"
)

// full is a telemetry stream that takes nothing until it is opened.
type full struct {
	proxy.Commander
	open  chan struct{}
	taken sync.WaitGroup
}

func (f *full) Recover(string, []byte, string) error {
	<-f.open
	f.taken.Done()
	return nil
}

// A client that does not read its stream uses up no checks, and holds up nobody who asks.
func TestStuckStreamUsesUpNoChecks(t *testing.T) {
	p := newParts(t)
	stream := &full{open: make(chan struct{})}
	stream.taken.Add(1)
	ch := &channel{id: "c", backend: p.Backend, client: &proxy.Client{ID: "c", Stream: stream}}
	if err := ch.CheckTransaction(txn.Check{}); err != nil {
		t.Fatal(err)
	}
	m := &p.Backend.members
	m.Lock()
	ch.stuck = ch.stuck.Add(-2 * stuckAfter)
	m.Unlock()
	if err := ch.CheckTransaction(txn.Check{}); !errors.Is(err, errStuck) {
		t.Errorf("a stream that has taken nothing for long: %v", err)
	}
	close(stream.open)
	stream.taken.Wait()
	for free := false; !free; time.Sleep(time.Millisecond) {
		m.Lock()
		free = ch.checks == 0
		m.Unlock()
	}
	stream.taken.Add(1)
	if err := ch.CheckTransaction(txn.Check{}); err != nil {
		t.Errorf("a stream that takes again: %v", err)
	}
	stream.taken.Wait()
}

package brokertest

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// Producer is a member of a producer group, and remembers what it was asked about.
type Producer struct {
	Name string
	mu   struct {
		sync.Mutex
		asked []txn.Check
		deaf  bool
	}
}

// RemoteAddr implements clients.Channel.
func (*Producer) RemoteAddr() netip.AddrPort { return producer }

// ConsumersChanged implements clients.Channel.
func (*Producer) ConsumersChanged(string) {}

// Close implements clients.Channel.
func (*Producer) Close() {}

// CheckTransaction implements txn.Checker.
func (p *Producer) CheckTransaction(c txn.Check) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.deaf {
		return fmt.Errorf("producer %s does not hear", p.Name)
	}
	p.mu.asked = append(p.mu.asked, c)
	return nil
}

// Asked is what the producer was asked since the last time.
func (p *Producer) Asked() []txn.Check {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.mu.asked
	p.mu.asked = nil
	return asked
}

// Produce makes p a member of a producer group.
func (b *Broker) Produce(p *Producer, group string) {
	b.Clients.Heartbeat(clients.Heartbeat{Client: clients.Client{ID: p.Name, Channel: p}, Producers: []string{group}}, func(clients.Result) {})
}

// HalfAt is where a half message was stored in the log.
func (b *Broker) HalfAt(t testing.TB, offset int64) int64 {
	t.Helper()
	entries, err := b.Store.Entries(names.Half, 0, offset, 1)
	if err != nil || len(entries) != 1 {
		return 0
	}
	return entries[0].PhysicalOffset
}

// transactions is what a transcript knows of them:
//
//	half topic=T body=x [group=p] [props=(A:1)] [queue=0]
//	end offset=0 commit | rollback [group=p] [log=7] [times=2]
//	producer name=a group=p [gone] [deaf]
//	transactions: what is open, with the checks that were made
//	resume topic=TRANS_CHECK_MAX_TIME_TOPIC offset=0
//	progress-of-transactions: the offsets from which another server goes on
type transactions struct{ producers map[string]*Producer }

func (tr *transcript) transaction(d *datadriven.TestData) (string, bool) {
	switch d.Cmd {
	case "half":
		return tr.half(d), true
	case "end":
		return tr.end(d), true
	case "producer":
		return tr.producer(d), true
	case "transactions":
		return tr.open(), true
	case "resume":
		return tr.resume(d), true
	case "progress-of-transactions":
		half, _ := tr.b.Offsets.Query(names.TransactionGroup, names.Half, 0)
		op, _ := tr.b.Offsets.Query(names.TransactionGroup, names.OpHalf, 0)
		return fmt.Sprintf("half %d op %d\n", half, op), true
	}
	return "", false
}

func (tr *transcript) half(d *datadriven.TestData) string {
	d.CmdArgs = append(d.CmdArgs, datadriven.CmdArg{Key: "props", Vals: []string{"TRAN_MSG:true", "PGROUP:" + str(d, "group", "p"), "UNIQ_KEY:" + str(d, "body", "x")}})
	for i := range d.CmdArgs[:len(d.CmdArgs)-1] {
		if a := &d.CmdArgs[i]; a.Key == "props" {
			a.Vals = append(a.Vals, d.CmdArgs[len(d.CmdArgs)-1].Vals...)
			d.CmdArgs = d.CmdArgs[:len(d.CmdArgs)-1]
			break
		}
	}
	return tr.send(d)
}

func (tr *transcript) end(d *datadriven.TestData) string {
	offset := int64(num(d, "offset", 0))
	log := int64(num(d, "log", 0))
	if !d.HasArg("log") {
		log = tr.b.HalfAt(tr.t, offset)
	}
	q := txn.Decision{Commit: d.HasArg("commit"), QueueOffset: offset, LogOffset: log, Group: str(d, "group", "p")}
	var b strings.Builder
	for range num(d, "times", 1) {
		done := make(chan error, 1)
		tr.b.Txn.End(q, func(err error) { done <- err })
		if err := <-done; err != nil {
			fmt.Fprintf(&b, "error: %s\n", err)
		} else {
			b.WriteString("ok\n")
		}
	}
	tr.b.Dispatched()
	return b.String() + tr.answers()
}

func (tr *transcript) producer(d *datadriven.TestData) string {
	if tr.halves.producers == nil {
		tr.halves.producers = make(map[string]*Producer)
	}
	name := str(d, "name", "a")
	p := tr.halves.producers[name]
	if p == nil {
		p = &Producer{Name: name}
		tr.halves.producers[name] = p
	}
	p.mu.Lock()
	p.mu.deaf = d.HasArg("deaf")
	p.mu.Unlock()
	if d.HasArg("gone") {
		tr.b.Clients.CloseChannel(p)
		delete(tr.halves.producers, name)
		return "ok\n"
	}
	tr.b.Produce(p, str(d, "group", "p"))
	return "ok\n"
}

// asked is what the producers were asked meanwhile.
func (tr *transcript) asked() string {
	var lines []string
	for name, p := range tr.halves.producers {
		for _, c := range p.Asked() {
			m := new(message.Message)
			if _, err := message.DecodeStored(c.Record, m); err != nil {
				tr.t.Fatal(err)
			}
			place := "its place"
			if c.LogOffset != tr.b.HalfAt(tr.t, c.QueueOffset) {
				place = fmt.Sprintf("log offset %d", c.LogOffset)
			}
			lines = append(lines, fmt.Sprintf("%s is asked about %d at %s: %s", name, c.QueueOffset, place, show(c.Record)))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func (tr *transcript) open() string {
	list, total := tr.b.Txn.List("", "", 100)
	var b strings.Builder
	for _, u := range list {
		fmt.Fprintf(&b, "%d %s of %s for %s: %d checks\n", u.QueueOffset, u.UniqueID, u.Group, u.Topic, u.Checks)
	}
	if total == 0 {
		return "none\n"
	}
	return b.String()
}

func (tr *transcript) resume(d *datadriven.TestData) string {
	entries, err := tr.b.Store.Entries(cmp.Or(str(d, "topic", ""), names.TransCheckMaxTime), 0, int64(num(d, "offset", 0)), 1)
	if err != nil || len(entries) != 1 {
		return "there is none\n"
	}
	done := make(chan error, 1)
	tr.b.Txn.Resume(entries[0].PhysicalOffset, func(err error) { done <- err })
	out := "ok\n"
	if err := <-done; err != nil {
		out = "error: " + err.Error() + "\n"
	}
	tr.b.Dispatched()
	return out
}

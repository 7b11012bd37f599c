package brokertest

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/pull"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// transcript runs the commands of one file against one broker:
//
//	topic name=T queues=2 [perm=6] [attributes=+message.type:FIFO]
//	group name=g max=2 [retry-queues=1] [off] [no-broadcast]
//	send topic=T queue=0 body=x [props=(A:1,B:2)] [reconsume=1] [max=3] [default=TBW102]
//	batch topic=T queue=0, one "body props…" a line
//	send-back group=g topic=T queue=0 offset=0 [level=3] [max=1]
//	pull group=g topic=T queue=0 offset=0 [max=32] [filter=(a || b) | sql=(a = 1)] [wait=10s] [commit=5]
//	pull group=g topic=T subscribed [version=7]: by the subscription of the group's heartbeat
//	heartbeat group=g topic=T [filter=a | sql=(a = 1)] [version=7] [broadcast] [gone]
//	search topic=T queue=0 of=3 [plus=1ms] [upper]: by the time of the message at an offset
//	commit group=g topic=T queue=0 offset=5
//	start group=g topic=T queue=0
//	reset group=g topic=T queue=0 offset=0
//	advance 10s | delete topic=T | restart | kill
//	queue topic=T queue=0: what a queue holds
//	progress: how far the delay levels are
//	timers: how many messages wait for a time of their own
type transcript struct {
	t       *testing.T
	b       *Broker
	waiting []*outcome // pulls that wait, in their order
	member  member
	halves  transactions
}

// outcome is what a pull was answered.
type outcome struct {
	name string
	done chan string
}

// Run runs the transcripts of a folder, one broker for each file.
func Run(t *testing.T, dir string) {
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		tr := &transcript{t: t, b: Open(t, Options{})}
		datadriven.RunTest(t, path, tr.command)
	})
}

func (tr *transcript) command(_ *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "topic":
		c := &topic.Config{Name: str(d, "name", ""), ReadQueues: num(d, "queues", 1), Perm: num(d, "perm", 6), FilterType: topic.SingleTag}
		c.WriteQueues = num(d, "write", c.ReadQueues)
		if a := str(d, "attributes", ""); a != "" {
			name, value, _ := strings.Cut(a, ":")
			c.Attributes = map[string]string{name: value}
		}
		return tr.outcome(tr.b.Topics.Put(c))
	case "group":
		g := group.New(str(d, "name", ""))
		g.ConsumeEnable, g.ConsumeBroadcast = !d.HasArg("off"), !d.HasArg("no-broadcast")
		g.RetryMaxTimes, g.RetryQueues = num(d, "max", g.RetryMaxTimes), num(d, "retry-queues", g.RetryQueues)
		return tr.outcome(tr.b.Groups.Put(g))
	case "send":
		return tr.send(d)
	case "batch":
		return tr.batch(d)
	case "send-back":
		return tr.sendBack(d)
	case "pull":
		return tr.pull(d)
	case "heartbeat":
		return tr.heartbeat(d)
	case "search":
		return tr.search(d)
	case "commit":
		var got error
		tr.b.Pull.Commit(str(d, "group", "g"), str(d, "topic", "T"), num(d, "queue", 0), int64(num(d, "offset", 0)), false, func(err error) { got = err })
		return tr.outcome(got)
	case "start":
		off, err := tr.b.Pull.StartOffset(str(d, "group", "g"), str(d, "topic", "T"), num(d, "queue", 0), true)
		if err != nil {
			return tr.outcome(err)
		}
		return fmt.Sprintln(off)
	case "reset":
		tr.b.Offsets.Reset(str(d, "group", "g"), str(d, "topic", "T"), num(d, "queue", 0), int64(num(d, "offset", 0)))
		return "ok\n"
	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(tr.t, "%v", err)
		}
		tr.b.Clock.Advance(by)
		tr.b.Dispatched()
		return tr.asked() + tr.answers()
	case "delete":
		return tr.outcome(tr.b.Admin.DeleteTopic(str(d, "topic", "T"))) + tr.answers()
	case "restart":
		tr.b = tr.b.Restart()
		return "ok\n" + tr.answers()
	case "kill":
		tr.b.Dispatched()
		tr.b = tr.b.Kill()
		return "ok\n"
	case "queue":
		return tr.queue(str(d, "topic", "T"), num(d, "queue", 0))
	case "progress":
		return tr.progress()
	case "timers":
		return tr.timers()
	}
	if out, ok := tr.transaction(d); ok {
		return out
	}
	d.Fatalf(tr.t, "unknown command %s", d.Cmd)
	return ""
}

var producer = netip.MustParseAddrPort("10.0.0.1:5000")

func (tr *transcript) send(d *datadriven.TestData) string {
	m := &message.Message{Topic: str(d, "topic", "T"), QueueID: num(d, "queue", 0), Body: []byte(str(d, "body", "x")), ReconsumeTimes: num(d, "reconsume", 0),
		BornHost: producer, StoreHost: Host, BornTimestamp: 1}
	m.Properties = properties(d, "props")
	r := &publish.Request{Message: m, MaxReconsumeTimes: num(d, "max", -1), DefaultTopic: str(d, "default", ""), DefaultQueues: num(d, "default-queues", 4)}
	done := make(chan string, 1)
	tr.b.Publish.Send(r, func(p storage.Placed, err error) {
		if err != nil {
			done <- tr.outcome(err)
			return
		}
		done <- fmt.Sprintf("queue %d offset %d\n", p.QueueID, p.QueueOffset)
	})
	out := <-done
	tr.b.Dispatched()
	return out + tr.answers()
}

func (tr *transcript) batch(d *datadriven.TestData) string {
	var ms []*message.Message
	for line := range strings.Lines(d.Input) {
		words := strings.Fields(line)
		m := &message.Message{Body: []byte(words[0]), BornHost: producer, StoreHost: Host}
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			m.Properties = m.Properties.With(name, value)
		}
		ms = append(ms, m)
	}
	head := &message.Message{Topic: str(d, "topic", "T"), QueueID: num(d, "queue", 0), BornHost: producer, StoreHost: Host, BornTimestamp: 1}
	done := make(chan string, 1)
	tr.b.Publish.SendBatch(&publish.Request{Message: head, MaxReconsumeTimes: -1}, ms, func(p []storage.Placed, err error) {
		if err != nil {
			done <- tr.outcome(err)
			return
		}
		done <- fmt.Sprintf("queue %d offsets %d..%d\n", p[0].QueueID, p[0].QueueOffset, p[len(p)-1].QueueOffset)
	})
	out := <-done
	tr.b.Dispatched()
	return out + tr.answers()
}

func (tr *transcript) sendBack(d *datadriven.TestData) string {
	name, queue, offset := str(d, "topic", "T"), num(d, "queue", 0), int64(num(d, "offset", 0))
	read := tr.b.Store.Read(storage.ReadRequest{Topic: name, QueueID: queue, Offset: offset, MaxMessages: 1})
	defer read.Release()
	if read.Status != storage.Found {
		return read.Status.String() + "\n"
	}
	done := make(chan string, 1)
	tr.b.Publish.SendBack(publish.SendBack{Group: str(d, "group", "g"), Offset: read.Records[0].PhysicalOffset, DelayLevel: num(d, "level", 0),
		MaxReconsume: num(d, "max", -1)}, func(err error) { done <- tr.outcome(err) })
	out := <-done
	tr.b.Dispatched()
	return out + tr.answers()
}

func (tr *transcript) pull(d *datadriven.TestData) string {
	r := pull.Request{Group: str(d, "group", "g"), Topic: str(d, "topic", "T"), QueueID: num(d, "queue", 0), Offset: int64(num(d, "offset", 0)),
		MaxMessages: num(d, "max", 32), Subscribed: true, Expression: str(d, "filter", "*")}
	if text := str(d, "sql", ""); text != "" {
		r.Kind, r.Expression = "SQL92", text
	}
	if d.HasArg("subscribed") {
		r.Subscribed, r.SubVersion = false, int64(num(d, "version", 0))
	}
	if off := num(d, "commit", -1); off >= 0 {
		r.Commit, r.CommitOffset = true, int64(off)
	}
	if w := str(d, "wait", ""); w != "" {
		var err error
		if r.Suspend, err = time.ParseDuration(w); err != nil {
			d.Fatalf(tr.t, "%v", err)
		}
	}
	o := &outcome{name: fmt.Sprintf("pull of %s by %s at %d", r.Topic, r.Group, r.Offset), done: make(chan string, 1)}
	tr.b.Pull.Pull(r, func(res pull.Result, err error) { o.done <- tr.pulled(res, err) })
	select {
	case out := <-o.done:
		return out
	default:
		tr.waiting = append(tr.waiting, o)
		return "waits\n"
	}
}

// member is a consumer that heartbeats speak of.
type member struct{}

// RemoteAddr implements clients.Channel.
func (*member) RemoteAddr() netip.AddrPort { return producer }

// ConsumersChanged implements clients.Channel.
func (*member) ConsumersChanged(string) {}

// Close implements clients.Channel.
func (*member) Close() {}

func (tr *transcript) heartbeat(d *datadriven.TestData) string {
	if d.HasArg("gone") {
		tr.b.Clients.CloseChannel(&tr.member)
		return "ok\n"
	}
	s := clients.Subscription{Topic: str(d, "topic", "T"), Expression: str(d, "filter", "*"), Version: int64(num(d, "version", 1))}
	if text := str(d, "sql", ""); text != "" {
		s.Kind, s.Expression = "SQL92", text
	}
	c := clients.Consumer{Group: str(d, "group", "g"), Type: clients.ConsumePassively, Model: clients.Clustering, Subscriptions: []clients.Subscription{s}}
	if d.HasArg("broadcast") {
		c.Model = clients.Broadcasting
	}
	tr.b.Clients.Heartbeat(clients.Heartbeat{Client: clients.Client{ID: "c", Channel: &tr.member}, Consumers: []clients.Consumer{c}}, func(clients.Result) {})
	return "ok\n" + tr.answers()
}

func (tr *transcript) search(d *datadriven.TestData) string {
	name, queue := str(d, "topic", "T"), num(d, "queue", 0)
	plus, err := time.ParseDuration(str(d, "plus", "0s"))
	if err != nil {
		d.Fatalf(tr.t, "%v", err)
	}
	at := tr.b.Store.StoreTimeAt(name, queue, int64(num(d, "of", 0))) + plus.Milliseconds()
	return fmt.Sprintln(tr.b.Store.OffsetByTime(name, queue, at, d.HasArg("upper")))
}

var answerNames = map[pull.Answer]string{pull.Found: "found", pull.NotFound: "not found", pull.Again: "again", pull.Moved: "moved"}

func (tr *transcript) pulled(res pull.Result, err error) string {
	if err != nil {
		return tr.outcome(err)
	}
	defer res.Read.Release()
	status := res.Status.String()
	if res.Reset {
		status = "OFFSET_RESET"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s next %d of %d..%d\n", answerNames[res.Answer], status, res.Next, res.Min, res.Max)
	if res.Answer == pull.Found {
		for i := range res.Read.Records {
			b.WriteString(show(res.Read.Records[i].Bytes))
		}
	}
	return b.String()
}

// answers are those of waiting pulls that have come.
func (tr *transcript) answers() string {
	var b strings.Builder
	tr.waiting = slices.DeleteFunc(tr.waiting, func(o *outcome) bool {
		select {
		case out := <-o.done:
			fmt.Fprintf(&b, "%s: %s", o.name, out)
			return true
		default:
			return false
		}
	})
	return b.String()
}

func (tr *transcript) queue(name string, queue int32) string {
	read := tr.b.Store.Read(storage.ReadRequest{Topic: name, QueueID: queue, MaxMessages: 1000, MaxBytes: 1 << 20})
	defer read.Release()
	if read.Status != storage.Found {
		return read.Status.String() + "\n"
	}
	var b strings.Builder
	for i := range read.Records {
		b.WriteString(show(read.Records[i].Bytes))
	}
	return b.String()
}

func (tr *transcript) progress() string {
	levels := tr.b.Timer.Offsets()
	var b strings.Builder
	for level := int32(1); level <= 18; level++ {
		if off, ok := levels[level]; ok {
			fmt.Fprintf(&b, "level %d: %d\n", level, off)
		}
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

func (tr *transcript) timers() string {
	counts := tr.b.Wheel.Counts()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "%s: %d\n", name, counts[name])
	}
	if b.Len() == 0 {
		return "none\n"
	}
	return b.String()
}

// undated is what a timer's source begins with.
var undated = regexp.MustCompile(`^timer/\d+/`)

// show is a record in one line. Generated values are left out.
func show(record []byte) string {
	m := new(message.Message)
	if _, err := message.DecodeStored(record, m); err != nil {
		return err.Error() + "\n"
	}
	var props []string
	for name, value := range m.Properties.All() {
		switch name {
		case message.PropertyUniqKey, message.PropertyCluster, message.PropertyRegion, message.PropertyCRC:
			continue
		case message.PropertyOriginMessageID, message.PropertyFirstPopTime, message.PropertyTimerOutMs, message.PropertyTimerEnqueueMs,
			message.PropertyTimerDequeueMs:
			value = "…"
		case message.PropertySource:
			value = undated.ReplaceAllString(value, "timer/…/")
		}
		props = append(props, name+"="+value)
	}
	return strings.TrimRight(fmt.Sprintf("%s/%d@%d r%d %s %s", m.Topic, m.QueueID, m.QueueOffset, m.ReconsumeTimes, m.Body, strings.Join(props, " ")), " ") + "\n"
}

// outcome is an error by its sentinel, which is what other packages see of it.
func (tr *transcript) outcome(err error) string {
	if err == nil {
		return "ok\n"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return "error: " + joined.Unwrap()[0].Error() + "\n"
	}
	return "error: " + err.Error() + "\n"
}

func str(d *datadriven.TestData, name, otherwise string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name {
			return strings.Join(a.Vals, ",")
		}
	}
	return otherwise
}

func num(d *datadriven.TestData, name string, otherwise int32) int32 {
	s := str(d, name, "")
	if s == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", d.Pos, err))
	}
	return int32(n)
}

// properties reads props=(A:1,B:2).
func properties(d *datadriven.TestData, name string) message.Properties {
	p := message.Properties("")
	for _, a := range d.CmdArgs {
		if a.Key == name {
			for _, pair := range a.Vals {
				k, v, _ := strings.Cut(pair, ":")
				p = p.With(k, v)
			}
		}
	}
	return p
}

package lite_test

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// transcript runs the commands of one file against one broker, in parent topic P for group g:
//
//	group name=g [attributes]…: a line each, as -lite.sub.model=Exclusive
//	topic [ttl=20]
//	send lite=a [body=x]
//	subscribe client=c lites=(a,b) [from=min|max|tail:2|offset:3|time:5000]
//	unsubscribe client=c lites=(a) | these client=c lites=(a,b) | leave client=c
//	receive client=c [max=32] [wait] [invisible=30s] [attempt=x]: what there is, each with a
//	letter to name its delivery; one that waits is answered below later commands
//	ack d… | change d by=10s [suspend] | forget
//	advance 10s | restart | kill | queues | offsets: what is kept of the group, in lite topics or not
type transcript struct {
	t       *testing.T
	b       *brokertest.Broker
	handles map[string]receipt.Handle
	waiting []*waiting
	told    []string
}

type waiting struct {
	client string
	done   chan string
}

func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		tr := &transcript{t: t, handles: map[string]receipt.Handle{}, b: brokertest.Open(t, brokertest.Options{
			Tune: func(b *config.Broker, _ *config.Store) { b.MaxLiteSubscriptionCount = 6 }})}
		datadriven.RunTest(t, path, tr.command)
	})
}

func (tr *transcript) command(_ *testing.T, d *datadriven.TestData) string {
	out := tr.run(d)
	slices.Sort(tr.told)
	for _, line := range tr.told {
		out += line + "\n"
	}
	tr.told = nil
	return out + tr.answers()
}

func (tr *transcript) run(d *datadriven.TestData) string {
	switch d.Cmd {
	case "topic":
		c := &topic.Config{Name: "P", ReadQueues: 2, WriteQueues: 2, Perm: 6, Attributes: map[string]string{"+message.type": "LITE"}}
		if ttl := arg(d, "ttl"); ttl != "" {
			c.Attributes["+lite.topic.expiration"] = ttl
		}
		return tr.outcome(tr.b.Topics.Put(c))
	case "group":
		g := group.New(arg(d, "name"))
		g.RetryMaxTimes = 1
		g.Attributes = map[string]string{"+lite.bind.topic": "P"}
		for line := range strings.Lines(d.Input) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			g.Attributes["+"+name] = value
		}
		return tr.outcome(tr.b.Groups.Put(g))
	case "send":
		m := &message.Message{Topic: "P", Body: []byte(arg(d, "body")), BornHost: netip.MustParseAddrPort("10.0.0.1:5000"), StoreHost: brokertest.Host,
			Properties: message.Properties("").With(message.PropertyLiteTopic, arg(d, "lite"))}
		done := make(chan error, 1)
		tr.b.Publish.Publish(m, func(_ storage.Placed, err error) { done <- err })
		err := <-done
		tr.b.Dispatched()
		return tr.outcome(err)
	case "subscribe", "unsubscribe", "these":
		return tr.sync(d)
	case "leave":
		tr.b.Lite.Leave(arg(d, "client"))
		return "ok\n"
	case "receive":
		return tr.receive(d)
	case "ack":
		var out strings.Builder
		for _, a := range d.CmdArgs {
			done := make(chan error, 1)
			tr.b.Pop.Ack("g", "P", tr.handles[a.Key], func(err error) { done <- err })
			out.WriteString(a.Key + ": " + tr.outcome(<-done))
		}
		return out.String()
	case "change":
		by, err := time.ParseDuration(arg(d, "by"))
		if err != nil {
			d.Fatalf(tr.t, "%v", err)
		}
		name := d.CmdArgs[0].Key
		done := make(chan error, 1)
		tr.b.Pop.ChangeInvisible("g", "P", tr.handles[name], by.Milliseconds(), d.HasArg("suspend"), func(h receipt.Handle, err error) {
			if err == nil {
				tr.handles[name] = h
			}
			done <- err
		})
		return tr.outcome(<-done)
	case "forget":
		tr.settled()
		tr.b.Pop.ForgetIdle()
		tr.b.Pop.ForgetIdle()
		all, _ := tr.b.Pop.LiteWindows()
		return fmt.Sprintln(all, "windows in memory")
	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(tr.t, "%v", err)
		}
		tr.b.Clock.Advance(by)
		tr.b.Dispatched()
		return ""
	case "restart", "kill":
		tr.b.Dispatched()
		if d.Cmd == "restart" {
			tr.b = tr.b.Restart()
		} else {
			tr.settled()
			tr.b = tr.b.Kill()
		}
		return "ok\n"
	case "offsets":
		tr.settled()
		var lines []string
		tr.b.Offsets.Each(func(group, topic string, offsets map[int32]int64) {
			lines = append(lines, fmt.Sprintln(group, topic, offsets))
		})
		slices.Sort(lines)
		return strings.Join(lines, "")
	case "queues":
		tr.settled()
		var lines []string
		tr.b.Store.EachLight("", func(queue string, end int64) bool {
			at := "-"
			if off, known := tr.b.Offsets.Query("g", queue, 0); known {
				at = strconv.FormatInt(off, 10)
			}
			lines = append(lines, fmt.Sprintf("%s %d, g at %s\n", queue, end, at))
			return true
		})
		slices.Sort(lines)
		return strings.Join(lines, "")
	}
	d.Fatalf(tr.t, "unknown command %s", d.Cmd)
	return ""
}

// settled waits until what has changed is committed.
func (tr *transcript) settled() {
	if err := tr.b.State.Commit(tr.b.State.NewBatch()); err != nil {
		tr.t.Fatal(err)
	}
	done := make(chan struct{})
	tr.b.Pop.AfterCommit(func(error) { close(done) })
	<-done
}

func (tr *transcript) sync(d *datadriven.TestData) string {
	client := arg(d, "client")
	s := lite.Subscription{ClientID: client, Group: "g", Topic: "P", Action: map[string]lite.Action{"subscribe": lite.PartialAdd, "unsubscribe": lite.PartialRemove, "these": lite.CompleteAdd}[d.Cmd],
		Unsubscribed: func(name string) { tr.told = append(tr.told, client+" loses "+name) }}
	for i := range d.CmdArgs {
		if d.CmdArgs[i].Key == "lites" {
			s.Lites = d.CmdArgs[i].Vals
		}
	}
	if from := arg(d, "from"); from != "" {
		kind, value, _ := strings.Cut(from, ":")
		s.From.Kind = map[string]lite.FromKind{"min": lite.FromMin, "max": lite.FromMax, "tail": lite.FromTail, "offset": lite.FromOffset, "time": lite.FromTime}[kind]
		s.From.Value, _ = strconv.ParseInt(value, 10, 64)
	}
	if g := arg(d, "group"); g != "" {
		s.Group = g
	}
	return tr.outcome(tr.b.Lite.Sync(s))
}

func (tr *transcript) receive(d *datadriven.TestData) string {
	q := lite.Request{ClientID: arg(d, "client"), Group: "g", Topic: "P", Max: 32, Invisible: 30_000, AttemptID: arg(d, "attempt")}
	if n, err := strconv.Atoi(arg(d, "max")); err == nil {
		q.Max = n
	}
	if by, err := time.ParseDuration(arg(d, "invisible")); err == nil {
		q.Invisible = by.Milliseconds()
	}
	if g := arg(d, "group"); g != "" {
		q.Group = g
	}
	before := tr.b.LongPoll.Waiting()
	if d.HasArg("wait") {
		q.PollTime = time.Hour
	}
	w := &waiting{client: q.ClientID, done: make(chan string, 1)}
	tr.b.Lite.Receive(q, func(res pop.Result, err error) {
		defer res.Release()
		if err != nil {
			w.done <- tr.outcome(err)
			return
		}
		out := ""
		for i := range res.Batches {
			b := &res.Batches[i]
			for k := range b.Records {
				var m message.Message
				if _, err := message.DecodeStored(b.Records[k].Bytes, &m); err != nil {
					tr.t.Error(err)
				}
				name := string(rune('a' + len(tr.handles)))
				h, err := receipt.Parse(res.Handle(b, &b.Records[k], tr.b.Name).String())
				if err != nil {
					tr.t.Error(err)
				}
				tr.handles[name] = h
				out += fmt.Sprintf("%s: %s/%d %s, attempt %d\n", name, b.Lite, b.Records[k].QueueOffset, m.Body, b.Attempts[k]+1)
			}
		}
		if out == "" {
			out = res.Status.String() + "\n"
		}
		w.done <- out
	})
	if !d.HasArg("wait") {
		return <-w.done
	}
	brokertest.Until(tr.t, "an answer or a waiter", func() bool { return len(w.done) > 0 || tr.b.LongPoll.Waiting() > before })
	if len(w.done) > 0 {
		return <-w.done
	}
	tr.waiting = append(tr.waiting, w)
	return "waits\n"
}

// answers are those that came to waiting receives.
func (tr *transcript) answers() (out string) {
	brokertest.Until(tr.t, "those that were woken", func() bool {
		answered := 0
		for _, w := range tr.waiting {
			answered += len(w.done)
		}
		return answered+tr.b.LongPoll.Waiting() >= len(tr.waiting)
	})
	tr.waiting = slices.DeleteFunc(tr.waiting, func(w *waiting) bool {
		if len(w.done) == 0 {
			return false
		}
		out += w.client + " is answered\n" + <-w.done
		return true
	})
	return out
}

func (tr *transcript) outcome(err error) string {
	if err == nil {
		return "ok\n"
	}
	for _, known := range []error{lite.ErrQuota, lite.ErrIllegal, lite.ErrNotBound} {
		if errors.Is(err, known) {
			return err.Error() + "\n"
		}
	}
	return "error: " + err.Error() + "\n"
}

func arg(d *datadriven.TestData, key string) string {
	for i := range d.CmdArgs {
		if d.CmdArgs[i].Key == key && len(d.CmdArgs[i].Vals) > 0 {
			return d.CmdArgs[i].Vals[0]
		}
	}
	return ""
}

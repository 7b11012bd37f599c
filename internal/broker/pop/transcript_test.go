package pop

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// TestTranscripts runs the specification of POP: testdata/*.txt. Time is simulated; it
// moves only in "advance". Times are shown in milliseconds since the transcript's start.
//
// DESIGN.md lists which rule is told where. Reports of users that they tell: R004, R007 and
// R015 in failures.txt, R005 and R009 in ack.txt, R034 in lost-answer.txt, R012 and R014 in
// init.txt, R016 in throttle.txt, R019, R035, R036 and R039 in order-idle.txt and fifo.txt,
// R020 and R045 in change.txt and renew.txt, R021 and R044 in poll-lapse.txt, R022 in
// collide.txt, R026 and R028 in longpoll.txt.
func TestTranscripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, b: newTestBroker(t, true), answers: map[string]*answer{}}
				s.start = s.b.clock.NowMilli()
				s.b.open(true)
				defer func() { s.b.close() }()
				datadriven.RunTest(t, path, s.run)
			})
		})
	}
}

type script struct {
	t       *testing.T
	b       *testBroker
	start   int64
	answers map[string]*answer
	waiting int
	out     transcript
}

// transcript collects what a command shows. Answers come from several goroutines: they are
// shown in a fixed order: acks as they were asked, then pops by name, then the rest.
type transcript struct {
	mu     sync.Mutex
	blocks []string
}

// Write adds one block.
func (o *transcript) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.blocks = append(o.blocks, string(p))
	return len(p), nil
}

func (o *transcript) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	rank := func(block string) string {
		name, _, ok := strings.Cut(block, ": ")
		switch {
		case !ok || strings.ContainsAny(name, " "):
			return "~"
		case name[0] >= '0' && name[0] <= '9':
			return ""
		}
		return name
	}
	slices.SortStableFunc(o.blocks, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	all := strings.Join(o.blocks, "")
	o.blocks = nil
	return all
}

func (o *transcript) empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.blocks) == 0
}

// answer is what a pop returned: receipts by (flag, queue, offset).
type answer struct {
	group, topic string
	handles      []receipt.Handle
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "topic":
		s.b.topic(s.str(d, "name"), s.opt(d, "type"), int32(s.num(d, "queues", 1)))
		if d.HasArg("perm") {
			cfg, _ := s.b.topics.Get(s.str(d, "name"))
			changed := *cfg
			changed.Perm = int32(s.num(d, "perm", 6))
			s.b.fatal(s.b.topics.Put(&changed))
		}
	case "group":
		cfg := group.New(s.str(d, "name"))
		cfg.RetryMaxTimes = int32(s.num(d, "max", 16))
		cfg.ConsumeEnable = !d.HasArg("off")
		if f := s.opt(d, "factor"); f != "" {
			cfg.Attributes = map[string]string{"+priority.factor": f}
		}
		s.b.fatal(s.b.groups.Put(cfg))
	case "forbid":
		s.b.mu.Lock()
		s.b.forbidden[s.str(d, "group")+"/"+s.str(d, "topic")] = !d.HasArg("off")
		s.b.mu.Unlock()
	case "waiters": // how many may wait
		s.b.waiters = s.num(d, "most", 0)
		s.b.close()
		s.b.open(true)
	case "subscribe":
		var subs []*clients.Subscription
		for _, a := range d.CmdArgs {
			if a.Key == "tags" {
				for _, text := range a.Vals {
					sub := &clients.Subscription{Expression: text}
					subs = append(subs, sub)
				}
			}
			if a.Key == "sql" {
				for _, text := range a.Vals {
					subs = append(subs, &clients.Subscription{Expression: text, Kind: "SQL92"})
				}
			}
		}
		s.b.mu.Lock()
		s.b.subs[s.str(d, "group")+"/"+s.str(d, "topic")] = subs
		s.b.mu.Unlock()
	case "present":
		s.b.mu.Lock()
		s.b.present[s.str(d, "client")] = !d.HasArg("gone")
		s.b.mu.Unlock()
	case "send":
		tags := strings.Split(s.opt(d, "tags"), "|")
		keys := strings.Split(s.opt(d, "groups"), "|")
		n := s.num(d, "n", max(len(tags), len(keys)))
		var at []string
		for i := range n {
			at = append(at, fmt.Sprint(s.b.send(s.str(d, "topic"), int32(s.num(d, "q", 0)), "m", tags[i%len(tags)], keys[i%len(keys)])))
		}
		synctest.Wait()
		fmt.Fprintf(&s.out, "offsets %s\n", strings.Join(at, " "))
	case "pop":
		s.pop(d)
	case "notify":
		s.notify(d)
	case "peek":
		res, err := s.b.pop.Peek(s.request(d))
		s.b.fatal(err)
		s.answers["peeked"] = &answer{}
		res.PopTime = s.start
		s.result("peeked", &res)
	case "config":
		cfg := *s.b.cfg.Get()
		for _, a := range d.CmdArgs {
			s.b.fatal(config.Set(&cfg, a.Key, a.Vals[0]))
		}
		s.b.cfg.Replace(cfg)
	case "ack":
		s.ack(d)
	case "forward":
		s.forward(d)
	case "ack-batch":
		s.ackBatch(d)
	case "ack-bits":
		s.ackBits(d)
	case "change":
		s.change(d)
	case "advance":
		synctest.Wait()
		time.Sleep(s.duration(d.CmdArgs[0].Key))
		synctest.Wait()
	case "reset-offset":
		s.b.offsets.Reset(s.str(d, "group"), s.str(d, "topic"), int32(s.num(d, "q", 0)), int64(s.num(d, "to", 0)))
	case "consumed":
		fmt.Fprintf(&s.out, "%d\n", s.consumed(d))
	case "expire":
		s.b.store.expire(s.str(d, "topic"), int32(s.num(d, "q", 0)), int64(s.num(d, "to", 0)))
	case "cut":
		s.b.store.cut(s.str(d, "topic"), int32(s.num(d, "q", 0)), s.num(d, "to", 0))
	case "fail":
		s.b.store.mu.Lock()
		s.b.store.failTopics[s.str(d, "topic")] = nil
		if !d.HasArg("off") {
			s.b.store.failTopics[s.str(d, "topic")] = fmt.Errorf("disk full")
		}
		s.b.store.mu.Unlock()
	case "hold", "dispatch":
		s.b.store.mu.Lock()
		s.b.store.hold = d.Cmd == "hold"
		s.b.store.mu.Unlock()
		if d.Cmd == "dispatch" {
			s.b.store.dispatchHeld()
		}
	case "delete-topic":
		s.deleteTopic(s.str(d, "name"))
	case "delete-group":
		b := s.b.db.NewBatch()
		s.b.pop.DropGroup(s.str(d, "name"), b)
		s.b.fatal(s.b.db.Commit(b))
	case "leave", "come-back":
		g, topic := s.str(d, "group"), s.str(d, "topic")
		s.b.mu.Lock()
		s.b.left[g+"/"+topic] = d.Cmd == "leave"
		s.b.mu.Unlock()
		if d.Cmd == "leave" {
			s.b.pop.Leave(g, topic)
		}
	case "pulled":
		s.b.offsets.Advance(s.str(d, "group"), s.str(d, "topic"), int32(s.num(d, "q", 0)), int64(s.num(d, "to", 0)))
	case "wake-all":
		s.b.polls.WakeIf(func(*longpoll.Waiter) bool { return true })
	case "crash":
		s.b.crash(s.num(d, "unsynced", 100), rand.New(rand.NewPCG(1, 1)), true)
	case "restart":
		s.b.close()
		s.b.open(true)
	case "messages":
		s.messages(s.str(d, "topic"))
	case "windows":
		s.windows()
	case "stored":
		s.stored()
	default:
		t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
	}
	synctest.Wait()
	s.b.mu.Lock()
	for _, e := range s.b.events {
		fmt.Fprintln(&s.out, e)
	}
	s.b.events = nil
	s.b.mu.Unlock()
	if s.out.empty() {
		return "ok\n"
	}
	return s.out.take()
}

// deleteTopic deletes a topic and its retry topics, as admin does.
func (s *script) deleteTopic(name string) {
	doomed := []string{name}
	for _, t := range s.b.topics.All() {
		for _, g := range s.b.groups.All() {
			if origin, ok := names.OriginTopic(t.Name, g.Name); ok && origin == name {
				doomed = append(doomed, t.Name)
			}
		}
	}
	s.b.fatal(s.b.topics.DeleteWith(doomed, func(b *state.Batch) {
		for _, t := range doomed {
			s.b.offsets.DropTopic(t, b)
			s.b.pop.DropTopic(t, b)
		}
	}))
	for _, t := range doomed {
		s.b.store.drop(t)
	}
}

func (s *script) request(d *datadriven.TestData) Request {
	r := Request{
		Group: s.str(d, "group"), Topic: s.str(d, "topic"), QueueID: int32(s.num(d, "q", -1)), Max: s.num(d, "max", 32),
		Invisible: s.ms(d, "invisible", "60s"), PollTime: time.Duration(s.ms(d, "poll", "0s")) * time.Millisecond,
		Holder: s.opt(d, "holder"), AutoRenew: d.HasArg("renew"), Order: d.HasArg("order"),
		OnePerGroup: d.HasArg("one-per-group"), AttemptID: s.opt(d, "attempt"),
	}
	if s.opt(d, "init") == "max" {
		r.InitMode = InitMax
	}
	for kind, arg := range map[string]string{filter.KindTag: "tag", filter.KindSQL92: "sql"} {
		if text := s.opt(d, arg); text != "" {
			e, err := filter.Compile(kind, text)
			s.b.fatal(err)
			r.Filter = e
		}
	}
	return r
}

func (s *script) pop(d *datadriven.TestData) {
	r := s.request(d)
	name := s.opt(d, "as")
	if name == "" {
		name = fmt.Sprintf("p%d", len(s.answers)+1)
	}
	s.answers[name] = &answer{group: r.Group, topic: r.Topic}
	var answered atomic.Bool
	s.b.pop.Pop(r, func(res Result, err error) {
		answered.Store(true)
		if err != nil {
			fmt.Fprintf(&s.out, "%s: %v\n", name, err)
			return
		}
		s.result(name, &res)
	})
	synctest.Wait()
	if !answered.Load() {
		fmt.Fprintf(&s.out, "%s waits\n", name)
	}
}

func (s *script) result(name string, res *Result) {
	var out strings.Builder
	defer func() { fmt.Fprint(&s.out, out.String()) }()
	if res.Status != Found {
		fmt.Fprintf(&out, "%s: %s at %d\n", name, res.Status, res.PopTime-s.start)
		if res.Reason != "" {
			fmt.Fprintf(&out, "  %s\n", res.Reason)
		}
		return
	}
	fmt.Fprintf(&out, "%s: popTime %d rest %d\n", name, res.PopTime-s.start, res.RestNum)
	for i := range res.Batches {
		b := &res.Batches[i]
		fmt.Fprintf(&out, "  flag %d queue %d start %d:", b.RetryFlag, b.QueueID, b.StartOffset)
		for j := range b.Records {
			h := res.Handle(b, &b.Records[j], "b")
			var m message.Message
			if _, err := message.DecodeStored(b.Records[j].Bytes, &m); err != nil || m.QueueOffset != h.Offset {
				s.t.Errorf("record of offset %d: %v", h.Offset, err)
			}
			fmt.Fprintf(&out, " %d", h.Offset)
			if tag := m.Tag(); tag != "" {
				fmt.Fprintf(&out, "(%s)", tag)
			}
			if key := m.Properties.Value(message.PropertyShardingKey); key != "" {
				fmt.Fprintf(&out, "[%s]", key)
			}
			if m.ReconsumeTimes > 0 {
				fmt.Fprintf(&out, "*%d", m.ReconsumeTimes)
			}
			if b.Attempts != nil && b.Attempts[j] > 0 {
				fmt.Fprintf(&out, "^%d", b.Attempts[j])
			}
			s.answers[name].handles = append(s.answers[name].handles, h)
		}
		fmt.Fprintln(&out)
	}
	res.Release()
}

func (s *script) notify(d *datadriven.TestData) {
	var answered atomic.Bool
	s.b.pop.Notification(s.request(d), func(n Notice, err error) {
		answered.Store(true)
		fmt.Fprintf(&s.out, "messages %v full %v err %v\n", n.HasMessages, n.Full, err)
	})
	synctest.Wait()
	if !answered.Load() {
		fmt.Fprintln(&s.out, "waits")
	}
}

// handles resolves "p1 0 1 flag=1 q=2": offsets of an answer.
func (s *script) handles(d *datadriven.TestData) (*answer, []receipt.Handle) {
	a := s.answers[d.CmdArgs[0].Key]
	if a == nil {
		fmt.Fprintf(&s.out, "no answer %s\n", d.CmdArgs[0].Key)
		return nil, nil
	}
	var out []receipt.Handle
	for _, arg := range d.CmdArgs[1:] {
		off, err := strconv.ParseInt(arg.Key, 10, 64)
		if err != nil {
			if arg.Key == "all" {
				out = append(out, a.handles...)
			}
			continue
		}
		found := false
		for _, h := range a.handles {
			if h.Offset == off && (!d.HasArg("flag") || s.num(d, "flag", 0) == int(h.RetryFlag)) && (!d.HasArg("q") || s.num(d, "q", 0) == int(h.QueueID)) {
				out, found = append(out, h), true
				break
			}
		}
		if !found {
			h := receipt.Handle{Offset: off, QueueID: int32(s.num(d, "q", 0)), PopTime: s.start, InvisibleTime: 60000}
			if len(a.handles) > 0 {
				h.PopTime = a.handles[0].PopTime
			}
			out = append(out, h)
		}
	}
	return a, out
}

func (s *script) forward(d *datadriven.TestData) {
	a, hs := s.handles(d)
	for i := range hs { // one after the other, so that their copies have their order
		s.each(hs[i:i+1], func(h receipt.Handle, done func(error)) { s.b.pop.Forward(a.group, a.topic, h, done) })
	}
}

// each asks something for every receipt and shows the answers in their order: they come from
// several goroutines.
func (s *script) each(hs []receipt.Handle, ask func(receipt.Handle, func(error))) {
	answers := make([]string, len(hs))
	for i, h := range hs {
		ask(h, func(err error) { answers[i] = fmt.Sprintf("%d: %s\n", h.Offset, verdict(err)) })
	}
	synctest.Wait()
	for _, a := range answers {
		io.WriteString(&s.out, a)
	}
}

func (s *script) ack(d *datadriven.TestData) {
	a, hs := s.handles(d)
	s.each(hs, func(h receipt.Handle, done func(error)) { s.b.pop.Ack(a.group, a.topic, h, done) })
}

func (s *script) ackBatch(d *datadriven.TestData) {
	a, hs := s.handles(d)
	if a == nil {
		return
	}
	s.b.pop.AckBatch(a.group, a.topic, hs, func(errs []error) {
		for i, err := range errs {
			fmt.Fprintf(&s.out, "%d: %s\n", hs[i].Offset, verdict(err))
		}
	})
	synctest.Wait()
}

// ackBits acknowledges in the older batch form: one entry per popped batch, a bit for each
// message.
func (s *script) ackBits(d *datadriven.TestData) {
	a, hs := s.handles(d)
	if a == nil {
		return
	}
	group := a.group
	if g := s.opt(d, "group"); g != "" {
		group = g
	}
	var entries []BatchAck
	for _, h := range hs {
		i := slices.IndexFunc(entries, func(e BatchAck) bool {
			return e.StartOffset == h.StartOffset && e.PopTime == h.PopTime && e.QueueID == h.QueueID && e.Topic == h.RealTopic(a.topic, group)
		})
		if i < 0 {
			i = len(entries)
			entries = append(entries, BatchAck{Group: group, Topic: h.RealTopic(a.topic, group), QueueID: h.QueueID,
				StartOffset: h.StartOffset, PopTime: h.PopTime, Invisible: h.InvisibleTime, Bits: make([]byte, 4)})
		}
		bit := h.Offset - h.StartOffset
		entries[i].Bits[bit/8] |= 1 << (bit % 8)
	}
	s.b.pop.AckBits(entries, func(n int, err error) {
		fmt.Fprintf(&s.out, "%d acknowledged, others: %s\n", n, verdict(err))
	})
	synctest.Wait()
}

func (s *script) change(d *datadriven.TestData) {
	a, hs := s.handles(d)
	for i, h := range hs {
		s.b.pop.ChangeInvisible(a.group, a.topic, h, s.ms(d, "to", "30s"), d.HasArg("suspend"), func(n receipt.Handle, err error) {
			var out strings.Builder
			defer func() { fmt.Fprint(&s.out, out.String()) }()
			fmt.Fprintf(&out, "%d: %s", h.Offset, verdict(err))
			if err == nil {
				fmt.Fprintf(&out, " popTime %d invisible %d", n.PopTime-s.start, n.InvisibleTime)
				if as := s.opt(d, "as"); as != "" {
					if i == 0 {
						s.answers[as] = &answer{group: a.group, topic: a.topic}
					}
					s.answers[as].handles = append(s.answers[as].handles, n)
				}
			}
			fmt.Fprintln(&out)
		})
	}
	synctest.Wait()
}

func verdict(err error) string {
	switch err {
	case nil:
		return "OK"
	case ErrStale:
		return "stale"
	case ErrExpired:
		return "expired"
	case ErrIllegal:
		return "illegal"
	}
	return err.Error()
}

func (s *script) consumed(d *datadriven.TestData) int64 {
	off, ok := s.b.offsets.Query(s.str(d, "group"), s.str(d, "topic"), int32(s.num(d, "q", 0)))
	if !ok {
		return -1
	}
	return off
}

func (s *script) messages(topic string) {
	for q := int32(0); q < 8; q++ {
		for off := s.b.store.MinOffset(topic, q); off < s.b.store.MaxOffset(topic, q); off++ {
			var m message.Message
			s.b.store.mu.Lock()
			for name, queue := range s.b.store.queues {
				if name.Topic == topic && name.QueueID == q {
					_, err := message.DecodeStored(queue.recs[off], &m)
					s.b.fatal(err)
				}
			}
			s.b.store.mu.Unlock()
			var props []string
			for name, value := range m.Properties.All() {
				if name == message.PropertyFirstPopTime {
					n, _ := strconv.ParseInt(value, 10, 64)
					value = fmt.Sprint(n - s.start)
				}
				if name == message.PropertySource {
					parts := strings.Split(value, "/")
					n, _ := strconv.ParseInt(parts[3], 10, 64)
					parts[3] = fmt.Sprint(n - s.start)
					value = strings.Join(parts, "/")
				}
				if name == message.PropertyOriginMessageID {
					value = "…"
				}
				props = append(props, name+"="+value)
			}
			sort.Strings(props)
			fmt.Fprintf(&s.out, "queue %d offset %d reconsumed %d %s\n", q, off, m.ReconsumeTimes, strings.Join(props, " "))
		}
	}
}

func (s *script) windows() {
	var out strings.Builder
	defer func() { fmt.Fprint(&s.out, out.String()) }()
	for _, v := range s.b.pop.Dump(nil) {
		if v.Next == 0 && len(v.InFlight) == 0 && len(v.Aside) == 0 {
			continue
		}
		fmt.Fprintf(&out, "%s %s %d: next %d lowest %d", v.Group, v.Topic, v.QueueID, v.Next, v.Lowest)
		if len(v.Aside) > 0 {
			fmt.Fprintf(&out, " aside %v", v.Aside)
		}
		fmt.Fprintln(&out)
		for _, f := range v.InFlight {
			fmt.Fprintf(&out, "  %v popTime %d due %d", f.Offsets, f.PopTime-s.start, f.Due-s.start)
			if f.Holder != "" {
				fmt.Fprintf(&out, " holder %s", f.Holder)
			}
			for _, flag := range []struct {
				on   bool
				name string
			}{{f.Renewed, "renewed"}, {f.Claimed, "claimed"}, {f.Suspended, "suspended"}} {
				if flag.on {
					fmt.Fprintf(&out, " %s", flag.name)
				}
			}
			if f.Failures > 0 {
				fmt.Fprintf(&out, " failures %d", f.Failures)
			}
			fmt.Fprintln(&out)
		}
	}
	if out.Len() == 0 {
		fmt.Fprintln(&out, "none")
	}
}

// stored shows what the state database holds of POP.
func (s *script) stored() {
	names := map[uint32]string{}
	s.b.fatal(s.b.db.Scan(state.PopWindows, nil, func(k, v []byte) error {
		key, err := parseWindowKey(k)
		s.b.fatal(err)
		row, err := parseWindowValue(v)
		s.b.fatal(err)
		names[row.id] = fmt.Sprintf("%s %s %d", key.group, key.topic, key.queue)
		fmt.Fprintf(&s.out, "window %s: next %d\n", names[row.id], row.next)
		return nil
	}))
	s.b.fatal(s.b.db.Scan(state.PopRecords, nil, func(k, v []byte) error {
		id, r, holder, err := parseRecord(k, v)
		s.b.fatal(err)
		fmt.Fprintf(&s.out, "record %s: first %d live %b popTime %d due %d holder %q flags %d\n", names[id], r.offset(int(r.first)), r.live>>r.first, r.popTime-s.start, r.due-s.start, holder, r.flags&persistent)
		return nil
	}))
	s.b.fatal(s.b.db.Scan(state.PopAside, nil, func(k, v []byte) error {
		id, e, err := parseAside(k, v)
		s.b.fatal(err)
		fmt.Fprintf(&s.out, "aside %s: %d\n", names[id], e.offset)
		return nil
	}))
	if s.out.empty() {
		fmt.Fprintln(&s.out, "nothing")
	}
}

func (s *script) str(d *datadriven.TestData, key string) string {
	v := s.opt(d, key)
	if v == "" {
		d.Fatalf(s.t, "%s is missing", key)
	}
	return v
}

func (s *script) opt(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key && len(a.Vals) == 1 {
			return a.Vals[0]
		}
	}
	return ""
}

func (s *script) num(d *datadriven.TestData, key string, otherwise int) int {
	v := s.opt(d, key)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		d.Fatalf(s.t, "%s: %v", key, err)
	}
	return n
}

func (s *script) duration(text string) time.Duration {
	v, err := time.ParseDuration(text)
	s.b.fatal(err)
	return v
}

func (s *script) ms(d *datadriven.TestData, key, otherwise string) int64 {
	v := s.opt(d, key)
	if v == "" {
		v = otherwise
	}
	switch v {
	case "max":
		return math.MaxInt64
	case "min":
		return math.MinInt64
	}
	return s.duration(v).Milliseconds()
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/test/servers"
)

const (
	rebalanceQueues = 12
	rebalanceGroups = 12  // six strategies, concurrent and in order
	rebalanceRate   = 120 // messages per second
	// rebalanceSettles is how long after a member came or went messages may come a second
	// time: a lock of a killed one ends after 60 s, and clients look again each 20 s.
	rebalanceSettles = 100 * time.Second
	// rebalancePatience is how long a group may take to go on: longer than that.
	rebalancePatience = 5 * time.Minute
)

// rebalanceSuite has members of groups come, leave and be killed under load, for each of the
// classic client's six strategies, concurrent and in order: nothing is lost, order is kept,
// no queue is consumed in order by two at a time, and what comes twice comes because a
// member went (rows R066 to R069, the client's part).
func rebalanceSuite(ctx context.Context, h *harness) error {
	if err := h.buildJava(ctx); err != nil {
		return err
	}
	server, err := h.startNamed(ctx, "room@broker-a")
	if err != nil {
		return err
	}
	h.target = server.Ready
	defer func() {
		h.report("rebalance: the server stops in order", server.Stop())
		h.target = servers.Ready{}
	}()
	topic := "rebalanced"
	if err := h.createTopicOf(ctx, topic, "NORMAL", rebalanceQueues); err != nil {
		return err
	}
	r := &rebalance{h: h, topic: topic, groups: map[string]*rebalanced{}}
	r.changed.L = &r.mu
	ends, err := r.play(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.groups)) {
		found, err := r.groups[name].judge(ends, r.changes, strings.HasSuffix(name, "/orderly"))
		if err == nil {
			name += ": " + found
		}
		h.report("rebalance "+name, err)
	}
	return nil
}

// startNamed starts a server whose broker has a name of its own: a strategy takes the room
// from it.
func (h *harness) startNamed(ctx context.Context, broker string) (*servers.Server, error) {
	h.starts++
	dir := filepath.Join(h.work, fmt.Sprint("server-", h.starts))
	if h.apache {
		return servers.StartApache(ctx, servers.ApacheOptions{Dir: dir, NoProxy: true, Broker: []string{"brokerName=" + broker}})
	}
	return servers.StartBolide(ctx, servers.BolideOptions{Binary: h.binary, Dir: dir, Args: []string{"--set", "brokerName=" + broker}})
}

// rebalance is one run.
type rebalance struct {
	h       *harness
	topic   string
	members [3]*process // by slot
	started int
	changes []int64 // ms; members came or went

	mu      sync.Mutex // guards what the members' readers write
	changed sync.Cond
	groups  map[string]*rebalanced
}

// rebalanced is what the consumers of one group have consumed.
type rebalanced struct {
	all  []consumption
	seen [rebalanceQueues]map[int64]bool
}

type consumption struct {
	member, queue int
	offset        int64
	began, ended  int64 // ms
	attempts      int
}

// play is the run: two members, a third, one leaves and comes again, one is killed and
// another comes in its place; and all the while messages. It returns the queues' ends.
func (r *rebalance) play(ctx context.Context) ([]int64, error) {
	defer func() {
		for slot := range r.members {
			_ = r.die(slot)
		}
	}()
	for slot := range 2 {
		if err := r.come(ctx, slot); err != nil {
			return nil, err
		}
	}
	ends := make([]int64, rebalanceQueues)
	producer, err := r.start(ctx, func(line string) {
		var queue int
		var end int64
		if n, _ := fmt.Sscanf(line, "end %d %d", &queue, &end); n == 2 {
			ends[queue] = end
		}
	}, "produce", r.topic, fmt.Sprint(rebalanceRate))
	if err != nil {
		return nil, err
	}
	defer producer.kill()
	come := func(slot int) error { return r.come(ctx, slot) }
	for range max(1, r.h.count/10_000) {
		for _, step := range []struct {
			what string
			do   func(slot int) error
			slot int
		}{
			{"a third member comes", come, 2}, {"a member leaves", r.leave, 1}, {"it comes again", come, 1},
			{"a member is killed", r.die, 0}, {"another comes in its place", come, 0}, {"a member leaves", r.leave, 2},
		} {
			if err := r.more(ctx, 10*rebalanceRate); err != nil {
				return nil, fmt.Errorf("before %s: %w", step.what, err)
			}
			fmt.Printf("rebalance: %s\n", step.what)
			r.changes = append(r.changes, time.Now().UnixMilli())
			if err := step.do(step.slot); err != nil {
				return nil, fmt.Errorf("%s: %w", step.what, err)
			}
			r.changes = append(r.changes, time.Now().UnixMilli())
		}
	}
	if err := come(2); err != nil { // who has fixed queues is the only one to have them
		return nil, err
	}
	if err := producer.end(); err != nil {
		return nil, fmt.Errorf("the producer: %w", err)
	}
	if err := r.drain(ctx, ends); err != nil {
		return nil, err
	}
	for slot := range r.members {
		if err := r.leave(slot); err != nil {
			return nil, fmt.Errorf("the member of slot %d: %w", slot, err)
		}
	}
	return ends, nil
}

func (r *rebalance) come(ctx context.Context, slot int) (err error) {
	r.started++
	id := r.started
	r.members[slot], err = r.start(ctx, func(line string) { r.consumed(id, line) }, "member", r.topic, fmt.Sprint(slot))
	return err
}

func (r *rebalance) leave(slot int) error {
	p := r.members[slot]
	r.members[slot] = nil
	return p.end()
}

func (r *rebalance) die(slot int) error {
	if p := r.members[slot]; p != nil {
		r.members[slot] = nil
		p.kill()
	}
	return nil
}

// consumed takes in a line of a member. A killed one may leave half a line.
func (r *rebalance) consumed(member int, line string) {
	var name string
	c := consumption{member: member}
	n, _ := fmt.Sscanf(line, "consumed %s %d %d %d %d %d", &name, &c.queue, &c.offset, &c.began, &c.ended, &c.attempts)
	if n != 6 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.groups[name]
	if g == nil {
		g = &rebalanced{}
		for q := range g.seen {
			g.seen[q] = make(map[int64]bool)
		}
		r.groups[name] = g
	}
	g.all = append(g.all, c)
	g.seen[c.queue][c.offset] = true
	r.changed.Broadcast()
}

// more waits until every group has consumed n more messages.
func (r *rebalance) more(ctx context.Context, n int) error {
	r.mu.Lock()
	before := make(map[string]int)
	for name, g := range r.groups {
		before[name] = len(g.all)
	}
	r.mu.Unlock()
	return r.await(ctx, func() string {
		if len(r.groups) < rebalanceGroups {
			return fmt.Sprintf("%d of %d groups have consumed something", len(r.groups), rebalanceGroups)
		}
		for name, g := range r.groups {
			if len(g.all) < before[name]+n {
				return fmt.Sprintf("%s has consumed %d of %d more", name, len(g.all)-before[name], n)
			}
		}
		return ""
	})
}

// drain waits until every group has consumed everything.
func (r *rebalance) drain(ctx context.Context, ends []int64) error {
	return r.await(ctx, func() string {
		for name, g := range r.groups {
			for q, end := range ends {
				if n := int64(len(g.seen[q])); n < end {
					return fmt.Sprintf("%s has %d of %d messages of queue %d", name, n, end, q)
				}
			}
		}
		return ""
	})
}

// await waits until missing has nothing to say any more.
func (r *rebalance) await(ctx context.Context, missing func() string) error {
	ctx, cancel := context.WithTimeout(ctx, rebalancePatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		what := missing()
		if what == "" {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %s", ctx.Err(), what)
		}
		r.changed.Wait()
	}
}

// judge says what a group has seen, or what was wrong with it.
func (g *rebalanced) judge(ends, changes []int64, orderly bool) (string, error) {
	slices.SortStableFunc(g.all, func(a, b consumption) int { return cmp.Compare(a.began, b.began) })
	messages, twice := int64(0), 0
	for _, end := range ends {
		messages += end
	}
	var next [rebalanceQueues]int64
	last := make(map[[2]int64]consumption) // by queue and offset
	var holder [rebalanceQueues]consumption
	for _, c := range g.all {
		key := [2]int64{int64(c.queue), c.offset}
		if before, ok := last[key]; ok {
			twice++
			if !explained(c, changes) {
				return "", fmt.Errorf("queue %d, offset %d came to member %d and again to member %d, and none came or went before", c.queue, c.offset, before.member, c.member)
			}
		}
		last[key] = c
		if c.offset >= ends[c.queue] || c.attempts > 0 {
			return "", fmt.Errorf("queue %d, offset %d of %d, attempt %d: there is no such message", c.queue, c.offset, ends[c.queue], c.attempts)
		}
		if !orderly {
			continue
		}
		if c.offset > next[c.queue] {
			return "", fmt.Errorf("queue %d: offset %d before %d", c.queue, c.offset, next[c.queue])
		}
		next[c.queue] = max(next[c.queue], c.offset+1)
		if h := holder[c.queue]; h.member != 0 && h.member != c.member && h.ended > c.began {
			return "", fmt.Errorf("queue %d: member %d was at offset %d until %d, member %d at %d from %d", c.queue, h.member, h.offset, h.ended, c.member, c.offset, c.began)
		}
		holder[c.queue] = c
	}
	return fmt.Sprintf("%d messages, %d of them twice", messages, twice), nil
}

// explained reports whether a member came or went a short time before.
func explained(c consumption, changes []int64) bool {
	return slices.ContainsFunc(changes, func(at int64) bool {
		return at <= c.began && c.began-at <= rebalanceSettles.Milliseconds()
	})
}

// process is a command of the Java suite that runs until its standard input ends.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	read  chan struct{} // closed when all it printed has been read
}

// start starts one and returns when it says so; every other line goes to each.
func (r *rebalance) start(ctx context.Context, each func(line string), args ...string) (*process, error) {
	p := &process{cmd: r.h.java(ctx, r.h.target, args...), read: make(chan struct{})}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	started := make(chan struct{})
	go func() {
		defer close(p.read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == "started" {
				close(started)
				continue
			}
			each(lines.Text())
		}
	}()
	select {
	case <-started:
		return p, nil
	case <-p.read:
		p.kill()
		return nil, fmt.Errorf("%s ended at its start", strings.Join(args, " "))
	}
}

// end asks it to end and waits for that.
func (p *process) end() error {
	p.stdin.Close()
	<-p.read
	return p.cmd.Wait()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.read
	_ = p.cmd.Wait()
}

// Package longpoll holds suspended requests: who waits for which queue, until when, and
// who is woken when a message arrives there.
//
// A suspended request is a Waiter in a few lists, not a goroutine. The caller reads,
// finds nothing, parks, and then reads once more: an arrival between the first read and
// the parking is seen by the second read, an arrival after it by the table, so no
// wake-up is lost. If the second read finds something, Remove takes the waiter back.
//
// Invariants: Wake of a waiter is called exactly once, outside the table's lock, unless
// Remove returned true; a waiter whose filter refuses the arrival is not woken; Waiting
// counts the waiters that are in the table now and nothing else; nobody is parked for a peer
// that has gone; deadlines are real time and one loop sleeps until the next of them. A record
// is read at most once for all who wait for it, and only where a filter has to know its
// properties.
//
// Neighbours: pull and pop park; broker calls Arrived for what was dispatched, Release
// when a peer has gone and Close when the process stops.
package longpoll

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// AllQueues as queue id of a Key waits for every queue of the topic.
const AllQueues int32 = -1

// Sentinels of Park.
var (
	ErrFull   = errors.New("too many requests wait already")
	ErrGone   = errors.New("whoever asked has gone")
	ErrClosed = errors.New("the server is stopping")
)

// Key names what is waited for. Pull leaves Group empty; for POP an arrival wakes one
// waiter of each group.
type Key struct {
	Topic   string
	QueueID int32
	Group   string
}

// Reason tells a waiter why it was woken.
type Reason uint8

// The reasons.
const (
	Arrived  Reason = iota // a message that its filter accepts is in the queue
	Expired                // its deadline has passed
	Released               // its peer has gone, nobody reads the answer
	Changed                // topic, group or assignment changed: look again
	Closed                 // the server stops: answer empty, now
)

// String is the reason's name in transcripts.
func (r Reason) String() string {
	return [...]string{"arrived", "expired", "released", "changed", "closed"}[r]
}

// Filter is what the table asks of a subscription: *filter.Expression.
type Filter interface {
	MatchTagsCode(code int64) bool
	ByProperties() bool            // the code says nothing, Match has to be asked
	Possible(t filter.Traits) bool // Match may say yes
	Match(p message.Properties) bool
}

// Arrival is a message that readers can see now.
type Arrival struct {
	Topic    string
	QueueID  int32
	Offset   int64
	TagsCode int64
	Physical int64 // where its record lies
	Traits   filter.Traits
	Size     int32 // of its record; 0 = it can't be read, whoever might want it is woken

	known      bool
	properties message.Properties
}

// Waiter is one suspended request. The caller fills in the exported fields and leaves
// them alone while it is parked.
type Waiter struct {
	Key      Key
	Also     []Key // further queues whose arrivals wake it: the retry topics of a POP request
	Deadline time.Time
	Filter   Filter // nil accepts everything
	Offset   int64  // arrivals below it do not matter
	Each     bool   // woken by every fitting arrival (pull, notification), not in turn
	Peer     *Peer  // who waits; nil = nobody who could go

	// Wake goes on with the request. It runs on the goroutine that caused it (dispatcher,
	// deadline loop, a closing connection) and must not block.
	Wake func(Reason)

	parked  bool
	heapPos int
	queued  []node // one for Key and each of Also, in the waiting lists
	held    node   // in its peer's list
	inline  [1]node
}

// Peer is who waits for an answer: a connection, or one call of it. The zero value is there,
// until Release. It remembers that it has gone, since its request may be in other hands then:
// woken, looking, about to be parked again.
type Peer struct {
	waiting list        // guarded by the table's lock
	gone    atomic.Bool // set under it
}

// Gone reports whether p has gone; nobody never does.
func (p *Peer) Gone() bool { return p != nil && p.gone.Load() }

// Limits bound the table.
type Limits struct {
	Total  int // waiters in all
	PerKey int // waiters of one Key; 0 = Total
}

// Table is the set of suspended requests. All fields of mu are guarded by it; Wake
// functions are called without it.
type Table struct {
	// Properties reads those of a record. It is set before the table is used, and called
	// without the table's lock.
	Properties func(physical int64, size int32) (message.Properties, bool)

	limits  Limits
	waiting atomic.Int64 // changed under mu; read without it to skip arrivals nobody waits for
	asking  atomic.Int64 // those of waiting whose filter asks for properties
	poke    chan struct{}
	mu      struct {
		sync.Mutex
		slots     map[slotKey]map[string]*waitList // per group
		deadlines deadlineHeap
		closed    bool
	}
}

type slotKey struct {
	topic string
	queue int32
}

// waitList is the waiters of one Key: those woken by every arrival, and those that take
// turns.
type waitList struct {
	each, turn list
}

// New returns an empty table.
func New(limits Limits) *Table {
	if limits.PerKey == 0 {
		limits.PerKey = limits.Total
	}
	t := &Table{limits: limits, poke: make(chan struct{}, 1)}
	t.mu.slots = make(map[slotKey]map[string]*waitList)
	return t
}

// Waiting is the number of requests that wait now.
func (t *Table) Waiting() int { return int(t.waiting.Load()) }

// WaitingFor is the number of requests that wait under exactly this key.
func (t *Table) WaitingFor(k Key) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.mu.slots[slotKey{k.Topic, k.QueueID}][k.Group]; l != nil {
		return l.each.n + l.turn.n
	}
	return 0
}

// Park suspends w. After it the caller must look again for what it waits for, since a
// message may have arrived before w was in the table.
func (t *Table) Park(w *Waiter) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.mu.closed:
		return ErrClosed
	case w.parked:
		panic("longpoll: a waiter was parked twice")
	case w.Peer.Gone():
		return ErrGone
	case len(t.mu.deadlines) >= t.limits.Total:
		return ErrFull
	}
	if l := t.mu.slots[slotKey{w.Key.Topic, w.Key.QueueID}][w.Key.Group]; l != nil && l.each.n+l.turn.n >= t.limits.PerKey {
		return ErrFull
	}
	w.parked = true
	w.queued = w.inline[:]
	if len(w.Also) > 0 {
		w.queued = make([]node, 1+len(w.Also))
	}
	t.enlistLocked(w, w.Key, &w.queued[0])
	for i, k := range w.Also {
		t.enlistLocked(w, k, &w.queued[1+i])
	}
	if w.Peer != nil {
		w.Peer.waiting.push(w, &w.held)
	}
	t.mu.deadlines.push(w)
	t.waiting.Add(1)
	if w.asks() {
		t.asking.Add(1)
	}
	if w.heapPos == 0 {
		t.pokeRun()
	}
	return nil
}

func (t *Table) enlistLocked(w *Waiter, k Key, n *node) {
	slot := slotKey{k.Topic, k.QueueID}
	groups := t.mu.slots[slot]
	if groups == nil {
		groups = make(map[string]*waitList, 1)
		t.mu.slots[slot] = groups
	}
	l := groups[k.Group]
	if l == nil {
		l = &waitList{}
		groups[k.Group] = l
	}
	if w.Each {
		l.each.push(w, n)
	} else {
		l.turn.push(w, n)
	}
}

// Remove takes w back. True means that w was still parked, that its Wake will not be
// called, and that the caller goes on with the request.
func (t *Table) Remove(w *Waiter) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !w.parked {
		return false
	}
	t.removeLocked(w)
	return true
}

func (t *Table) removeLocked(w *Waiter) {
	w.parked = false
	t.delistLocked(w.Key, &w.queued[0])
	for i, k := range w.Also {
		t.delistLocked(k, &w.queued[1+i])
	}
	w.queued = nil
	if w.Peer != nil {
		w.Peer.waiting.remove(&w.held)
	}
	t.mu.deadlines.remove(w)
	t.waiting.Add(-1)
	if w.asks() {
		t.asking.Add(-1)
	}
}

func (t *Table) delistLocked(k Key, n *node) {
	n.list.remove(n)
	slot := slotKey{k.Topic, k.QueueID}
	groups := t.mu.slots[slot]
	if l := groups[k.Group]; l.each.n+l.turn.n == 0 {
		delete(groups, k.Group)
		if len(groups) == 0 {
			delete(t.mu.slots, slot)
		}
	}
}

// Arrived wakes who waits for a message that readers can now see: every fitting waiter
// that asked for Each, and of every group one that waits for this queue and one that
// waits for all queues.
func (t *Table) Arrived(a Arrival) {
	if t.waiting.Load() == 0 {
		return
	}
	t.learn(&a)
	var woken []*Waiter
	t.mu.Lock()
	woken = t.takeLocked(woken, slotKey{a.Topic, a.QueueID}, &a)
	woken = t.takeLocked(woken, slotKey{a.Topic, AllQueues}, &a)
	t.mu.Unlock()
	wake(woken, Arrived)
}

// learn reads a's properties if somebody who waits for it asks for them. Who parks after
// this looks again and sees the message without being woken.
func (t *Table) learn(a *Arrival) {
	if t.asking.Load() == 0 || a.Size == 0 || t.Properties == nil {
		return
	}
	t.mu.Lock()
	asked := t.askedLocked(slotKey{a.Topic, a.QueueID}, a) || t.askedLocked(slotKey{a.Topic, AllQueues}, a)
	t.mu.Unlock()
	if asked {
		a.properties, a.known = t.Properties(a.Physical, a.Size)
	}
}

func (t *Table) askedLocked(slot slotKey, a *Arrival) bool {
	for _, l := range t.mu.slots[slot] {
		for _, first := range [...]*node{l.each.first, l.turn.first} {
			for n := first; n != nil; n = n.next {
				if n.w.asks() && a.Offset >= n.w.Offset && n.w.Filter.Possible(a.Traits) {
					return true
				}
			}
		}
	}
	return false
}

func (t *Table) takeLocked(woken []*Waiter, slot slotKey, a *Arrival) []*Waiter {
	for _, l := range t.mu.slots[slot] {
		var next *node
		for n := l.each.first; n != nil; n = next {
			next = n.next
			if w := n.w; w.wants(a) {
				woken = append(woken, w)
				t.removeLocked(w)
			}
		}
		for n := l.turn.first; n != nil; n = n.next {
			if w := n.w; w.wants(a) {
				woken = append(woken, w)
				t.removeLocked(w)
				break
			}
		}
	}
	return woken
}

func (w *Waiter) asks() bool { return w.Filter != nil && w.Filter.ByProperties() }

func (w *Waiter) wants(a *Arrival) bool {
	switch {
	case a.Offset < w.Offset:
		return false
	case w.Filter == nil:
		return true
	case w.Filter.ByProperties():
		return w.Filter.Possible(a.Traits) && (!a.known || w.Filter.Match(a.properties))
	}
	return w.Filter.MatchTagsCode(a.TagsCode)
}

// WakeNext wakes the longest waiting request of k, or else of all queues of k's topic
// and group, and reports whether there was one. POP calls it when a lock that others
// tried is free again, or when a queue has more than one request could take.
func (t *Table) WakeNext(k Key) bool {
	if t.waiting.Load() == 0 {
		return false
	}
	t.mu.Lock()
	w := t.firstLocked(k)
	if w == nil && k.QueueID != AllQueues {
		k.QueueID = AllQueues
		w = t.firstLocked(k)
	}
	if w != nil {
		t.removeLocked(w)
	}
	t.mu.Unlock()
	if w == nil {
		return false
	}
	w.Wake(Arrived)
	return true
}

func (t *Table) firstLocked(k Key) *Waiter {
	if l := t.mu.slots[slotKey{k.Topic, k.QueueID}][k.Group]; l != nil && l.turn.first != nil {
		return l.turn.first.w
	}
	return nil
}

// Release ends the waiting of a peer that has gone: what it has parked is woken, and it parks
// no more.
func (t *Table) Release(p *Peer) {
	var woken []*Waiter
	t.mu.Lock()
	p.gone.Store(true)
	for p.waiting.first != nil {
		w := p.waiting.first.w
		woken = append(woken, w)
		t.removeLocked(w)
	}
	t.mu.Unlock()
	wake(woken, Released)
}

// WakeIf wakes every waiter that match accepts with reason Changed: its topic or group
// was deleted or changed. It walks the whole table.
func (t *Table) WakeIf(match func(*Waiter) bool) {
	if t.waiting.Load() == 0 {
		return
	}
	t.mu.Lock()
	woken := t.removeIfLocked(match)
	t.mu.Unlock()
	wake(woken, Changed)
}

func (t *Table) removeIfLocked(match func(*Waiter) bool) []*Waiter {
	var woken []*Waiter
	for _, w := range t.mu.deadlines {
		if match(w) {
			woken = append(woken, w)
		}
	}
	for _, w := range woken {
		t.removeLocked(w)
	}
	return woken
}

// Run wakes those whose deadline has passed. It sleeps until the next deadline.
func (t *Table) Run(ctx context.Context) error {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		woken, next := t.expire(time.Now())
		wake(woken, Expired)
		if next.IsZero() {
			timer.Stop()
		} else {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.poke:
		case <-timer.C:
		}
	}
}

// expire takes out what is due at now, and returns the next deadline, zero if nobody
// waits.
func (t *Table) expire(now time.Time) (woken []*Waiter, next time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.mu.deadlines) > 0 {
		w := t.mu.deadlines[0]
		if w.Deadline.After(now) {
			return woken, w.Deadline
		}
		woken = append(woken, w)
		t.removeLocked(w)
	}
	return woken, time.Time{}
}

// Close wakes everybody with reason Closed; later calls of Park are refused.
func (t *Table) Close() {
	t.mu.Lock()
	t.mu.closed = true
	woken := t.removeIfLocked(func(*Waiter) bool { return true })
	t.mu.Unlock()
	wake(woken, Closed)
}

func (t *Table) pokeRun() {
	select {
	case t.poke <- struct{}{}:
	default:
	}
}

func wake(woken []*Waiter, r Reason) {
	for _, w := range woken {
		w.Wake(r)
	}
}

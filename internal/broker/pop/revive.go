package pop

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// backoff is how long a delivery waits whose copy could not be written, by failures.
var backoff = [...]time.Duration{
	10 * time.Second, 30 * time.Second, 1 * time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute,
	5 * time.Minute, 6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute,
	20 * time.Minute, 30 * time.Minute, 1 * time.Hour, 2 * time.Hour,
}

// backoffAfter is how many milliseconds the next try waits after failures of them.
func backoffAfter(failures int) int64 {
	return backoff[min(failures, len(backoff)-1)].Milliseconds()
}

// renewedFor is how many milliseconds a renewal lasts.
func renewedFor(r *record) int64 { return max(r.invisible, 1000) }

// reviveRound is how many records one round takes: enough to share commits, few enough that
// the log's buffers are not filled by lapses alone.
const reviveRound = 512

var errUnreadable = errors.New("the lapsed message could not be read")

// revival counts the copies of a round that are on their way. Run waits for all of them, so
// that whoever moves the clock knows that what was due is done.
type revival struct {
	wg sync.WaitGroup
}

// Run is the revive loop. It sleeps until something is due.
func (p *Popper) Run(ctx context.Context) error {
	for {
		if err := p.alarm.Wait(ctx); err != nil {
			return err
		}
		for p.reviveDue() && ctx.Err() == nil {
		}
		// Not Set: somebody may have brought the time forward meanwhile.
		if next := p.due.next(); next != 0 {
			p.due.ring(next)
		}
	}
}

// reviveDue takes one round of what is due and reports whether there may be more.
func (p *Popper) reviveDue() bool {
	now := p.now()
	round := p.due.take(nil, now, reviveRound)
	var claims []*lapsing
	for _, r := range round {
		if l := p.lapse(r, now); l != nil {
			p.changed(l.w, nil) // whoever changed it last may not have come to that yet
			claims = append(claims, l)
		}
	}
	if len(claims) > 0 {
		p.commitNow()
	}
	for _, l := range claims {
		l.copyAll()
	}
	p.revival.wg.Wait()
	return len(round) == reviveRound
}

// commitNow waits until what happened so far is committed. A copy must not be in the log
// before its delivery is in the database, and deliveries are committed lazily: after a
// crash between the two the message would be visible in its own queue again, and in the
// copy as well.
func (p *Popper) commitNow() {
	committed := make(chan struct{})
	p.afterCommit(func(error) { close(committed) })
	p.o.State.Announce()
	<-committed
}

// renewableLocked reports whether r is kept because its holder is there. r's window is
// locked.
func (p *Popper) renewableLocked(r *record, now int64) bool {
	if r.flags&flagRenew == 0 || r.flags&flagClaimed != 0 {
		return false
	}
	return now-r.popTime < p.o.MaxRenew.Milliseconds() && p.o.Present(p.holders.name(r.holder))
}

// lapse decides what becomes of a record whose due time has come: it is renewed, goes back
// to be delivered in place, or is claimed, to be copied.
func (p *Popper) lapse(r *record, now int64) *lapsing {
	w := r.w
	w.mu.Lock()
	switch {
	case w.mu.dropped || r.live == 0 || p.due.holds(r):
		w.mu.Unlock() // acked, or changed, between the heap and here
		return nil
	case p.renewableLocked(r, now):
		p.due.set(r, now+renewedFor(r))
		w.touchLocked(r)
		n := bits.OnesCount64(r.live)
		w.mu.Unlock()
		p.changed(w, nil)
		if f := p.o.Events.Renewed; f != nil {
			f(w.key.group, w.key.topic, n)
		}
		return nil
	case p.inPlaceLocked(w, r):
		p.giveBackLocked(w, r, now)
		w.mu.refused = false
		w.mu.Unlock()
		p.changed(w, nil)
		p.lookAgain(w)
		return nil
	}
	r.flags |= flagClaimed
	r.flags &^= flagRenew
	l := &lapsing{p: p, w: w, r: r, mask: r.live, suspend: r.flags&flagSuspend != 0}
	if r.more != nil {
		l.mask &^= r.more.appended
		l.ordered, l.attempts = r.more.group != 0, r.more.attempts
	}
	w.mu.Unlock()
	return l
}

// inPlaceLocked reports whether r's messages are delivered again from where they are: a
// hand-back that is no attempt, and an ordered message that has attempts left.
func (p *Popper) inPlaceLocked(w *window, r *record) bool {
	switch {
	case r.flags&flagClaimed != 0:
		return false
	case r.more != nil && r.more.group != 0:
		return r.flags&flagSuspend != 0 || !publish.Decide(r.more.attempts+1, p.retryLimit(w.key.group), 0).DeadLetter
	}
	return r.flags&flagSuspend != 0 && len(w.mu.aside) < p.o.SetAside && !p.left(w.key)
}

func (p *Popper) retryLimit(group string) int32 {
	g, err := p.o.Group(group)
	if err != nil || g == nil {
		return 16
	}
	return g.RetryMaxTimes
}

// giveBackLocked sets r's messages aside for whoever comes next, but for those whose dead
// letter is on its way.
func (p *Popper) giveBackLocked(w *window, r *record, now int64) {
	e := asideEntry{lastPop: r.popTime, anyTag: true}
	if r.more != nil {
		e.group, e.attempts = r.more.group, r.more.attempts
		if r.flags&flagSuspend == 0 {
			e.attempts++
		}
	}
	live, until := r.live, r.claimsUntil()
	if r.more != nil {
		live &^= r.more.appended
	}
	for m := live; m != 0; m &= m - 1 {
		e.offset = r.offset(bits.TrailingZeros64(m))
		w.rememberLocked(e.offset, r.popTime, until, now)
		w.setAsideLocked(e)
	}
	p.releaseLocked(w, r, live)
}

// lapsing is one claimed record on its way to its copies.
type lapsing struct {
	p        *Popper
	w        *window
	r        *record
	mask     uint64 // the messages to copy
	suspend  bool
	ordered  bool
	attempts int32

	mu   sync.Mutex
	left int
	lost uint64 // messages whose copy failed
	err  error
}

// copyAll writes the copies. Each fails alone.
func (l *lapsing) copyAll() {
	l.left = bits.OnesCount64(l.mask) + 1
	l.p.revival.wg.Add(1)
	// One read for all of them, as far as it goes: they lie close together.
	var run storage.ReadResult
	if l.left > 2 {
		first := bits.TrailingZeros64(l.mask)
		run = l.p.o.Store.Read(storage.ReadRequest{Topic: l.w.key.topic, QueueID: l.w.key.queue, Offset: l.r.offset(first),
			MaxMessages: 64 - bits.LeadingZeros64(l.mask) - first, MaxBytes: l.p.o.MaxBytes})
	}
	next := 0
	for m := l.mask; m != 0; m &= m - 1 {
		bit := bits.TrailingZeros64(m)
		offset := l.r.offset(bit)
		for next < len(run.Records) && run.Records[next].QueueOffset < offset {
			next++
		}
		if next < len(run.Records) && run.Records[next].QueueOffset == offset {
			l.copyRecord(bit, run.Records[next].Bytes)
		} else {
			l.copyOne(bit)
		}
	}
	run.Release()
	l.finished(-1, nil)
}

// copyOne reads one message by itself and copies it.
func (l *lapsing) copyOne(bit int) {
	p, w, r := l.p, l.w, l.r
	offset := r.offset(bit)
	res := p.o.Store.Read(storage.ReadRequest{Topic: w.key.topic, QueueID: w.key.queue, Offset: offset, MaxMessages: 1})
	defer res.Release()
	switch {
	case res.Status == storage.Found && res.Records[0].QueueOffset == offset:
		l.copyRecord(bit, res.Records[0].Bytes)
	case offset < p.o.Store.MinOffset(w.key.topic, w.key.queue) || res.Status == storage.MessageWasRemoved || res.Status == storage.OffsetTooSmall:
		p.skip(w, r, bit)
		l.finished(bit, nil)
	default:
		l.finished(bit, fmt.Errorf("%w: %s", errUnreadable, res.Status))
	}
}

// copyRecord writes the copy of one message. record is not kept.
func (l *lapsing) copyRecord(bit int, record []byte) {
	p, w, r := l.p, l.w, l.r
	offset := r.offset(bit)
	var m message.Message
	if _, err := message.DecodeStored(record, &m); err != nil {
		l.finished(bit, fmt.Errorf("%w: %w", errUnreadable, err))
		return
	}
	source := w.source(offset, r.popTime)
	again := publish.Redelivery{
		Message: &m, Group: w.key.group, Spent: m.ReconsumeTimes + 1, PopTime: r.popTime,
		Source: source, Left: func() { p.Dispatched(source) }, Classic: p.left(w.key),
	}
	if l.suspend {
		again.Spent--
	}
	done := func(err error) { l.finished(bit, err) }
	if l.ordered {
		again.Spent = l.attempts + 1
		p.o.DeadLetter(again, publish.ReasonAttempts, done)
		return
	}
	p.o.Retry(again, done)
}

// skip ends a message that retention has deleted: there is nothing to deliver any more.
func (p *Popper) skip(w *window, r *record, bit int) {
	w.mu.Lock()
	p.releaseLocked(w, r, 1<<bit)
	w.mu.Unlock()
	p.changed(w, nil)
	p.lost(w, r.offset(bit))
}

func (p *Popper) lost(w *window, offset int64) {
	if f := p.o.Events.Lost; f != nil {
		f(w.key.group, w.key.topic, w.key.queue, offset)
	}
}

// finished notes one outcome; bit −1 stands for the loop over all of them. After the last
// one, what failed waits for its next try.
func (l *lapsing) finished(bit int, err error) {
	l.mu.Lock()
	if err != nil {
		l.lost |= 1 << bit
		l.err = err
	}
	l.left--
	last, lost, cause := l.left == 0, l.lost, l.err
	l.mu.Unlock()
	if bit >= 0 && err == nil {
		l.p.appended(l.w, l.r, bit)
	}
	if !last {
		return
	}
	if lost != 0 {
		l.p.tryLater(l.w, l.r, lost, cause)
	}
	l.p.revival.wg.Done()
}

// appended notes that the log has a copy: it is not written again while its dispatch is
// awaited (P6).
func (p *Popper) appended(w *window, r *record, bit int) {
	w.mu.Lock()
	if r.live&(1<<bit) != 0 {
		r.extra().appended |= 1 << bit
	}
	w.mu.Unlock()
}

func (p *Popper) tryLater(w *window, r *record, lost uint64, cause error) {
	w.mu.Lock()
	if r.live&lost == 0 || w.mu.dropped {
		w.mu.Unlock()
		return
	}
	m := r.extra()
	p.due.set(r, p.now()+backoffAfter(m.failures))
	m.failures++
	w.touchLocked(r)
	w.mu.Unlock()
	p.changed(w, nil)
	if f := p.o.Events.Failed; f != nil {
		f(w.key.group, w.key.topic, cause)
	}
}

const sourcePrefix = "pop/"

// source is the name of a delivery as its copy carries it: names of groups and topics
// hold no slash.
func (w *window) source(offset, popTime int64) string {
	b := make([]byte, 0, len(sourcePrefix)+64+len(w.key.group)+len(w.key.topic))
	b = append(b, sourcePrefix...)
	b = append(strconv.AppendInt(b, offset, 10), '/')
	b = append(strconv.AppendInt(b, int64(w.key.queue), 10), '/')
	b = append(strconv.AppendInt(b, popTime, 10), '/')
	b = append(append(b, w.key.group...), '/')
	return string(append(b, w.key.topic...))
}

func parseSource(source string) (k windowKey, offset, popTime int64, ok bool) {
	rest, ok := strings.CutPrefix(source, sourcePrefix)
	parts := strings.SplitN(rest, "/", 5)
	if !ok || len(parts) != 5 {
		return k, 0, 0, false
	}
	offset, err := strconv.ParseInt(parts[0], 10, 64)
	queue, err2 := strconv.ParseInt(parts[1], 10, 32)
	popTime, err3 := strconv.ParseInt(parts[2], 10, 64)
	if errors.Join(err, err2, err3) != nil {
		return k, 0, 0, false
	}
	return windowKey{group: parts[3], topic: parts[4], queue: int32(queue)}, offset, popTime, true
}

// Dispatched ends the delivery that source names: readers can see its copy now. It reports
// whether source is a delivery's name at all, whoever's window it was.
func (p *Popper) Dispatched(source string) bool {
	k, offset, popTime, ok := parseSource(source)
	if !ok {
		return false
	}
	w := p.window(k)
	if w == nil {
		return true
	}
	now := p.now()
	w.mu.Lock()
	r := w.findLocked(offset)
	found := r != nil && r.popTime == popTime
	freed := false
	if found {
		w.rememberLocked(offset, popTime, r.claimsUntil(), now)
		w.mu.afterLog = true
		freed = p.releaseLocked(w, r, 1<<(offset&63))
	}
	relieved := found && p.relieveLocked(w)
	w.mu.Unlock()
	if !found {
		return true
	}
	p.changed(w, nil)
	if f := p.o.Events.Revived; f != nil {
		f(k.group, k.topic, 1)
	}
	if freed {
		p.lookAgain(w)
	}
	if relieved {
		p.relieved(w)
	}
	return true
}

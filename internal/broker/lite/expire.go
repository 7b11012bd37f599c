package lite

import (
	"context"
	"strconv"
	"time"

	"github.com/bolidemq/bolide/internal/wire/names"
)

// Run ends what nobody sends to and whom nobody hears of any more, until ctx ends.
func (r *Registry) Run(ctx context.Context) error {
	r.arm()
	for {
		if err := r.alarm.Wait(ctx); err != nil {
			return err
		}
		r.Expire()
		r.arm()
	}
}

func (r *Registry) arm() {
	r.alarm.Set(r.o.Clock.NowMilli() + r.o.Broker.Get().LiteTTLCheckInterval)
}

// Watch ends the subscriptions of clients that have not said them again for long, until ctx
// ends. Presence is on real time.
func (r *Registry) Watch(ctx context.Context) error {
	for {
		cfg := r.o.Broker.Get()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(cfg.LiteSubscriptionCheckInterval) * time.Millisecond):
		}
		r.o.Pop.ForgetIdle()
		r.forgetSilent(time.Now().Add(-time.Duration(r.o.Broker.Get().LiteSubscriptionCheckTimeout) * time.Millisecond))
	}
}

func (r *Registry) forgetSilent(since time.Time) {
	var silent []string
	r.mu.Lock()
	for id, c := range r.mu.clients {
		if c.said.Before(since) {
			silent = append(silent, id)
		}
	}
	r.mu.Unlock()
	for _, id := range silent {
		r.o.Log.Info("a client has not said its lite subscriptions again; they end", "client", id)
		r.Leave(id)
	}
}

// Expire deletes the lite topics that have had no message for as long as their parent says.
// After a start there is time for consumers to come back first. Age is by what the machine's
// clock shows: where that was far ahead and has been put right, nothing expires for it.
func (r *Registry) Expire() {
	now, wall := r.o.Clock.Read()
	least := r.o.Broker.Get().MinLiteTTL
	if now-r.openedAt < least {
		return
	}
	for _, t := range r.o.Topics.All() {
		minutes, err := strconv.ParseInt(t.Attributes["lite.topic.expiration"], 10, 64)
		if err != nil || minutes <= 0 || t.MessageType() != "LITE" {
			continue
		}
		before := wall - max(least, minutes*60_000)
		r.o.Store.EachLight(names.LitePrefix(t.Name), func(queue string, end int64) bool {
			if r.silent(queue, end, before) {
				r.end(queue, end)
			}
			return true
		})
	}
}

// silent reports whether the queue's last message is of that time or earlier, or has gone with
// its log file. A message whose time can't be read proves nothing.
func (r *Registry) silent(queue string, end, before int64) bool {
	if end == 0 {
		return false
	}
	at := r.o.Store.LightTime(queue)
	return at >= 0 && at <= before || at < 0 && r.o.Store.MinOffset(queue, 0) >= end
}

// end deletes one lite topic with what groups know of it.
func (r *Registry) end(queue string, end int64) {
	parent, lite, _ := names.OfLite(queue)
	gone, err := r.o.Store.ExpireLight(queue, end)
	if err != nil {
		r.o.Log.Error("an expired lite topic could not be deleted", "queue", queue, "err", err)
	}
	if !gone {
		return
	}
	for _, g := range r.groupsOf(parent) {
		if err := r.o.Pop.ForgetQueue(g, queue); err != nil {
			r.o.Log.Error("what a group knows of an expired lite topic could not be deleted", "queue", queue, "group", g, "err", err)
		}
		if err := r.o.Offsets.Delete(g, queue); err != nil {
			r.o.Log.Error("the offset of a group in an expired lite topic could not be deleted", "queue", queue, "group", g, "err", err)
		}
	}
	r.mu.Lock()
	if t := r.mu.topics[queue]; t != nil {
		for len(t.clients) > 0 {
			r.partLocked(t, t.clients[0])
		}
	}
	r.mu.Unlock()
	if f := r.o.Events.Expired; f != nil {
		f(parent, lite)
	}
}

// groupsOf are the groups that are bound to a parent.
func (r *Registry) groupsOf(parent string) (bound []string) {
	for _, g := range r.o.Groups.All() {
		if g.Attributes["lite.bind.topic"] == parent {
			bound = append(bound, g.Name)
		}
	}
	return bound
}

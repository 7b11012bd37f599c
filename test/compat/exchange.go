package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bolidemq/bolide/test/servers"
)

const exchangeMessages = "5000"

// exchangeSuite writes a store through one server and reads it through the other: the
// official Java client sends and receives, and a clean stop lies between.
func exchangeSuite(ctx context.Context, h *harness) error {
	if err := h.buildJava(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 25*time.Minute)
	defer cancel()
	bolide := func(dir, store string) (*servers.Server, error) {
		return servers.StartBolide(ctx, servers.BolideOptions{Binary: h.binary, Dir: dir, Data: store, Args: []string{"--set", "lightQueuesForApache=true"}})
	}
	apache := func(dir, store string) (*servers.Server, error) {
		return servers.StartApache(ctx, servers.ApacheOptions{Dir: dir, Store: store, NoProxy: true, Broker: []string{"transactionCheckInterval=5000", "recallMessageEnable=true", "enableLmq=true", "enableMultiDispatch=true"}})
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"Apache's broker reads what Bolide wrote", func() error { return h.exchange(ctx, "bolide-apache", bolide, apache) }},
		{"Bolide reads what Apache's broker wrote", func() error { return h.exchange(ctx, "apache-bolide", apache, bolide) }},
		{"Bolide takes over what Apache's broker had in flight", func() error { return h.exchangeInFlight(ctx, "apache-bolide-pop", apache, bolide, true) }},
		{"Apache's broker repeats what Bolide had in flight", func() error { return h.exchangeInFlight(ctx, "bolide-apache-pop", bolide, apache, false) }},
		{"open transactions go from Apache's broker to Bolide and back", func() error { return h.exchangeTransactions(ctx, "transactions-back", apache, bolide, apache) }},
		{"open transactions go from Bolide to Apache's broker and back", func() error { return h.exchangeTransactions(ctx, "transactions-forth", bolide, apache, bolide) }},
		{"Timers go from Apache's broker to Bolide and back", func() error { return h.exchangeTimers(ctx, "apache-bolide-timers", apache, bolide) }},
		{"Timers go from Bolide to Apache's broker and back", func() error { return h.exchangeTimers(ctx, "bolide-apache-timers", bolide, apache) }},
		{"lite topics go from Apache's broker to Bolide and back", func() error { return h.exchangeLites(ctx, "lites-back", apache, bolide, apache) }},
		{"lite topics go from Bolide to Apache's broker and back", func() error { return h.exchangeLites(ctx, "lites-forth", bolide, apache, bolide) }},
	} {
		if strings.Contains(c.name, h.only) {
			h.report("exchange: "+c.name, c.run())
		}
	}
	return nil
}

type startAt func(dir, store string) (*servers.Server, error)

// step is a command of the Java suite against a server that is started for it.
type step struct {
	start startAt
	run   []string
}

func (h *harness) exchange(ctx context.Context, name string, writer, reader startAt) error {
	return h.steps(ctx, name, []step{
		{writer, []string{"write", "exchanged", exchangeMessages}},
		{reader, []string{"read", "exchanged", exchangeMessages}},
		// The reader goes on writing in the same store, and the first one reads all of it again.
		{reader, []string{"write", "exchanged-back", exchangeMessages}},
		{writer, []string{"read", "exchanged-back", exchangeMessages}},
		{writer, []string{"read", "exchanged", exchangeMessages}},
	})
}

// exchangeInFlight stops a server that has popped messages, some of them acknowledged. The
// next one has to deliver the others: exactly those, each at its own time, and it accepts
// the first one's receipts; or, not exact, at least those.
func (h *harness) exchangeInFlight(ctx context.Context, name string, first, second startAt, exact bool) error {
	const messages = "300"
	receipts := filepath.Join(h.work, name+"-receipts")
	return h.steps(ctx, name, []step{
		{first, []string{"write", "popped", messages}},
		{first, []string{"pop", "popped", messages, "poppers", receipts}},
		{second, []string{"popped", "popped", messages, "poppers", receipts, fmt.Sprint(exact)}},
	})
}

// exchangeTransactions leaves half messages open in the first server; the second asks about them
// and two of six are decided, the third about the rest. Each asks about those that are open and
// about no others, and what is committed is there once.
func (h *harness) exchangeTransactions(ctx context.Context, name string, first, second, third startAt) error {
	const halves = "120"
	return h.steps(ctx, name, []step{
		{first, []string{"halves", "transactions", halves}},
		{second, []string{"checks", "transactions", halves, "2"}},
		{third, []string{"checks", "transactions", halves, "4"}},
	})
}

// exchangeTimers sends messages for a time of delivery through one server, and takes some back.
// Both have to deliver a part of the rest, the first one the last: none early, lost or twice.
func (h *harness) exchangeTimers(ctx context.Context, name string, first, second startAt) error {
	const messages = "300"
	file := filepath.Join(h.work, name+"-times")
	return h.steps(ctx, name, []step{
		{first, []string{"timers-send", "timed", messages, file}},
		{second, []string{"timers-await", "timed", messages, file}},
		{first, []string{"timers-check", "timed", messages, file}},
	})
}

// exchangeLites gives each server a turn with the lite topics of one store: what the one before
// has left is there, of each in order, and nothing that was consumed.
func (h *harness) exchangeLites(ctx context.Context, name string, turns ...startAt) error {
	var all []step
	for i, start := range turns {
		all = append(all, step{start, []string{"lites", "lites", "40", "lite-readers", fmt.Sprint(i)}})
	}
	return h.steps(ctx, name, all)
}

func (h *harness) steps(ctx context.Context, name string, steps []step) error {
	store := filepath.Join(h.work, name, "store")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	for i, s := range steps {
		server, err := s.start(filepath.Join(h.work, name, fmt.Sprint(i)), store)
		if err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
		out, err := h.java(ctx, server.Ready, s.run...).CombinedOutput()
		stopped := server.Stop()
		if err != nil {
			return fmt.Errorf("step %d, %v: %w\n%s", i, s.run, err, last(out, 3000))
		}
		if stopped != nil {
			return fmt.Errorf("step %d: %w", i, stopped)
		}
	}
	return nil
}

func last(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

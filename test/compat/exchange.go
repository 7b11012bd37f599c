package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	bolide := func(dir, store string) (*servers.Server, error) {
		return servers.StartBolide(ctx, servers.BolideOptions{Binary: h.binary, Dir: dir, Data: store})
	}
	apache := func(dir, store string) (*servers.Server, error) {
		return servers.StartApache(ctx, servers.ApacheOptions{Dir: dir, Store: store, NoProxy: true})
	}
	h.report("exchange: Apache's broker reads what Bolide wrote", h.exchange(ctx, "bolide-apache", bolide, apache))
	h.report("exchange: Bolide reads what Apache's broker wrote", h.exchange(ctx, "apache-bolide", apache, bolide))
	return nil
}

type startAt func(dir, store string) (*servers.Server, error)

func (h *harness) exchange(ctx context.Context, name string, writer, reader startAt) error {
	store := filepath.Join(h.work, name, "store")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	steps := []struct {
		start startAt
		run   []string
	}{
		{writer, []string{"write", "exchanged", exchangeMessages}},
		{reader, []string{"read", "exchanged", exchangeMessages}},
		// The reader goes on writing in the same store, and the first one reads all of it again.
		{reader, []string{"write", "exchanged-back", exchangeMessages}},
		{writer, []string{"read", "exchanged-back", exchangeMessages}},
		{writer, []string{"read", "exchanged", exchangeMessages}},
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

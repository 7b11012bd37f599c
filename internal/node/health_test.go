package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage/storetest"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func watchedOptions(t *testing.T, fs vfs.FS, settings map[string]string) Options {
	all := map[string]string{"mappedFileSizeCommitLog": "33554432", "maxHashSlotNum": "10000", "maxIndexNum": "40000"}
	for key, value := range settings {
		all[key] = value
	}
	return Options{Roles: All, Data: t.TempDir(), FS: fs, Log: slog.New(slog.DiscardHandler),
		NamesrvAddr: "127.0.0.1:0", BrokerAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", ProxyAddr: "127.0.0.1:0", MetricsAddr: "127.0.0.1:0",
		Settings: config.FromMap(all)}
}

// page asks for a page beside the metrics.
func page(t *testing.T, addr, path string) (status int, text string) {
	t.Helper()
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func wantPage(t *testing.T, addr, path string, status int, text string) {
	t.Helper()
	if s, got := page(t, addr, path); s != status || got != text {
		t.Errorf("%s: %d %q, not %d %q", path, s, got, status, text)
	}
}

// becomes asks whether the server is ready until the answer is that.
func becomes(t *testing.T, addr string, status int, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		s, got := page(t, addr, "/ready")
		if s == status && strings.Contains(got, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("/ready: %d %q, not %d %q", s, got, status, text)
		}
	}
}

// A server on a full disk is not ready, though nobody sends and so nobody is refused, and is
// ready again by itself when there is room.
func TestNotReadyOnFullDisk(t *testing.T) {
	disk := storetest.NewDisk(vfs.Default, 96<<20)
	s := startWith(t, watchedOptions(t, disk, nil))
	defer s.stop()
	at := s.Ready().Metrics
	for range 2 {
		wantPage(t, at, "/ready", http.StatusOK, "ready\n")
		disk.Fill(0)
		becomes(t, at, http.StatusServiceUnavailable, "the disk is full")
		wantPage(t, at, "/health", http.StatusOK, "healthy\n")
		disk.Free()
		becomes(t, at, http.StatusOK, "ready")
	}
}

// gate holds up the writes to a disk from when it is shut.
type gate struct {
	shut    atomic.Bool
	reached chan struct{}
	open    chan struct{}
}

func (g *gate) close() {
	g.reached, g.open = make(chan struct{}), make(chan struct{})
	g.shut.Store(true)
}

func (g *gate) wrap(fs vfs.FS) vfs.FS {
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && g.shut.CompareAndSwap(true, false) {
			close(g.reached)
			<-g.open
		}
		return nil
	}))
}

// freeAddress is an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// While a server starts and while it stops its pages are there and say so.
func TestNotReadyWhileStartingAndStopping(t *testing.T) {
	var g gate
	o := watchedOptions(t, g.wrap(vfs.Default), nil)
	o.MetricsAddr = freeAddress(t)
	g.close()
	started := make(chan *Node, 1)
	go func() {
		n, err := Start(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		started <- n
	}()
	<-g.reached
	wantPage(t, o.MetricsAddr, "/ready", http.StatusServiceUnavailable, "starting\n")
	wantPage(t, o.MetricsAddr, "/health", http.StatusOK, "healthy\n")
	if status, _ := page(t, o.MetricsAddr, "/metrics"); status != http.StatusServiceUnavailable {
		t.Errorf("/metrics while starting: %d", status)
	}
	close(g.open)
	n := <-started
	if n == nil {
		t.FailNow()
	}
	wantPage(t, o.MetricsAddr, "/ready", http.StatusOK, "ready\n")
	if status, _ := page(t, o.MetricsAddr, "/metrics"); status != http.StatusOK {
		t.Errorf("/metrics: %d", status)
	}
	g.close()
	stopped := make(chan error, 1)
	go func() { stopped <- n.Stop(context.Background()) }()
	<-g.reached
	wantPage(t, o.MetricsAddr, "/ready", http.StatusServiceUnavailable, "stopping\n")
	wantPage(t, o.MetricsAddr, "/health", http.StatusOK, "healthy\n")
	close(g.open)
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	if _, err := net.Dial("tcp", o.MetricsAddr); err == nil {
		t.Error("the page outlives the server")
	}
}

// A log that could not be written is not ready until it is tried again; one that could not be
// synced is the end of the server, which is not healthy then either.
func TestNotHealthyWithoutLog(t *testing.T) {
	var broken, onlySyncs atomic.Bool
	fault := errors.New("the disk is gone")
	fs := errorfs.Wrap(vfs.Default, errorfs.InjectorFunc(func(op errorfs.Op) error {
		sync := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData
		if broken.Load() && (sync || !onlySyncs.Load() && op.Kind.ReadOrWrite() == errorfs.OpIsWrite) && strings.Contains(op.Path, "commitlog") {
			return fault
		}
		return nil
	}))
	s := startWith(t, watchedOptions(t, fs, map[string]string{"flushDiskType": "SYNC_FLUSH"}))
	defer s.c.Close()
	at := s.Ready().Metrics
	s.taken("create a topic", func() *remoting.Command { return s.createTopic("orders") })
	broken.Store(true) // the first message makes the log's file
	for deadline := time.Now().Add(30 * time.Second); ; {
		if a := s.send("orders", "x"); a.Code == remoting.ResSuccess {
			t.Fatal("a message was taken that was not written")
		}
		status, text := page(t, at, "/ready") // in time, before the log is tried again
		if status == http.StatusServiceUnavailable && strings.Contains(text, fault.Error()) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/ready: %d %q", status, text)
		}
	}
	wantPage(t, at, "/health", http.StatusOK, "healthy\n")
	broken.Store(false)
	becomes(t, at, http.StatusOK, "ready")
	s.taken("send", func() *remoting.Command { return s.send("orders", "x") })
	onlySyncs.Store(true)
	broken.Store(true)
	if a := s.send("orders", "x"); a.Code == remoting.ResSuccess {
		t.Fatal("a message was taken that was not synced")
	}
	select {
	case <-s.Failed():
	case <-time.After(time.Minute):
		t.Fatal("the server goes on")
	}
	wantPage(t, at, "/health", http.StatusServiceUnavailable, "something inside has failed; the log says what\n")
	becomes(t, at, http.StatusServiceUnavailable, fault.Error())
	if err := s.Stop(t.Context()); !errors.Is(err, fault) {
		t.Errorf("stop: %v", err)
	}
}

// A name server alone tells how it is and has no figures.
func TestNameServerIsReady(t *testing.T) {
	s := startWith(t, Options{Roles: Roles{Namesrv: true}, Data: t.TempDir(), NamesrvAddr: "127.0.0.1:0", MetricsAddr: "127.0.0.1:0"})
	defer s.stop()
	wantPage(t, s.Ready().Metrics, "/ready", http.StatusOK, "ready\n")
	if status, _ := page(t, s.Ready().Metrics, "/metrics"); status != http.StatusNotFound {
		t.Errorf("/metrics: %d", status)
	}
}

package namesrv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/config"
)

func newTable(o Options) *Table {
	if o.Config == nil {
		o.Config = config.NewLive(config.DefaultNamesrv())
	}
	return New(o)
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var closed []any
		table := newTable(Options{Expired: func(conn any) {
			mu.Lock()
			defer mu.Unlock()
			closed = append(closed, conn)
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- table.Run(ctx) }()
		short, long, beats := reg("short", 0, "h:1", 1, "t", "u"), reg("long", 0, "h:2", 1, "t", "u"), reg("beats", 0, "h:3", 1, "t", "u")
		short.Timeout, beats.Timeout = 10*time.Second, 10*time.Second
		self := reg("self", 0, Self(1), 1, "t", "u")
		self.Conn = nil
		for _, g := range []Registration{short, long, beats, self} {
			if _, err := table.Register(g); err != nil {
				t.Fatal(err)
			}
		}
		for range 6 {
			time.Sleep(5 * time.Second)
			if !table.Heartbeat("c", "h:3") {
				t.Fatal("a broker with heartbeats is gone")
			}
		}
		synctest.Wait()
		route, _ := table.Route("t")
		var names []string
		for _, b := range route.Brokers {
			names = append(names, b.Name)
		}
		if len(names) != 3 || names[0] != "beats" || names[1] != "long" || names[2] != "self" {
			t.Fatal(names)
		}
		mu.Lock()
		if len(closed) != 1 || closed[0] != Address("h:1") {
			t.Fatal(closed)
		}
		mu.Unlock()
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if route, _ := table.Route("t"); len(route.Brokers) != 1 || route.Brokers[0].Name != "self" {
			t.Fatal("a broker of this process does not expire, all others do", route)
		}
		cancel()
		<-done
	})
}

// R110: cut and restored 500 times around the limit, the route is never missing after a
// registration.
func TestRegistrationsAroundTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(Options{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- table.Run(ctx) }()
		for i := range 500 {
			g := reg("a", 0, "h:1", 1, "t", "u")
			g.Timeout, g.Conn = 10*time.Second, i
			if _, err := table.Register(g); err != nil {
				t.Fatal(err)
			}
			table.CloseConn(i - 1) // the closing of the last connection is noticed late
			if _, ok := table.Route("t"); !ok {
				t.Fatal("no route after registration", i)
			}
			time.Sleep(9900*time.Millisecond + time.Duration(i%200)*time.Millisecond)
		}
		cancel()
		<-done
	})
}

func TestQueryVersion(t *testing.T) {
	table := newTable(Options{})
	g := reg("a", 0, "h:1", 1, "t", "u")
	if _, known, changed := table.QueryVersion("c", "h:1", g.Version); known || !changed {
		t.Fatal(known, changed)
	}
	if _, err := table.Register(g); err != nil {
		t.Fatal(err)
	}
	if here, known, changed := table.QueryVersion("c", "h:1", g.Version); !known || changed || here != g.Version {
		t.Fatal(here, known, changed)
	}
	if _, _, changed := table.QueryVersion("c", "h:1", Version{Counter: 2}); !changed {
		t.Fatal("another version is no change")
	}
}

func TestKV(t *testing.T) {
	var saved []byte
	kv := &KV{Save: func(text []byte) error { saved = text; return nil }}
	if err := kv.Put("n", "", "v"); !errors.Is(err, ErrIllegal) {
		t.Fatal(err)
	}
	if err := kv.Put("n", "k", "v"); err != nil {
		t.Fatal(err)
	}
	again := &KV{}
	if err := again.Load(saved); err != nil {
		t.Fatal(err)
	}
	if v, ok := again.Get("n", "k"); !ok || v != "v" {
		t.Fatal(v, ok)
	}
	kv.Save = func([]byte) error { return errors.New("disk full") }
	if err := kv.Put("n", "k", "w"); err == nil {
		t.Fatal("not saved and no error")
	}
	if v, _ := kv.Get("n", "k"); v != "v" {
		t.Fatal("a change that was not saved is visible")
	}
	kv.Save = nil
	if err := kv.Delete("n", "k"); err != nil {
		t.Fatal(err)
	}
	if values, ok := kv.List("n"); !ok || len(values) != 0 {
		t.Fatal(values, ok)
	}
	if _, ok := kv.List("other"); ok {
		t.Fatal("a namespace that never was")
	}
	for _, text := range []string{"", "{", "\x00\x00\x00", `{"configTable":5}`} {
		if err := again.Load([]byte(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// TestKVIsBounded: the limits of one value and of their number leave room for far more than
// the memory of any machine.
func TestKVIsBounded(t *testing.T) {
	var kv KV
	value := strings.Repeat("v", maxValueBytes)
	var err error
	n := 0
	for ; err == nil && n < 1000; n++ {
		err = kv.Put("n", fmt.Sprint(n), value)
	}
	if !errors.Is(err, ErrIllegal) || n != maxAllBytes/maxValueBytes {
		t.Fatalf("%d values: %v", n, err)
	}
	if err := kv.Put(strings.Repeat("n", maxAllBytes), "k", "v"); !errors.Is(err, ErrIllegal) {
		t.Error("a namespace of any length:", err)
	}
	if err := kv.Delete("n", "0"); err != nil {
		t.Fatal(err)
	}
	if err := kv.Put("n", "again", value); err != nil {
		t.Error("after a deletion:", err)
	}
}

func FuzzKVLoad(f *testing.F) {
	f.Add([]byte(`{"configTable":{"n":{"k":"v"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		kv := &KV{}
		if kv.Load(text) == nil {
			if err := kv.Put("a", "b", "c"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Where a second broker of one name goes, the connection of the first is closed, so that it registers again at
// once; one that is gone itself, or has its place again, is left alone.
func TestTheDisplacedComeBack(t *testing.T) {
	var closed []any
	table := newTable(Options{Expired: func(conn any) { closed = append(closed, conn) }})
	register := func(address Address, conn any) {
		t.Helper()
		g := reg("a", 0, address, 1, "t", "u")
		g.Conn = conn
		if _, err := table.Register(g); err != nil {
			t.Fatal(err)
		}
	}
	saw := func(what string, want ...any) {
		t.Helper()
		if !slices.Equal(closed, want) {
			t.Errorf("%s: closed %v, want %v", what, closed, want)
		}
		closed = nil
	}
	register("h:1", 1)
	register("h:1", 1)
	register("h:2", 2)
	saw("both are there")
	table.Unregister("c", "h:2")
	saw("the second says goodbye", 1)
	table.CloseConn(1)
	register("h:1", 3)
	register("h:2", 4)
	table.CloseConn(4)
	saw("the second is cut off", 3)
	table.CloseConn(3)
	register("h:1", 5)
	register("h:2", 6)
	table.CloseConn(5)
	table.CloseConn(6)
	saw("the first is gone")
	register("h:1", 7)
	register("h:2", 8)
	register("h:1", 7) // at its next period
	table.CloseConn(8)
	table.Unregister("c", "h:1")
	saw("the first had its place again")
	register("h:1", 9)
	register("h:2", 9) // it was moved by who speaks for it
	table.CloseConn(9)
	saw("one connection")
	if n := len(table.mu.r.aside); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}

// A second broker with a name and id that another has is told of; a broker that registers again,
// or comes again after it was gone, is not.
func TestTwoBrokersOfOneName(t *testing.T) {
	var log bytes.Buffer
	table := newTable(Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	register := func(address Address, state int64, conn any) {
		t.Helper()
		g := reg("a", 0, address, state, "t", "u")
		g.Conn = conn
		if _, err := table.Register(g); err != nil {
			t.Fatal(err)
		}
	}
	register("h:1", 1, 1)
	register("h:1", 2, 1)
	table.CloseConn(1)
	register("h:2", 3, 2)
	if log.Len() != 0 {
		t.Errorf("one broker at a time: %s", &log)
	}
	register("h:3", 4, 3)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "address=h:3 was=h:2") {
		t.Errorf("two brokers of one name: %q", text)
	}
}

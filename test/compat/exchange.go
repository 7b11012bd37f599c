package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bolidemq/bolide/test/servers"
)

// exchangeSuite has three servers open one store after the other, with a clean stop between them:
// Bolide between two of Apache's brokers, and the other way round. The official Java client writes
// all that a store can hold through each and finds it again at the next.
func exchangeSuite(ctx context.Context, h *harness) error {
	if err := h.buildJava(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	bolide := turn{bolide: true, start: func(dir, store string) (*servers.Server, error) {
		return servers.StartBolide(ctx, servers.BolideOptions{Binary: h.binary, Dir: dir, Data: store,
			Args: []string{"--set", "lightQueuesForApache=true", "--set", "transactionCheckMax=1000"}})
	}}
	// Its checks of transactions count while nobody is there to answer, too; and sends are not to be
	// refused because the machine is busy.
	apache := turn{start: func(dir, store string) (*servers.Server, error) {
		return servers.StartApache(ctx, servers.ApacheOptions{Dir: dir, Store: store, NoProxy: true, BrokerHeap: "768m",
			Broker: []string{"transactionCheckInterval=5000", "transactionCheckMax=1000", "waitTimeMillsInSendQueue=20000",
				"recallMessageEnable=true", "enableLmq=true", "enableMultiDispatch=true"}})
	}}
	ways := []*way{
		{name: "from Apache's broker to Bolide and back", turns: []turn{apache, bolide, apache}},
		{name: "from Bolide to Apache's broker and back", turns: []turn{bolide, apache, bolide}},
	}
	// Both ways wait for real time, most of it: they go side by side.
	var all sync.WaitGroup
	for i, w := range ways {
		w.dir, w.errs = filepath.Join(h.work, fmt.Sprint("exchange-", i)), map[string]error{}
		for _, kind := range exchanged {
			if title := kind.name + " " + w.name; strings.Contains(title, h.only) {
				w.kinds = append(w.kinds, kind)
			}
		}
		if len(w.kinds) > 0 {
			all.Go(func() { w.run(ctx, h) })
		}
	}
	all.Wait()
	for _, w := range ways {
		for _, kind := range w.kinds {
			h.report("exchange: "+kind.name+" "+w.name, w.errs[kind.name])
		}
	}
	return nil
}

// exchanged are the kinds of what a store holds. at says with which commands of the Java suite the
// client works at each server, of which the second may have to be exact.
var exchanged = []exchangedKind{
	// What the second server writes in the same store is there for the first one as well.
	{"a backlog goes", func(at int, dir string, exact bool) [][]string {
		const n = "5000"
		return [][][]string{
			{{"write", "exchanged", n}},
			{{"read", "exchanged", n}, {"write", "exchanged-back", n}},
			{{"read", "exchanged-back", n}, {"read", "exchanged", n}},
		}[at]
	}},
	// The first server has popped messages, some of them acknowledged. The next one has to deliver the
	// others: Bolide exactly those, each at its own time, and it accepts Apache's receipts; Apache at
	// least those.
	{"what is in flight goes", func(at int, dir string, exact bool) [][]string {
		const n = "300"
		receipts := filepath.Join(dir, "receipts")
		return [][][]string{
			{{"write", "popped", n}, {"pop", "popped", n, "poppers", receipts}},
			{{"popped", "popped", n, "poppers", receipts, strconv.FormatBool(exact)}},
			nil,
		}[at]
	}},
	// Half messages are left open in the first server; the second asks about them and two of six are
	// decided, the third about the rest. Each asks about those that are open and about no others, and
	// what is committed is there once.
	{"open transactions go", func(at int, dir string, exact bool) [][]string {
		const n = "120"
		return [][][]string{
			{{"halves", "transactions", n}},
			{{"checks", "transactions", n, "2"}},
			{{"checks", "transactions", n, "4"}},
		}[at]
	}},
	// Messages for a time of delivery, some of them taken back. Both later servers have to deliver a part
	// of them: none early, lost or twice.
	{"timers go", func(at int, dir string, exact bool) [][]string {
		return [][]string{{[]string{"timers-send", "timers-await", "timers-check"}[at], "timed", "300", filepath.Join(dir, "times")}}
	}},
	// Each server has a turn with the lite topics: what the one before has left is there, of each in order,
	// and nothing that was consumed.
	{"lite topics go", func(at int, dir string, exact bool) [][]string {
		return [][]string{{"lites", "lites", "40", "lite-readers", strconv.Itoa(at)}}
	}},
}

type exchangedKind struct {
	name string
	at   func(turn int, dir string, exact bool) [][]string
}

// way is one store's way through servers.
type way struct {
	name, dir string
	turns     []turn
	kinds     []exchangedKind
	errs      map[string]error // by the name of a kind, which goes no further
}

type turn struct {
	bolide bool
	start  func(dir, store string) (*servers.Server, error)
}

func (w *way) run(ctx context.Context, h *harness) {
	for i := range w.turns {
		if err := w.turn(ctx, h, i); err != nil {
			for _, kind := range w.kinds {
				w.fail(kind.name, i, err)
			}
		}
	}
}

// fail notes the first thing that went wrong with a kind.
func (w *way) fail(kind string, turn int, err error) {
	if w.errs[kind] == nil {
		w.errs[kind] = fmt.Errorf("at server %d: %w", turn+1, err)
	}
}

// turn starts a server in the store, works with it, all kinds side by side, and stops it. The
// error is one that concerns all.
func (w *way) turn(ctx context.Context, h *harness, i int) error {
	args := []string{"together"}
	for _, kind := range w.kinds {
		commands := kind.at(i, w.dir, w.turns[i].bolide)
		if w.errs[kind.name] != nil || len(commands) == 0 {
			continue
		}
		if len(args) > 1 {
			args = append(args, "and")
		}
		args = append(args, kind.name)
		for k, c := range commands {
			if k > 0 {
				args = append(args, "then")
			}
			args = append(args, c...)
		}
	}
	if len(args) == 1 {
		return nil
	}
	store := filepath.Join(w.dir, "store")
	if err := os.MkdirAll(store, 0o755); err != nil {
		return err
	}
	began := time.Now()
	server, err := w.turns[i].start(filepath.Join(w.dir, strconv.Itoa(i)), store)
	if err != nil {
		return err
	}
	client := h.java(ctx, server.Ready, args...)
	if !w.turns[i].bolide {
		client.Env = append(client.Env, "COMPAT_APACHE=yes")
	}
	out, err := client.CombinedOutput()
	stopping := time.Now()
	stopped := server.Stop()
	fmt.Printf("%s, server %d: ready in %.1f s, stopped in %.1f s, %.0f s in all\n",
		w.name, i+1, server.Started.Seconds(), time.Since(stopping).Seconds(), time.Since(began).Seconds())
	verdicts := map[string]string{}
	for _, m := range exchangeVerdict.FindAllStringSubmatch(string(out), -1) {
		verdicts[m[2]] = m[1] + m[3]
	}
	for _, kind := range w.kinds {
		if v, ok := verdicts[kind.name]; slices.Contains(args, kind.name) && !strings.HasPrefix(v, "PASS") {
			w.fail(kind.name, i, fmt.Errorf("%s (%v, %v)\n%s", v, ok, err, last(out, 3000)))
		}
	}
	return stopped
}

// exchangeVerdict finds how the commands of a kind ended.
var exchangeVerdict = regexp.MustCompile(`(?m)^(PASS|FAIL) java (.+) \([0-9.]+ s\): (.*)$`)

func last(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

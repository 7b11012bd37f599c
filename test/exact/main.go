// Command exact asks a server for what POP promises, while it is killed again and again:
//
//	go run ./test/exact --for 2m                    # Bolide, built from this tree
//	go run ./test/exact --for 2m --server apache    # Apache RocketMQ 5.5.0, to compare
//
// Producers send numbered messages. Consumers over both protocols receive them and do at
// random what consumers do: acknowledge one by one or in batches, in time or too late; ask
// for more time; hand back; leave alone; disconnect with messages in hand or before an
// answer is there. Meanwhile the server is killed, or stopped, and started again on its
// data. In the end everything is consumed, and the report says what was sent, delivered and
// acknowledged, what was lost, what came again after an OK for its acknowledgement, and
// why each duplicate came.
//
// Only what an OK promised is judged. The exit status is 1 where a promise was broken.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/bolidemq/bolide/test/load"
)

type options struct {
	server    string
	binary    string
	flush     string
	dir       string
	keep      bool
	duration  time.Duration
	every     time.Duration
	patience  time.Duration
	rate      int
	producers int
	consumers int
	seed      uint64
}

func main() {
	var o options
	flag.StringVar(&o.server, "server", "bolide", "bolide or apache")
	flag.StringVar(&o.binary, "binary", "", "Bolide's binary (default: built from this tree)")
	flag.StringVar(&o.flush, "flush", "ASYNC_FLUSH", "flushDiskType of the broker")
	flag.StringVar(&o.dir, "dir", "", "folder for data and logs (default: a new one, removed after a good run)")
	flag.DurationVar(&o.duration, "for", 2*time.Minute, "how long there is load")
	flag.DurationVar(&o.every, "every", 8*time.Second, "mean time between two deaths of the server")
	flag.DurationVar(&o.patience, "patience", 90*time.Second, "in the end: how long nothing may come before what is left is lost")
	flag.IntVar(&o.rate, "rate", 400, "messages per second")
	flag.IntVar(&o.producers, "producers", 4, "connections that send")
	flag.IntVar(&o.consumers, "consumers", 5, "consumers of each protocol")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64(), "of all random choices")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	good, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "exact:", err)
	}
	if err != nil || !good {
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (good bool, err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "bolide-exact-"); err != nil {
			return false, err
		}
		defer func() {
			if good {
				os.RemoveAll(o.dir)
			} else {
				fmt.Fprintln(os.Stderr, "exact: data and logs are in", o.dir)
			}
		}()
	}
	t, err := open(ctx, o)
	if err != nil {
		return false, err
	}
	defer t.kill()
	place := t.place()
	if err := prepare(ctx, place); err != nil {
		return false, err
	}
	ledger := load.NewLedger(report())
	r := &suite{o: o, place: place, ledger: ledger, random: rand.New(rand.NewPCG(o.seed, 1))}
	began := time.Now()
	if err := r.load(ctx, t); err != nil {
		return false, err
	}
	loaded := time.Since(began)
	if err := r.drain(ctx); err != nil {
		return false, err
	}
	counts, causes := ledger.Settle()
	return write(os.Stdout, o, loaded, counts, causes), nil
}

// report shows the first broken promises of each kind as they are found.
func report() func(string, ...any) {
	var mu sync.Mutex
	shown := map[string]int{}
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if shown[format]++; shown[format] <= 10 {
			fmt.Fprintf(os.Stderr, "%s "+format+"\n", append([]any{time.Now().Format("15:04:05.000")}, args...)...)
		}
	}
}

func prepare(ctx context.Context, p load.Place) error {
	c, err := load.DialRemoting(ctx, p)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.CreateTopic(); err != nil {
		return err
	}
	return c.CreateGroup()
}

// suite is one run of the load.
type suite struct {
	o       options
	place   load.Place
	ledger  *load.Ledger
	random  *rand.Rand
	clients sync.WaitGroup
	stop    context.CancelFunc
	ctx     context.Context
	drains  chan struct{} // closed when the consumers are to acknowledge everything
}

// load runs producers and consumers and lets the server die again and again (R003, R005,
// R006, R013, R042).
func (r *suite) load(ctx context.Context, t target) error {
	r.ctx, r.stop = context.WithCancel(ctx)
	r.drains = make(chan struct{})
	sending, sent := context.WithTimeout(r.ctx, r.o.duration)
	defer sent()
	var producers sync.WaitGroup
	for range r.o.producers {
		producers.Go(func() { r.produce(sending) })
	}
	for i := range 2 * r.o.consumers {
		c := r.consumer(i)
		r.clients.Go(func() { c.run(r.ctx) })
	}
	for {
		wait := time.Duration((0.5 + r.random.Float64()) * float64(r.o.every))
		select {
		case <-time.After(wait):
			kill := r.random.IntN(4) > 0
			if err := t.again(ctx, kill, func() { r.ledger.Died(kill) }); err != nil {
				return fmt.Errorf("start the server again: %w", err)
			}
			continue
		case <-t.ended():
			return fmt.Errorf("the server ended by itself")
		case <-sending.Done():
		}
		break
	}
	producers.Wait()
	return ctx.Err()
}

// drain lets the consumers acknowledge everything until nothing is left or nothing comes.
func (r *suite) drain(ctx context.Context) error {
	close(r.drains)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		left, quiet := r.ledger.Left()
		if left == 0 || quiet > r.o.patience {
			break
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.stop()
	r.clients.Wait()
	return nil
}

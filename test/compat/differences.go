package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/wire/transport"
)

// difference is one question that the two servers answer differently, on purpose.
type difference struct {
	row string // what docs/differences.md calls it
	// ask returns what the server answered, in a few words.
	ask            func(*wire) string
	apache, bolide string // patterns of the whole answer
}

// differencesSuite asks over the wire, without any client library, and holds that each
// server answers as docs/differences.md says.
func differencesSuite(ctx context.Context, h *harness) error {
	w, err := dial(ctx, h)
	if err != nil {
		return err
	}
	defer w.close()
	for _, d := range slices.Concat(remotingDifferences, namesrvDifferences, popDifferences, liteDifferences, grpcDifferences) {
		h.report("difference: "+d.row, w.judge(d))
	}
	return nil
}

// judge asks and compares.
func (w *wire) judge(d difference) error {
	want := d.bolide
	if w.harness.apache {
		want = d.apache
	}
	var got string
	if err := attempt(func() { got = d.ask(w) }); err != nil {
		return err
	}
	if !regexp.MustCompile(`(?s)^(?:` + want + `)$`).MatchString(got) {
		return fmt.Errorf("answered %q, want %q", got, want)
	}
	return nil
}

// attempt runs questions and returns why they could not be asked.
func attempt(ask func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			failed, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = failed.error
		}
	}()
	ask()
	return nil
}

// failure ends a question that could not be asked.
type failure struct{ error }

func (w *wire) must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// wire is the connections to the server under test.
type wire struct {
	ctx     context.Context
	harness *harness
	calls   *transport.Client
	conn    *grpc.ClientConn
	grpc    v2.MessagingServiceClient
	named   int
}

func dial(ctx context.Context, h *harness) (*wire, error) {
	conn, err := grpc.NewClient(h.target.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	return &wire{ctx: ctx, harness: h, calls: transport.NewClient(transport.ClientOptions{}),
		conn: conn, grpc: v2.NewMessagingServiceClient(conn)}, nil
}

func (w *wire) close() {
	w.calls.Close()
	w.conn.Close()
}

// fresh is a name that this run has not used.
func (w *wire) fresh(kind string) string {
	w.named++
	return fmt.Sprintf("diff-%s-%d-%d", kind, time.Now().UnixMilli(), w.named)
}

// until polls a condition that comes true by itself, such as dispatch.
func (w *wire) until(what string, ok func() bool) {
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.must(fmt.Errorf("waited in vain for %s", what))
		}
	}
}

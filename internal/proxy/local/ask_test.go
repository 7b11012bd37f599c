package local

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// commander is a client's telemetry stream whose client answers what it is told to, or
// nothing.
type commander struct {
	proxy.Commander
	verdict proxy.Verdict
	silent  bool
}

func (c *commander) StackTrace(context.Context) (string, error) { return "stacks", nil }

func (c *commander) Verify(ctx context.Context, topic string, record []byte) (proxy.Verdict, error) {
	if c.silent {
		<-ctx.Done()
		return proxy.VerdictNone, ctx.Err()
	}
	return c.verdict, nil
}

// TestAskGRPCClient: an administrator sees a gRPC client as a Remoting one.
func TestAskGRPCClient(t *testing.T) {
	p := newParts(t)
	stream := &commander{verdict: proxy.VerdictFailed}
	join := func(stream proxy.Commander) clients.Asked {
		t.Helper()
		c := &proxy.Client{ID: "c1", Language: "JAVA", Version: "5.0.7", Remote: netip.MustParseAddrPort("10.1.2.3:4000"), Stream: stream,
			Settings: proxy.Settings{Kind: proxy.SimpleConsumer, Group: "g", Subscriptions: []proxy.Subscription{{Topic: "T", Expression: "a || b"}}}}
		if err := p.Join(c); err != nil {
			t.Fatal(err)
		}
		found, ok := p.registry.Find("g", "c1")
		if !ok {
			t.Fatal("not there")
		}
		return found.Channel.(clients.Asked)
	}
	ask := func(ch clients.Asked, h remoting.Header, timeout time.Duration) (string, error) {
		type result struct {
			text string
			err  error
		}
		done := make(chan result, 1)
		ch.Ask(clients.Question{Header: h, Timeout: timeout}, func(a clients.Answer, err error) { done <- result{string(a.Body), err} })
		r := <-done
		return r.text, r.err
	}
	ch := join(stream)
	text, err := ask(ch, &remoting.GetConsumerRunningInfoRequest{JstackEnable: true}, time.Minute)
	var info remoting.ConsumerRunningInfo
	if err != nil || remoting.Unmarshal([]byte(text), &info) != nil || info.Jstack != "stacks" || len(info.SubscriptionSet) != 1 ||
		info.SubscriptionSet[0].SubString != "a || b" || info.Properties["PROP_CONSUME_TYPE"] != clients.ConsumeActively {
		t.Errorf("%s, %v", text, err)
	}
	if text, err := ask(ch, &remoting.ConsumeMessageDirectlyRequest{}, time.Minute); err != nil || !strings.Contains(text, "CR_LATER") {
		t.Errorf("%s, %v", text, err)
	}
	stream.silent = true
	if _, err := ask(ch, &remoting.ConsumeMessageDirectlyRequest{}, time.Millisecond); !errors.Is(err, clients.ErrNoAnswer) {
		t.Errorf("a client that does not answer: %v", err)
	}
	if _, err := ask(ch, &remoting.InvokeBrokerToGetConsumerStatusRequest{}, time.Minute); err == nil {
		t.Error("gRPC has no word for a consumer's offsets")
	}
	ch = join(nil)
	if _, err := ask(ch, &remoting.GetConsumerRunningInfoRequest{}, time.Minute); !errors.Is(err, errNoStream) {
		t.Errorf("without a stream: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p.Run(ctx)
	ch = join(stream)
	if _, err := ask(ch, &remoting.GetConsumerRunningInfoRequest{}, time.Minute); !errors.Is(err, errNoStream) {
		t.Errorf("asked after the end: %v", err)
	}
}

package bolidetest_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bolidemq/bolide/bolidetest"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a raw caller.
type client struct {
	t    testing.TB
	addr string
	c    *transport.Client
}

func connect(t testing.TB, addr string) *client {
	c := &client{t: t, addr: addr, c: transport.NewClient(transport.ClientOptions{})}
	t.Cleanup(c.c.Close)
	return c
}

func (c *client) call(code int32, h remoting.Header, body []byte) *remoting.Command {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	answer, err := c.c.Call(ctx, c.addr, code, h, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

func (c *client) send(topic, body string) {
	c.t.Helper()
	if a := c.trySend(topic, body); a.Code != remoting.ResSuccess {
		c.t.Fatalf("send: %s: %s", remoting.ResponseName(a.Code), a.Remark)
	}
}

func (c *client) trySend(topic, body string) *remoting.Command {
	c.t.Helper()
	properties := message.Properties("").With(message.PropertyUniqKey, message.NewUniqueID())
	return c.call(remoting.ReqSendMessageV2, &remoting.SendMessageRequest{
		V2: true, ProducerGroup: "p", Topic: topic, DefaultTopic: names.AutoCreate, DefaultTopicQueueNums: 4,
		BornTimestamp: time.Now().UnixMilli(), Properties: string(properties),
	}, []byte(body))
}

// pop returns the bodies that came and how often they had been delivered before.
func (c *client) pop(topic string, invisible, poll time.Duration) map[string]int32 {
	c.t.Helper()
	a := c.call(remoting.ReqPopMessage, &remoting.PopMessageRequest{
		ConsumerGroup: "g", Topic: topic, QueueID: -1, MaxMsgNums: 32, InvisibleTime: invisible.Milliseconds(),
		PollTime: poll.Milliseconds(), BornTime: time.Now().UnixMilli(), ExpType: "TAG", Exp: "*",
	}, nil)
	if a.Code == remoting.ResPollingTimeout {
		return nil
	}
	var h remoting.PopMessageResponse
	if a.Code != remoting.ResSuccess {
		c.t.Fatalf("pop: %s: %s", remoting.ResponseName(a.Code), a.Remark)
	}
	if err := a.Decode(&h); err != nil {
		c.t.Fatal(err)
	}
	if _, err := receipt.ParseStartOffsets(h.StartOffsetInfo); err != nil {
		c.t.Fatal(err)
	}
	got := map[string]int32{}
	for b := a.Body; len(b) > 0; {
		var m message.Message
		n, err := message.DecodeStored(b, &m)
		if err != nil {
			c.t.Fatal(err)
		}
		got[string(m.Body)] = m.ReconsumeTimes
		b = b[n:]
	}
	return got
}

// R121: twenty servers in one process, each with its own folder and ports, leave nothing
// behind.
func TestTwentyServers(t *testing.T) {
	began := time.Now()
	t.Run("all", func(t *testing.T) {
		for i := range 20 {
			t.Run(fmt.Sprint(i), func(t *testing.T) {
				t.Parallel()
				srv := bolidetest.Start(t)
				srv.CreateTopic("orders", "NORMAL")
				c := connect(t, srv.Broker())
				body := fmt.Sprint("message of ", i)
				c.send("orders", body)
				got := c.pop("orders", time.Minute, 10*time.Second)
				if _, ok := got[body]; !ok || len(got) != 1 {
					t.Errorf("received %v", got)
				}
			})
		}
	})
	t.Logf("20 servers in %v", time.Since(began).Round(time.Millisecond))
}

func TestAdvance(t *testing.T) {
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	c := connect(t, srv.Broker())
	c.send("orders", "m")
	if got := c.pop("orders", 2*time.Hour, 10*time.Second); len(got) != 1 {
		t.Fatalf("first: %v", got)
	}
	if got := c.pop("orders", 2*time.Hour, 0); len(got) != 0 {
		t.Fatalf("while invisible: %v", got)
	}
	srv.Advance(2*time.Hour + time.Second)
	got := c.pop("orders", 2*time.Hour, 10*time.Second)
	if times, ok := got["m"]; !ok || times != 1 {
		t.Fatalf("after two hours: %v", got)
	}
}

// failed is a test that notes why it failed, and goes no further.
type failed struct {
	testing.TB
	why string
}

func (f *failed) Fatalf(format string, args ...any) {
	f.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// whyOf is why do fails.
func (f *failed) whyOf(do func()) string {
	f.why = ""
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
	return f.why
}

// TestMisuse: what a server cannot be asked for fails the test with a sentence.
func TestMisuse(t *testing.T) {
	f := &failed{TB: t}
	srv := bolidetest.Start(f)
	for _, kind := range []string{"normal", "FIFO", "Delay", "transaction", "priority", "lite"} {
		srv.CreateTopic("of-"+kind, kind)
	}
	for want, do := range map[string]func(){
		"time does not go back":   func() { srv.Advance(-time.Second) },
		"MIXED message type is":   func() { srv.CreateTopic("mixed", "mixed") },
		"value is not in set: [U": func() { srv.CreateTopic("odd", "odd") },
	} {
		if why := f.whyOf(do); !strings.Contains(why, want) {
			t.Errorf("%q, without %q", why, want)
		}
	}
}

func TestRestart(t *testing.T) {
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	connect(t, srv.Broker()).send("orders", "before")
	at := srv.Broker()
	srv.Restart()
	if srv.Broker() != at {
		t.Errorf("it was at %s and is at %s", at, srv.Broker())
	}
	c := connect(t, srv.Broker())
	c.send("orders", "after")
	got := map[string]int32{}
	for len(got) < 2 {
		more := c.pop("orders", time.Minute, 10*time.Second)
		if len(more) == 0 {
			break
		}
		for body, times := range more {
			got[body] = times
		}
	}
	if len(got) != 2 {
		t.Errorf("received %v", got)
	}
}

// TestRestartBesideCallers: other goroutines of the test go on asking while the server
// restarts; addresses they get at once, for the rest they wait.
func TestRestartBesideCallers(t *testing.T) {
	srv := bolidetest.Start(t)
	at := srv.Broker()
	var stop atomic.Bool
	var callers sync.WaitGroup
	for i, call := range []func(int){
		func(int) {
			if got := srv.Broker(); got != at {
				t.Errorf("the broker is at %q, it was at %q", got, at)
			}
			_, _, _ = srv.Namesrv(), srv.GRPC(), srv.Proxy()
		},
		func(int) { srv.Advance(time.Second) },
		func(n int) { srv.CreateTopic(fmt.Sprint("orders-", n%4), "NORMAL") },
	} {
		callers.Go(func() {
			n := 0
			for ; !stop.Load() || n == 0; n++ {
				call(n)
			}
			t.Logf("caller %d: %d calls", i, n)
		})
	}
	for range 2 {
		srv.Restart()
	}
	stop.Store(true)
	callers.Wait()
}

// TestStopped: a stopped server still has its addresses, refuses the rest, and can be started
// again.
func TestStopped(t *testing.T) {
	f := &failed{TB: t}
	srv := bolidetest.Start(f)
	at := srv.GRPC()
	srv.Stop()
	for what, do := range map[string]func(){
		"Advance":                           func() { srv.Advance(time.Second) },
		"Disconnect":                        srv.Disconnect,
		"FillDisk":                          srv.FillDisk,
		"FreeDisk":                          srv.FreeDisk,
		`CreateTopic("orders", "NORMAL")`:   func() { srv.CreateTopic("orders", "NORMAL") },
		`CreateGroup("billing", 3)`:         func() { srv.CreateGroup("billing", 3) },
		`CreateLiteGroup("bots", "orders")`: func() { srv.CreateLiteGroup("bots", "orders") },
	} {
		if want := "bolidetest: " + what + ": the server is stopped"; f.whyOf(do) != want {
			t.Errorf("%q, not %q", f.why, want)
		}
	}
	srv.Restart()
	srv.CreateTopic("orders", "NORMAL")
	if got := srv.GRPC(); got != at {
		t.Errorf("it was at %q and is at %q", at, got)
	}
}

// Every port of the process answers everything.
func TestEveryPortAnswersEverything(t *testing.T) {
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	for _, addr := range []string{srv.Namesrv(), srv.Broker(), srv.GRPC(), srv.Proxy()} {
		c := connect(t, addr)
		c.send("orders", "to "+addr)
		a := c.call(remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: "orders"}, nil)
		if a.Code != remoting.ResSuccess {
			t.Errorf("route at %s: %d %s", addr, a.Code, a.Remark)
		}
	}
}

// A group has the attempts that it was made with, and then its dead letter.
func TestCreateGroup(t *testing.T) {
	srv := bolidetest.Start(t)
	srv.CreateTopic("orders", "NORMAL")
	srv.CreateGroup("g", 2)
	c := connect(t, srv.Broker())
	c.send("orders", "m")
	for attempt := range int32(2) {
		got := c.pop("orders", time.Hour, 10*time.Second)
		if before, ok := got["m"]; !ok || before != attempt {
			t.Fatalf("delivery %d: %v", attempt+1, got)
		}
		srv.Advance(2 * time.Hour)
	}
	if got := c.pop("orders", time.Hour, 0); len(got) != 0 {
		t.Errorf("delivered a third time: %v", got)
	}
	if got := c.pop("%DLQ%g", time.Hour, 10*time.Second); len(got) != 1 {
		t.Errorf("dead letters: %v", got)
	}
}

// A lite group may subscribe below its topic, one that is made otherwise may not.
func TestCreateLiteGroup(t *testing.T) {
	srv := bolidetest.Start(t)
	srv.CreateTopic("chats", "LITE")
	srv.CreateLiteGroup("bots", "chats")
	srv.CreateGroup("others", 3)
	c := connect(t, srv.Broker())
	for group, want := range map[string]bool{"bots": true, "others": false} {
		a := c.call(remoting.ReqLiteSubscriptionCtl, nil, remoting.Marshal(&remoting.LiteSubscriptions{Set: []remoting.LiteSubscription{
			{Action: "PARTIAL_ADD", ClientID: "client of " + group, Group: group, Topic: "chats", LiteTopicSet: []string{"room"}}}}))
		if (a.Code == remoting.ResSuccess) != want {
			t.Errorf("%s: %s: %s", group, remoting.ResponseName(a.Code), a.Remark)
		}
	}
}

package namesrvrpc

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/broker/register"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// nameServer is one that can be stopped and started again with an empty table.
type nameServer struct {
	t       *testing.T
	network *transport.PipeNetwork
	addr    string
	table   *namesrv.Table
	server  *transport.Server
}

func (n *nameServer) start() {
	n.t.Helper()
	var l net.Listener
	var err error
	if l, err = n.network.Listen(n.addr); err != nil {
		n.t.Fatal(err)
	}
	n.table = namesrv.New(namesrv.Options{Config: config.NewLive(config.DefaultNamesrv()),
		Expired: func(conn any) { conn.(*transport.Conn).Close() }})
	s := New(Options{Table: n.table})
	n.server = transport.NewServer(transport.Options{Handler: s.Handle, OnClose: s.Closed})
	go n.server.Serve(context.Background(), l)
}

func (n *nameServer) stop() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = n.server.Shutdown(ctx)
	synctest.Wait()
}

// broker is the part of a broker that registers.
type broker struct {
	topics *topic.Table
	reg    *register.Registration
	config *config.Live[config.Broker]
	stop   func()
}

func startBroker(t *testing.T, network *transport.PipeNetwork, namesrvs string, local register.Local, change func(*config.Broker)) *broker {
	t.Helper()
	c := config.DefaultBroker()
	c.NamesrvAddr = namesrvs
	if change != nil {
		change(&c)
	}
	b := &broker{config: config.NewLive(c)}
	var err error
	b.topics, err = topic.Open(topic.Options{Config: b.config, Events: topic.Events{Changed: func(names []string) { b.reg.Changed(names) }}})
	if err != nil {
		t.Fatal(err)
	}
	client := transport.NewClient(transport.ClientOptions{Dial: network.Dial})
	b.reg = register.New(register.Options{Config: b.config, Topics: b.topics, Local: local, Client: client,
		Address: func(local netip.AddrPort) string { return netip.AddrPortFrom(local.Addr(), 10911).String() }})
	if err := b.reg.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- b.reg.Run(ctx) }()
	b.stop = func() {
		cancel()
		<-done
		client.Close()
	}
	return b
}

func routed(table *namesrv.Table, name string) bool {
	_, ok := table.Route(name)
	return ok
}

// create makes a topic as a send does, and returns when the sender would be answered.
func (b *broker) create(t *testing.T, name string) {
	t.Helper()
	_, created, err := b.topics.CreateForSend(name, "TBW102", 4, 0)
	if err != nil || !created {
		t.Fatal(created, err)
	}
	done := make(chan struct{})
	b.reg.Announce([]string{name}, func() { close(done) })
	<-done
}

// R109: a new topic is in the route before the first send returns. R112: a broker that stops
// is out of the routes when its stop returns.
func TestNewTopicIsRoutedBeforeTheAnswer(t *testing.T) {
	for name, change := range map[string]func(*config.Broker){
		"plain":      nil,
		"compressed": func(c *config.Broker) { c.CompressedRegister = true },
		"probing":    func(c *config.Broker) { c.ForceRegister = false },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := transport.NewPipeNetwork()
				one, two := &nameServer{t: t, network: network, addr: "10.0.0.1:9876"}, &nameServer{t: t, network: network, addr: "10.0.0.2:9876"}
				one.start()
				two.start()
				own := namesrv.New(namesrv.Options{Config: config.NewLive(config.DefaultNamesrv())})
				b := startBroker(t, network, "10.0.0.1:9876;10.0.0.2:9876", own.Local("DefaultCluster", "broker-a", 0, namesrv.Self(10911)), change)
				if !routed(own, "TBW102") {
					t.Fatal("the name server of this process does not know the broker")
				}
				synctest.Wait()
				if up, all := b.reg.Up(); up != 2 || all != 2 {
					t.Fatal(up, all)
				}
				b.create(t, "new")
				for _, table := range []*namesrv.Table{own, one.table, two.table} {
					if !routed(table, "new") {
						t.Fatal("not routed before the answer")
					}
				}
				// Nothing changes for an hour, and the broker stays.
				time.Sleep(time.Hour)
				if !routed(one.table, "new") || !routed(one.table, "SELF_TEST_TOPIC") {
					t.Fatal("lost within an hour")
				}
				if err := b.topics.Delete("new"); err != nil {
					t.Fatal(err)
				}
				if routed(own, "new") {
					t.Fatal("deleted and still routed")
				}
				b.stop()
				if routed(one.table, "SELF_TEST_TOPIC") || routed(two.table, "SELF_TEST_TOPIC") {
					t.Fatal("the farewell was not heard")
				}
				one.stop()
				two.stop()
			})
		})
	}
}

// R129: any start order works. R111: a name server that was restarted has the routes
// back within seconds.
func TestNameServerComesLateAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := transport.NewPipeNetwork()
		ns := &nameServer{t: t, network: network, addr: "10.0.0.1:9876"}
		b := startBroker(t, network, ns.addr, nil, nil)
		time.Sleep(time.Minute)
		begun := time.Now()
		b.create(t, "early")
		if time.Since(begun) != 0 {
			t.Fatal("a send waited for a name server that is down")
		}
		ns.start()
		time.Sleep(3 * time.Second)
		if !routed(ns.table, "early") {
			t.Fatal("not registered 3 s after the name server came")
		}
		for range 3 {
			ns.stop()
			time.Sleep(10 * time.Second)
			ns.start()
			time.Sleep(3 * time.Second)
			if !routed(ns.table, "early") {
				t.Fatal("not registered 3 s after the name server came back")
			}
		}
		b.stop()
		ns.stop()
	})
}

// A second broker of one name takes the place of the first; when it goes, the first has it back at once,
// not only at its next period.
func TestFirstOfTwoOfOneNameComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := transport.NewPipeNetwork()
		ns := &nameServer{t: t, network: network, addr: "10.0.0.1:9876"}
		ns.start()
		l, err := network.Listen("10.0.0.2:9876") // each broker has the address that it comes to
		if err != nil {
			t.Fatal(err)
		}
		go ns.server.Serve(context.Background(), l)
		at := func(want string) {
			t.Helper()
			synctest.Wait()
			route, ok := ns.table.Route("SELF_TEST_TOPIC")
			if !ok || len(route.Brokers) != 1 || route.Brokers[0].Addresses[0] != namesrv.Address(want) {
				t.Errorf("%+v, want %s", route, want)
			}
		}
		one := startBroker(t, network, "10.0.0.1:9876", nil, nil)
		at("10.0.0.1:10911")
		two := startBroker(t, network, "10.0.0.2:9876", nil, nil)
		at("10.0.0.2:10911")
		two.stop()
		at("10.0.0.1:10911")
		one.stop()
		ns.stop()
	})
}

// R113: a change of the list takes effect at once.
func TestListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := transport.NewPipeNetwork()
		one, two := &nameServer{t: t, network: network, addr: "10.0.0.1:9876"}, &nameServer{t: t, network: network, addr: "10.0.0.2:9876"}
		one.start()
		two.start()
		b := startBroker(t, network, one.addr, nil, nil)
		synctest.Wait()
		if !routed(one.table, "TBW102") || routed(two.table, "TBW102") {
			t.Fatal("registered with the wrong ones")
		}
		if err := b.config.Change(map[string]string{"namesrvAddr": two.addr}); err != nil {
			t.Fatal(err)
		}
		b.reg.Refresh()
		time.Sleep(time.Second)
		if routed(one.table, "TBW102") || !routed(two.table, "TBW102") {
			t.Fatal("the new list has no effect")
		}
		b.stop()
		one.stop()
		two.stop()
	})
}

// A name server that takes requests and never answers delays a send no longer than the
// limit.
func TestSilentNameServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := transport.NewPipeNetwork()
		ns := &nameServer{t: t, network: network, addr: "10.0.0.1:9876"}
		ns.start()
		b := startBroker(t, network, ns.addr, nil, nil)
		synctest.Wait()
		ns.stop()
		l, err := network.Listen(ns.addr)
		if err != nil {
			t.Fatal(err)
		}
		silent := transport.NewServer(transport.Options{Handler: func(*transport.Request) {}})
		go silent.Serve(context.Background(), l)
		time.Sleep(5 * time.Second)
		begun := time.Now()
		b.create(t, "new")
		if d := time.Since(begun); d > 2*time.Second {
			t.Fatalf("a send waited %v", d)
		}
		b.stop()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = silent.Shutdown(ctx)
	})
}

// How often and in which form a broker registers can be changed while it runs.
func TestRegistrationSettingsAreLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := transport.NewPipeNetwork()
		l, err := network.Listen("10.0.0.1:9876")
		if err != nil {
			t.Fatal(err)
		}
		var whole, probes, compressed, hung int
		hang := false
		server := transport.NewServer(transport.Options{Handler: func(r *transport.Request) {
			switch r.Code {
			case remoting.ReqRegisterBroker:
				var h remoting.RegisterBrokerRequest
				if err := r.Decode(&h); err != nil {
					t.Error(err)
				}
				if whole++; h.Compressed {
					compressed++
				}
			case remoting.ReqQueryDataVersion:
				probes++
			}
			if hang {
				hung++
				return
			}
			r.Responder().Reply(0, "", nil, nil)
		}})
		go server.Serve(context.Background(), l)
		b := startBroker(t, network, "10.0.0.1:9876", nil, nil)
		tenMinutes := func(setting, value string) {
			t.Helper()
			if setting != "" {
				if err := b.config.Change(map[string]string{setting: value}); err != nil {
					t.Fatal(err)
				}
				b.reg.Refresh()
			}
			time.Sleep(time.Minute) // the period that has begun
			whole, probes, compressed, hung = 0, 0, 0, 0
			time.Sleep(10 * time.Minute)
		}
		if tenMinutes("", ""); whole < 19 || whole > 21 || compressed != 0 || probes != 0 {
			t.Fatalf("ten minutes: %d registrations, %d compressed, %d questions", whole, compressed, probes)
		}
		if tenMinutes("registerNameServerPeriod", "60000"); whole < 9 || whole > 11 {
			t.Errorf("each minute: %d registrations", whole)
		}
		if tenMinutes("compressedRegister", "true"); compressed < 9 {
			t.Errorf("compressed: %d of %d", compressed, whole)
		}
		if tenMinutes("forceRegister", "false"); probes < 9 {
			t.Errorf("without force: %d questions, %d registrations", probes, whole)
		}
		hang = true
		tenMinutes("forceRegister", "true")
		slow := hung
		if tenMinutes("registerBrokerTimeoutMills", "1000"); hung < 5*slow {
			t.Errorf("a name server that hangs is tried %d times, with a limit of 24 s %d times", hung, slow)
		}
		hang = false
		b.stop()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = server.Shutdown(ctx)
	})
}

package bench_test

import (
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/bolidetest"
	"github.com/bolidemq/bolide/internal/bench"
)

// TestLapseNeedsTime: messages that lapse before all of them are popped measure nothing.
func TestLapseNeedsTime(t *testing.T) {
	srv := bolidetest.Start(t)
	_, err := bench.Workloads["lapse"](t.Context(), bench.Options{
		Protocol: bench.Remoting, Namesrv: srv.Namesrv(), Invisible: time.Millisecond,
		Queues: 4, Size: 256, Connections: 2, InFlight: 4, Count: 100, Batch: 32,
	})
	if err == nil || !strings.Contains(err.Error(), "--invisible has to be longer") {
		t.Errorf("%v", err)
	}
}

// TestWorkloads runs every workload over both protocols against a server in this process: a
// run is complete only when every message was seen exactly once.
func TestWorkloads(t *testing.T) {
	srv := bolidetest.Start(t)
	plain := bench.Options{
		Namesrv: srv.Namesrv(), Endpoint: srv.GRPC(),
		Queues: 4, Size: 256, Connections: 2, InFlight: 4, Count: 500, Batch: 32,
		Ahead: 3 * time.Second, Rest: time.Millisecond,
	}
	moments := map[string]string{"timer": "before, pending, after", "lite": "before, at rest, after"}
	for _, c := range []struct {
		name, workload string
		change         func(*bench.Options)
	}{
		{"send over Remoting", "send", func(o *bench.Options) { o.Protocol = bench.Remoting }},
		{"send after a warm-up", "send", func(o *bench.Options) { o.Protocol, o.Warmup = bench.Remoting, 50 }},
		{"pull", "pull", func(o *bench.Options) { o.Protocol = bench.Remoting }},
		{"pull by SQL92", "pull", func(o *bench.Options) { o.Protocol, o.OneIn = bench.Remoting, 7 }},
		{"pull in order", "pull", func(o *bench.Options) { o.Protocol, o.Orderly = bench.Remoting, true }},
		{"latency by SQL92", "latency", func(o *bench.Options) { o.Protocol, o.Rate, o.Duration, o.OneIn = bench.Remoting, 500, time.Second, 7 }},
		{"pop over Remoting", "pop", func(o *bench.Options) { o.Protocol = bench.Remoting }},
		{"pop over Remoting, batch acks", "pop", func(o *bench.Options) { o.Protocol, o.Ack = bench.Remoting, bench.AckBatch }},
		{"pop over Remoting, no acks", "pop", func(o *bench.Options) { o.Protocol, o.Ack = bench.Remoting, bench.AckNone }},
		{"pop over Remoting, acks later", "pop", func(o *bench.Options) { o.Protocol, o.Ack = bench.Remoting, bench.AckLater }},
		{"latency of a waiting pop", "latency", func(o *bench.Options) {
			o.Protocol, o.Waiting, o.Rate, o.Duration = bench.Remoting, bench.WaitingPop, 500, time.Second
		}},
		{"latency of a waiting pop by SQL92", "latency", func(o *bench.Options) {
			o.Protocol, o.Waiting, o.Rate, o.Duration, o.OneIn = bench.Remoting, bench.WaitingPop, 500, time.Second, 7
		}},
		// On a busy machine too, all must be popped two seconds before it lapses, and acknowledged
		// before it lapses again.
		{"lapse together", "lapse", func(o *bench.Options) { o.Protocol, o.Invisible = bench.Remoting, 10*time.Second }},
		{"lapse together, batch acks", "lapse", func(o *bench.Options) {
			o.Protocol, o.Invisible, o.Ack = bench.Remoting, 10*time.Second, bench.AckBatch
		}},
		{"lapse one by one", "lapse", func(o *bench.Options) {
			o.Protocol, o.Invisible, o.Rate, o.Duration = bench.Remoting, 10*time.Second, 500, time.Second
		}},
		{"latency in order", "latency", func(o *bench.Options) {
			o.Protocol, o.Orderly, o.Rate, o.Duration = bench.Remoting, true, 500, time.Second
		}},
		{"transactions", "transaction", func(o *bench.Options) { o.Protocol, o.Rate, o.Duration = bench.Remoting, 500, time.Second }},
		{"latency over Remoting", "latency", func(o *bench.Options) { o.Protocol, o.Rate, o.Duration = bench.Remoting, 500, time.Second }},
		{"timers at a rate", "timer", func(o *bench.Options) { o.Protocol, o.Rate, o.Duration = bench.Remoting, 500, time.Second }},
		{"timers together, other traffic beside", "timer", func(o *bench.Options) {
			o.Protocol, o.Waiting, o.Together, o.Beside = bench.Remoting, bench.WaitingPop, true, 50
		}},
		{"timers over gRPC", "timer", func(o *bench.Options) { o.Protocol, o.Rate, o.Duration = bench.GRPC, 500, time.Second }},
		{"lite topics", "lite", func(o *bench.Options) {
			o.Lites, o.Active, o.Clients, o.Rate, o.Duration = 300, 20, 7, 500, time.Second
		}},
		{"send over gRPC", "send", func(o *bench.Options) { o.Protocol = bench.GRPC }},
		{"send over gRPC and TLS", "send", func(o *bench.Options) { o.Protocol, o.TLS = bench.GRPC, true }},
		{"pop over gRPC", "pop", func(o *bench.Options) { o.Protocol = bench.GRPC }},
		{"pop over gRPC, batch acks", "pop", func(o *bench.Options) { o.Protocol, o.Ack = bench.GRPC, bench.AckBatch }},
		{"pop over gRPC, no acks", "pop", func(o *bench.Options) { o.Protocol, o.Ack = bench.GRPC, bench.AckNone }},
		{"pop over gRPC, acks later", "pop", func(o *bench.Options) { o.Protocol, o.Ack = bench.GRPC, bench.AckLater }},
		{"latency over gRPC", "latency", func(o *bench.Options) { o.Protocol, o.Rate, o.Duration = bench.GRPC, 500, time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // most of them wait
			o := plain
			c.change(&o)
			seen := &seen{}
			o.Server = seen
			r, err := bench.Workloads[c.workload](t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Complete() || r.Messages != 500 || r.Unverified {
				t.Errorf("%+v", r)
			}
			if r.Latency.P50 <= 0 || r.Latency.Max < r.Latency.P99 || r.PerSecond <= 0 {
				t.Errorf("latency %+v, %v/s", r.Latency, r.PerSecond)
			}
			if seen.begun != 1 || seen.ended != 1 || r.Server == nil || r.Server.CPUSecondsPerMillion != 4000 || r.Server.CPUPercent <= 0 {
				t.Errorf("the measured part began %d times and ended %d times: %+v", seen.begun, seen.ended, r.Server)
			}
			if o.Beside > 0 && (r.Beside == nil || r.Beside.Before.P50 <= 0 || r.Beside.During.P50 <= 0) {
				t.Errorf("beside: %+v", r.Beside)
			}
			if got := names(r.Memory); got != moments[c.workload] {
				t.Errorf("memory was looked at %s", got)
			}
		})
	}
}

// TestTimersThatStay: what is due in a day is stored, and does not come beside what is due soon.
func TestTimersThatStay(t *testing.T) {
	srv := bolidetest.Start(t)
	o := bench.Options{
		Protocol: bench.Remoting, Namesrv: srv.Namesrv(), Ahead: 3 * time.Second, Server: &seen{},
		Queues: 4, Size: 256, Connections: 2, InFlight: 4, Batch: 32, Pending: 300,
	}
	r, err := bench.Workloads["timer"](t.Context(), o)
	if err != nil || r.Messages != 300 || !r.Unverified || !r.Complete() || names(r.Memory) != "before, pending" {
		t.Errorf("alone: %+v, %v", r, err)
	}
	o.Rate, o.Duration = 100, time.Second
	r, err = bench.Workloads["timer"](t.Context(), o)
	if err != nil || r.Messages != 100 || r.Unverified || !r.Complete() || names(r.Memory) != "before, pending, after" {
		t.Errorf("with others that are due soon: %+v, %v", r, err)
	}
	if r.LastAfter < 0.98 || r.Latency.Max <= 0 {
		t.Errorf("the last one came %v s after the first was due, %+v", r.LastAfter, r.Latency)
	}
}

// TestWhatCannotBeMeasured: options that a workload can do nothing with are refused with the
// flag's name.
func TestWhatCannotBeMeasured(t *testing.T) {
	srv := bolidetest.Start(t)
	for _, c := range []struct {
		workload, flag string
		spoil          func(*bench.Options)
	}{
		{"latency", "--rate", func(o *bench.Options) { o.Rate = 0 }},
		{"timer", "--pending", func(o *bench.Options) { o.Rate = 0 }},
		{"lite", "--active", func(o *bench.Options) { o.Active = 11 }},
		{"lite", "--clients", func(o *bench.Options) { o.Clients = 0 }},
		{"lite", "--topic", func(o *bench.Options) { o.Topic = "lights" }},
		{"idle", "--duration", func(o *bench.Options) { o.Duration = 0 }},
		{"idle", "--protocol remoting", func(o *bench.Options) { o.Protocol = bench.GRPC }},
		{"transaction", "--protocol remoting", func(o *bench.Options) { o.Protocol = bench.GRPC }},
	} {
		o := bench.Options{
			Protocol: bench.Remoting, Namesrv: srv.Namesrv(), Endpoint: srv.GRPC(), Rate: 10, Duration: time.Second,
			Queues: 4, Size: 256, Connections: 2, InFlight: 4, Batch: 32, Lites: 10, Active: 10, Clients: 1,
		}
		c.spoil(&o)
		if _, err := bench.Workloads[c.workload](t.Context(), o); err == nil || !strings.Contains(err.Error(), c.flag) {
			t.Errorf("%s: %v, without %s", c.workload, err, c.flag)
		}
	}
}

// TestTimersNeedTime: messages that are due before all of them are stored measure nothing.
func TestTimersNeedTime(t *testing.T) {
	srv := bolidetest.Start(t)
	_, err := bench.Workloads["timer"](t.Context(), bench.Options{
		Protocol: bench.Remoting, Namesrv: srv.Namesrv(), Together: true, Ahead: -time.Second,
		Queues: 4, Size: 256, Connections: 2, InFlight: 4, Count: 100, Batch: 32,
	})
	if err == nil || !strings.Contains(err.Error(), "--ahead has to be longer") {
		t.Errorf("%v", err)
	}
}

// TestIdle: what is left open is there, and the server is looked at afterwards.
func TestIdle(t *testing.T) {
	srv := bolidetest.Start(t)
	seen := &seen{}
	r, err := bench.Workloads["idle"](t.Context(), bench.Options{
		Protocol: bench.Remoting, Namesrv: srv.Namesrv(), Server: seen, Duration: time.Millisecond,
		Queues: 4, Size: 256, Connections: 2, InFlight: 4, Batch: 32, Transactions: 100, Pending: 200,
	})
	if err != nil || r.Messages != 300 || !r.Complete() || r.Server == nil || names(r.Memory) != "before, at rest" {
		t.Errorf("%+v, %v", r, err)
	}
}

// seen is a server's processes for the tests: each look at them takes two CPU seconds.
type seen struct{ begun, ended int }

func (s *seen) Watch() (stop func() *bench.Usage) {
	s.begun++
	return func() *bench.Usage {
		s.ended++
		return &bench.Usage{CPUSeconds: 2}
	}
}

func (s *seen) Memory() *bench.Memory { return &bench.Memory{ResidentMB: 2, PrivateMB: 1} }

func names(all []bench.Moment) string {
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return strings.Join(names, ", ")
}

// TestTopicsOfOthers: a topic that the run has not made has to be there, with nothing in it;
// its queues count, not those of --queues.
func TestTopicsOfOthers(t *testing.T) {
	srv := bolidetest.Start(t)
	srv.CreateTopic("used", "NORMAL")
	o := bench.Options{
		Protocol: bench.Remoting, Namesrv: srv.Namesrv(), Endpoint: srv.GRPC(), Rate: 100, Duration: 100 * time.Millisecond,
		Queues: 40, Size: 256, Connections: 2, InFlight: 4, Count: 50, Batch: 32, Topic: "nothere",
	}
	for _, workload := range []string{"send", "latency"} {
		if _, err := bench.Workloads[workload](t.Context(), o); err == nil || !strings.Contains(err.Error(), "bolide admin topic create nothere") {
			t.Errorf("%s to no topic: %v", workload, err)
		}
	}
	o.Topic = "used"
	if r, err := bench.Workloads["send"](t.Context(), o); err != nil || !r.Complete() || r.Messages != 50 {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := bench.Workloads["latency"](t.Context(), o); err == nil || !strings.Contains(err.Error(), "has to be empty") {
		t.Errorf("a topic with messages: %v", err)
	}
}

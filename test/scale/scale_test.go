// Package scale measures the built binary with many topics, groups, clients and keys. It is
// opt-in:
//
//	BOLIDE_SCALE=1 go test -v -count=1 ./test/scale
//
// and holds the figures to the aims of docs/performance.md. It needs Linux for /proc.
package scale

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
	"github.com/bolidemq/bolide/test/servers"
)

// start runs the binary in dir.
func start(t *testing.T, binary, dir string) *servers.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := servers.StartBolide(ctx, servers.BolideOptions{Binary: binary, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func build(t *testing.T) (binary string) {
	t.Helper()
	if os.Getenv("BOLIDE_SCALE") == "" {
		t.Skip("ten thousand topics and clients on Linux, minutes of it; runs with BOLIDE_SCALE=1, as by make scale")
	}
	binary, err := servers.BuildBolide(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// usage is what a process has in memory, and the CPU time that it has taken.
func usage(t *testing.T, pid int) (resident int64, cpu time.Duration) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return kib << 10, time.Duration(user+system) * 10 * time.Millisecond
}

// idle watches a server for a while and holds it to its limits.
func idle(t *testing.T, what string, pid int, mostMiB int64, mostPercent float64) {
	t.Helper()
	const span = time.Minute
	_, before := usage(t, pid)
	time.Sleep(span) // what is measured is this minute
	resident, after := usage(t, pid)
	percent := 100 * (after - before).Seconds() / span.Seconds()
	t.Logf("%s: %d MiB resident, %.2f %% of a core", what, resident>>20, percent)
	if resident>>20 > mostMiB || percent > mostPercent {
		t.Errorf("%s: more than %d MiB or %.1f %%", what, mostMiB, mostPercent)
	}
}

func call(t *testing.T, c *transport.Client, at string, code int32, body []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := c.Call(ctx, at, code, nil, body)
	if err != nil || r.Code != 0 {
		t.Fatalf("%s: %v, %+v", remoting.CodeName(code), err, r)
	}
}

// TestManyTopicsIdle: 10,000 topics of 8 queues and 10,000 groups, idle: at most 300 MB
// and 0.5 % of a core, and started within 2 s.
func TestManyTopicsIdle(t *testing.T) {
	binary := build(t)
	dir := t.TempDir()
	s := start(t, binary, dir)
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	const many, step = 10_000, 500
	for from := 0; from < many; from += step {
		var topics remoting.CreateTopicListBody
		var groups remoting.SubscriptionGroupList
		for i := from; i < from+step; i++ {
			topics.TopicConfigList = append(topics.TopicConfigList, remoting.TopicConfig{TopicName: fmt.Sprint("topic-", i), ReadQueueNums: 8, WriteQueueNums: 8, Perm: 6, TopicFilterType: "SINGLE_TAG"})
			groups.GroupConfigList = append(groups.GroupConfigList, remoting.DefaultSubscriptionGroupConfig(fmt.Sprint("group-", i)))
		}
		call(t, c, s.Broker, remoting.ReqUpdateAndCreateTopicList, remoting.Marshal(&topics))
		call(t, c, s.Broker, remoting.ReqUpdateAndCreateSubscriptionGroupList, remoting.Marshal(&groups))
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, binary, dir)
	defer s.Stop()
	t.Logf("started in %v", s.Started)
	if s.Started > 2*time.Second {
		t.Error("more than 2 s")
	}
	idle(t, "10,000 topics and groups", s.PID, 300, 0.5)
}

// TestManyConsumersIdle: 10,000 classic consumers with a heartbeat each 30 s: at most 400 MB
// and 5 % of a core.
func TestManyConsumersIdle(t *testing.T) {
	binary := build(t)
	s := start(t, binary, t.TempDir())
	defer s.Stop()
	const many = 10_000
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	beat := func(i int) []byte {
		b := remoting.HeartbeatData{ClientID: fmt.Sprint("10.0.0.1@", i), ConsumerDataSet: []remoting.ConsumerData{{GroupName: fmt.Sprint("group-", i/10),
			ConsumeType: remoting.ConsumePassively, MessageModel: remoting.Clustering, ConsumeFromWhere: remoting.ConsumeFromLastOffset,
			SubscriptionDataSet: []remoting.SubscriptionData{{Topic: "orders", SubString: "*", ExpressionType: "TAG", SubVersion: 1}}}}}
		return remoting.AppendRequest(nil, remoting.ReqHeartBeat, int32(i), 0, nil, remoting.Marshal(&b))
	}
	discard := make([]byte, 64<<10)
	for i := range many {
		c, err := net.Dial("tcp", s.Broker)
		if err != nil {
			t.Fatalf("connection %d: %v (ulimit -n?)", i, err)
		}
		conns = append(conns, c)
		if _, err := c.Write(beat(i)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(discard); err != nil { // its answer, or a notice before it
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	var beats atomic.Int64
	go func() { // spreads the heartbeats over 30 s, and reads what has come
		defer close(ended)
		began := time.Now()
		for n := 0; ctx.Err() == nil; n++ {
			i := n % many
			beats.Add(1)
			conns[i].Write(beat(i))
			conns[i].SetReadDeadline(time.Now().Add(time.Second))
			conns[i].Read(discard)
			time.Sleep(time.Until(began.Add(time.Duration(n) * 30 * time.Second / many))) // the pace of the load
		}
	}()
	idle(t, "10,000 consumers", s.PID, 400, 5)
	t.Logf("%d heartbeats meanwhile", beats.Load())
	cancel()
	<-ended
}

// TestAdminCommandsAreFast: each command takes at most 50 ms, its process included; the best
// of five counts, since the machine has other things to do.
func TestAdminCommandsAreFast(t *testing.T) {
	binary := build(t)
	s := start(t, binary, t.TempDir())
	defer s.Stop()
	for _, args := range [][]string{
		{"topic", "create", "orders"}, {"topic", "list"}, {"group", "create", "billing"}, {"group", "list"}, {"group", "show", "billing"},
		{"group", "reset", "billing", "orders", "--to", "end"}, {"topic", "delete", "orders"},
	} {
		best := time.Hour
		for round := range 5 {
			if args[1] == "delete" && round > 0 {
				break
			}
			began := time.Now()
			if out, err := exec.Command(binary, append(append([]string{"admin"}, args...), "-n", s.Namesrv)...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", args, err, out)
			}
			best = min(best, time.Since(began))
		}
		t.Logf("admin %s: %v", strings.Join(args, " "), best.Round(time.Millisecond))
		if best > 50*time.Millisecond {
			t.Errorf("admin %s: more than 50 ms", strings.Join(args, " "))
		}
	}
}

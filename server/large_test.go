package server_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// R102: creating a topic costs the same however many there are, an idle one costs some
// kilobytes, and messages flow as before. The short form judges by what is allocated, which
// does not depend on the machine; TOPICS=200000 (make large) adds times and the whole size.
func TestManyTopics(t *testing.T) {
	topics, long := 4000, false
	if n, err := strconv.Atoi(os.Getenv("TOPICS")); err == nil {
		topics, long = n, true
	}
	s := start(t, nil)
	c := newCaller(t, nil)
	c.createTopic(s.Broker(), "before")
	usual := slowest(c, s.Broker(), "before")
	empty := memory()
	thousand := func(from int) (took time.Duration, allocated int64) {
		before, began := memory(), time.Now()
		for i := from; i < from+1000; i++ {
			c.createTopic(s.Broker(), fmt.Sprint("topic-", i))
		}
		took = time.Since(began)
		return took, int64(memory().TotalAlloc - before.TotalAlloc)
	}
	first, firstCost := thousand(0)
	var last time.Duration
	var lastCost int64
	for i := 1000; i < topics; i += 1000 {
		last, lastCost = thousand(i)
	}
	full := memory()
	each := (int64(full.HeapAlloc) - int64(empty.HeapAlloc)) / int64(topics)
	later := slowest(c, s.Broker(), fmt.Sprint("topic-", topics-1))
	t.Logf("%d topics: the first thousand %v and %d KiB, the last %v and %d KiB; %d bytes each, %d MiB in all; slowest of a hundred sends %v, before %v",
		topics, first, firstCost>>10, last, lastCost>>10, each, full.Sys>>20, later, usual)
	if lastCost > 2*firstCost {
		t.Errorf("the last thousand allocated %d KiB, the first %d", lastCost>>10, firstCost>>10)
	}
	if each > 8<<10 {
		t.Errorf("an idle topic takes %d bytes", each)
	}
	if long && (last > 2*first || full.Sys > 1<<30 || later > 10*usual+100*time.Millisecond) {
		t.Error("times or size of the long form are over their limits")
	}
}

func memory() (m runtime.MemStats) {
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m
}

// slowest is nearly the longest of a hundred sends.
func slowest(c *caller, addr, topic string) time.Duration {
	c.t.Helper()
	times := make([]time.Duration, 100)
	for i := range times {
		began := time.Now()
		a := c.call(addr, remoting.ReqSendMessageV2, &remoting.SendMessageRequest{
			V2: true, ProducerGroup: "p", Topic: topic, DefaultTopic: "TBW102", DefaultTopicQueueNums: 4, BornTimestamp: time.Now().UnixMilli(),
		}, make([]byte, 1024))
		times[i] = time.Since(began)
		if a.Code != remoting.ResSuccess {
			c.t.Fatalf("send to %s: %d %s", topic, a.Code, a.Remark)
		}
	}
	slices.Sort(times)
	return times[98]
}

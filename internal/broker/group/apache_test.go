package group

import (
	"testing"

	"github.com/bolidemq/bolide/internal/config"
)

// apacheText is the form in which Apache RocketMQ 5.5.0 writes the file.
const apacheText = `{
	"dataVersion":{"counter":4,"stateVersion":0,"timestamp":1700000000000},
	"forbiddenTable":{"shop":{"orders":1}},
	"subscriptionGroupTable":{
		"shop":{
			"attributes":{},
			"brokerId":0,
			"consumeBroadcastEnable":false,
			"consumeEnable":true,
			"consumeFromMinEnable":true,
			"consumeMessageOrderly":true,
			"consumeTimeoutMinute":15,
			"groupName":"shop",
			"groupRetryPolicy":{"exponentialRetryPolicy":{"initial":1000,"max":60000,"multiplier":3},"type":"EXPONENTIAL"},
			"groupSysFlag":0,
			"notifyConsumerIdsChangedEnable":true,
			"retryMaxTimes":5,
			"retryQueueNums":2,
			"whichBrokerWhenConsumeSlowly":1
		}
	}
}`

func openTable(t testing.TB) *Table {
	t.Helper()
	table, err := Open(Options{Config: config.NewLive(config.DefaultBroker())})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestImport(t *testing.T) {
	table := openTable(t)
	if err := table.Put(New("gone")); err != nil {
		t.Fatal(err)
	}
	if err := table.Import([]byte(apacheText)); err != nil {
		t.Fatal(err)
	}
	c, ok := table.Get("shop")
	if !ok || c.ConsumeBroadcast || !c.ConsumeOrderly || c.RetryMaxTimes != 5 || c.RetryQueues != 2 || c.Retry.Delay(1) != 3000 {
		t.Fatalf("%+v", c)
	}
	if table.Forbidden("shop", "orders") != 1 {
		t.Fatal("a ban is missing")
	}
	if _, ok := table.Get("gone"); ok {
		t.Fatal("what the file does not have is still there")
	}
	if _, ok := table.Get("TOOLS_CONSUMER"); !ok {
		t.Fatal("a system group is missing")
	}
	text, err := table.Export()
	if err != nil {
		t.Fatal(err)
	}
	again := openTable(t)
	if err := again.Import(text); err != nil {
		t.Fatal(err)
	}
	for _, c := range table.All() {
		if o, ok := again.Get(c.Name); !ok || !o.Equal(c) {
			t.Errorf("%+v, was %+v", o, c)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(apacheText))
	f.Fuzz(func(t *testing.T, text []byte) {
		table := openTable(t)
		if table.Import(text) != nil {
			return
		}
		if _, err := table.Export(); err != nil {
			t.Fatal(err)
		}
	})
}

package topic

import (
	"testing"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// apacheText is the form in which Apache RocketMQ 5.5.0 writes the file.
const apacheText = `{
	"dataVersion":{
		"counter":9,
		"stateVersion":1,
		"timestamp":1700000000000
	},
	"topicConfigTable":{
		"orders":{
			"attributes":{
				"message.type":"FIFO"
			},
			"order":true,
			"perm":6,
			"readQueueNums":8,
			"topicFilterType":"SINGLE_TAG",
			"topicName":"orders",
			"topicSysFlag":0,
			"writeQueueNums":8
		},
		"again":{"order":false,"perm":6,"readQueueNums":1,"topicFilterType":"SINGLE_TAG","topicName":"again","topicSysFlag":0,"writeQueueNums":1},
		"bad/name":{"order":false,"perm":6,"readQueueNums":1,"topicName":"bad/name","writeQueueNums":1},
		"%RETRY%g+orders":{"order":false,"perm":6,"readQueueNums":1,"topicName":"%RETRY%g+orders","writeQueueNums":1}
	}
}`

func TestImport(t *testing.T) {
	fs := vfs.NewMem()
	db := openState(t, fs)
	end := int64(100)
	table := open(t, nil, Options{State: db, LogEnd: func() int64 { return end }})
	for _, name := range []string{"gone", "again"} {
		if err := table.Put(New(name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := table.Delete("again"); err != nil {
		t.Fatal(err)
	}
	if err := table.Import([]byte(apacheText)); err != nil {
		t.Fatal(err)
	}
	check := func(table *Table) {
		t.Helper()
		c, ok := table.Get("orders")
		if !ok || c.MessageType() != "FIFO" || !c.Order || c.WriteQueues != 8 || c.Perm != 6 {
			t.Fatalf("%+v", c)
		}
		if _, ok := table.Get("%RETRY%g+orders"); !ok {
			t.Fatal("a retry topic is missing")
		}
		if _, ok := table.Get("bad/name"); ok {
			t.Fatal("a name that is a path was taken")
		}
		if _, ok := table.Get("TBW102"); !ok {
			t.Fatal("a system topic is missing")
		}
		if _, ok := table.Get("gone"); ok || table.Birth("gone") != 0 {
			t.Fatal("what the file does not have is gone, without a grave")
		}
		if table.Birth("again") != 100 {
			t.Fatalf("birth %d: it was deleted here and created there", table.Birth("again"))
		}
	}
	check(table)
	if v := table.Version(); v.StateVersion != 1 || v.Counter < 9 {
		t.Fatal(v)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, nil, Options{State: openState(t, fs)}))
}

func TestImportRefuses(t *testing.T) {
	table := open(t, nil, Options{})
	before := len(table.All())
	for _, text := range []string{"", "{", "null", "{}", `{"topicConfigTable":{}}`, apacheText[:len(apacheText)/2], `{"topicConfigTable":{"a/b":{}}}`} {
		if err := table.Import([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
		if len(table.All()) != before {
			t.Errorf("%q has changed the table", text)
		}
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(apacheText))
	f.Fuzz(func(t *testing.T, text []byte) {
		var none *state.DB
		table := open(t, nil, Options{State: none})
		if table.Import(text) != nil {
			return
		}
		first, err := table.Export()
		if err != nil {
			t.Fatal(err)
		}
		again := open(t, nil, Options{})
		if err := again.Import(first); err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		if len(again.All()) != len(table.All()) {
			t.Fatalf("%d topics, then %d", len(table.All()), len(again.All()))
		}
	})
}

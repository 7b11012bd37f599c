package offset

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// apacheText is the form in which Apache RocketMQ 5.5.0 writes the file.
const apacheText = `{
	"dataVersion":{
		"counter":3,
		"stateVersion":0,
		"timestamp":1700000000000
	},
	"groupTopicMap":{},
	"offsetTable":{
		"orders@shop":{0:12,1:7
		},
		"%RETRY%shop@shop":{0:1
		}
	},
	"pullOffsetTable":{},
	"resetOffsetTable":{}
}`

func TestImport(t *testing.T) {
	fs := vfs.NewMem()
	db := openState(t, fs)
	table := open(t, Options{State: db})
	table.Advance("old", "t", 0, 5)
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := table.Import([]byte(apacheText)); err != nil {
		t.Fatal(err)
	}
	check := func(table *Table) {
		t.Helper()
		want(t, table, "shop", "orders", 0, 12, true)
		want(t, table, "shop", "orders", 1, 7, true)
		want(t, table, "shop", "%RETRY%shop", 0, 1, true)
		want(t, table, "old", "t", 0, 0, false)
	}
	check(table)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	check(open(t, Options{State: openState(t, fs)}))
}

func TestExport(t *testing.T) {
	table := open(t, Options{})
	table.Advance("shop", "orders", 0, 12)
	table.Advance("shop", "orders", 1, 7)
	table.Advance("pop", "orders", 0, 3)
	table.CommitPull("pull", "orders", 0, 3)
	text, err := table.Export()
	if err != nil {
		t.Fatal(err)
	}
	const wanted = `{"offsetTable":{"orders@pop":{0:3},"orders@shop":{0:12,1:7}}}` + "\n"
	if string(text) != wanted {
		t.Fatalf("%s", text)
	}
	again := open(t, Options{})
	if err := again.Import(text); err != nil {
		t.Fatal(err)
	}
	want(t, again, "shop", "orders", 0, 12, true)
}

func TestImportRefuses(t *testing.T) {
	table := open(t, Options{})
	table.Advance("g", "t", 0, 5)
	for _, text := range []string{"", "{", "null", "{}", `{"offsetTable":{"t@g":{0:`, `[]`, "\x00\x00"} {
		if err := table.Import([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
		want(t, table, "g", "t", 0, 5, true)
	}
}

func FuzzImport(f *testing.F) {
	f.Add([]byte(apacheText))
	f.Add([]byte(`{"offsetTable":{"t@g":{"0":-1}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		if table.Import(text) != nil {
			return
		}
		first, err := table.Export()
		if err != nil {
			t.Fatal(err)
		}
		if err := table.Import(first); err != nil {
			t.Fatalf("%q: %v", first, err)
		}
		if second, _ := table.Export(); string(second) != string(first) {
			t.Fatalf("%q, then %q", first, second)
		}
	})
}

// A broker with enableLmq keeps all offsets in another file.
func TestExportLMQ(t *testing.T) {
	table := open(t, Options{})
	table.Advance("shop", "%LMQ%$orders$a", 0, 12)
	text, err := table.ExportLMQ()
	if err != nil {
		t.Fatal(err)
	}
	const wanted = `{"offsetTable":{"%LMQ%$orders$a@shop":{0:12}},"lmqOffsetTable":{}}` + "\n"
	if string(text) != wanted {
		t.Fatalf("%s", text)
	}
	again := open(t, Options{})
	if err := again.Import(text); err != nil {
		t.Fatal(err)
	}
	want(t, again, "shop", "%LMQ%$orders$a", 0, 12, true)
}

package broker

import (
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A broker of Apache's with enableLmq keeps the offsets of all groups in a file of its own, and
// looks into no other; so do we read and write it.
func TestOffsetsOfABrokerWithLMQ(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data/config", 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := fs.Create("data/config/lmqConsumerOffset.json", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte(`{"lmqOffsetTable":{},"offsetTable":{"orders@shop":{0:0},"%LMQ%$orders$a@shop":{0:0}}}`)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b := withOrders(t, fs)
	defer b.Close()
	for _, topic := range []string{"orders", "%LMQ%$orders$a"} {
		if _, known := b.Offsets.Query("shop", topic, 0); !known {
			t.Errorf("the offset in %s was not taken over", topic)
		}
	}
	if err := b.exports.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{offsetsFile, lmqFile} {
		if _, err := fs.Stat("data/config/" + name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

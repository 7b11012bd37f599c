package storage

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/storage/keyindex"
)

// golden reads a hex sample of docs/formats/checkpoint.md. CRC stands for a checksum.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../docs/formats/checkpoint.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```golden "+name+"\n")
	sample, _, ok2 := strings.Cut(rest, "```")
	if !ok || !ok2 {
		t.Fatalf("no sample %q", name)
	}
	b, err := hex.DecodeString(strings.NewReplacer(" ", "", "\n", "", "CRC", "").Replace(sample))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGoldenCheckpoint(t *testing.T) {
	c := checkpoint{logTime: 0x18bcfe56800, queueTime: 0x18bcfe56800, indexTime: 0x18bcfe56800, flushed: 8192, dispatched: 8192}
	b := c.encode()
	if len(b) != checkpointSize || !bytes.Equal(b[:checkpoint6], golden(t, "numbers")) {
		t.Fatalf("numbers %x", b[:checkpoint6])
	}
	if mark := golden(t, "mark"); !bytes.Equal(b[markAt:markAt+len(mark)], mark) {
		t.Fatalf("mark %x", b[markAt:markAt+len(mark)])
	}
	if got, ours := decodeCheckpoint(b); got != c || !ours {
		t.Fatalf("read %+v %t", got, ours)
	}
	b[47]++ // as another server would
	if got, ours := decodeCheckpoint(b); got.dispatched != 8193 || ours {
		t.Fatalf("read %+v %t", got, ours)
	}
}

func TestGoldenSnapshot(t *testing.T) {
	s := snapshot{queues: []queueEnd{{"orders", 3, 0, 100}}, index: []keyindex.FileInfo{{Name: "20260102030405006", Count: 101, Last: 8192}}}
	b := s.encode()
	if want := golden(t, "snapshot"); !bytes.Equal(b[:len(b)-4], want) {
		t.Fatalf("snapshot\n%x, want\n%x", b, want)
	}
	got, ok := decodeSnapshot(b)
	if !ok || len(got.queues) != 1 || got.queues[0] != s.queues[0] || len(got.index) != 1 || got.index[0] != s.index[0] {
		t.Fatalf("read %+v %t", got, ok)
	}
	for i := range b {
		bad := bytes.Clone(b)
		bad[i] ^= 0x10
		if _, ok := decodeSnapshot(bad); ok {
			t.Fatalf("a snapshot with byte %d changed is read", i)
		}
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add((&checkpoint{dispatched: 1}).encode())
	f.Add((&snapshot{queues: []queueEnd{{"a", 1, 2, 3}}}).encode())
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		decodeCheckpoint(b)
		decodeSnapshot(b)
	})
}

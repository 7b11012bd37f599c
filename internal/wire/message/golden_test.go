package message

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// golden reads the hex sample called name from docs/formats/record.md.
func golden(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../docs/formats/record.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```golden "+name+"\n")
	sample, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatalf("docs/formats/record.md has no sample %q", name)
	}
	raw, err := hex.DecodeString(strings.Join(strings.Fields(sample), ""))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func sampleV2() *Message {
	m := sample()
	m.Topic = "%RETRY%" + strings.Repeat("g", 121)
	m.SysFlag |= SysBornHostV6 | SysStoreHostV6
	m.BornHost = netip.MustParseAddrPort("[2001:db8::1]:51234")
	m.StoreHost = netip.MustParseAddrPort("[2001:db8::2]:10911")
	return m
}

func TestGoldenRecords(t *testing.T) {
	withCRC := sample()
	withCRC.Properties += "__CRC32#\x010103323951\x02"
	for _, c := range []struct {
		name    string
		encode  func([]byte, *Message) ([]byte, error)
		message *Message
		decoded *Message
	}{
		{"v1", AppendStored, sample(), sample()},
		{"crc", AppendStoredCRC, sample(), withCRC},
		{"v2", AppendStored, sampleV2(), sampleV2()},
	} {
		want := golden(t, c.name)
		got, err := c.encode(nil, c.message)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %v\n%x\n%x", c.name, err, got, want)
		}
		var m Message
		n, err := DecodeStored(want, &m)
		if err != nil || n != len(want) {
			t.Errorf("%s: %d, %v", c.name, n, err)
		}
		if err := same(&m, c.decoded); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := CheckCRC(want); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestGoldenBlank(t *testing.T) {
	want := golden(t, "blank")
	if got := AppendBlank(nil, 4096); !bytes.Equal(got, want) {
		t.Errorf("%x", got)
	}
	var m Message
	if n, err := DecodeStored(want, &m); n != 4096 || !errors.Is(err, ErrBlank) {
		t.Errorf("%d, %v", n, err)
	}
}

func TestGoldenBatch(t *testing.T) {
	want := []*Message{
		{Flag: 7, Body: []byte("one"), Properties: "TAGS\x01a"},
		{Body: []byte("two"), Properties: "TAGS\x01b\x02"},
	}
	var body []byte
	for _, m := range want {
		body, _ = AppendBatch(body, m)
	}
	if sample := golden(t, "batch"); !bytes.Equal(body, sample) {
		t.Errorf("\n%x\n%x", body, sample)
	}
	i := 0
	if err := DecodeBatch(golden(t, "batch"), func(m *Message) error { i++; return same(m, want[i-1]) }); err != nil || i != 2 {
		t.Errorf("%d, %v", i, err)
	}
}

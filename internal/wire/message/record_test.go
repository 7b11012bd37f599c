package message

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sample() *Message {
	return &Message{
		Topic:                     "orders",
		QueueID:                   3,
		Flag:                      7,
		SysFlag:                   SysCompressed | SysLZ4,
		BornTimestamp:             1700000000123,
		BornHost:                  netip.MustParseAddrPort("192.0.2.7:51234"),
		StoreTimestamp:            1700000000456,
		StoreHost:                 netip.MustParseAddrPort("198.51.100.1:10911"),
		ReconsumeTimes:            2,
		Properties:                "KEYS\x01k1\x02TAGS\x01paid\x02",
		Body:                      []byte("hello, bolide"),
		PreparedTransactionOffset: 77,
		QueueOffset:               41,
		PhysicalOffset:            4096,
	}
}

var hosts = rapid.Custom(func(t *rapid.T) netip.AddrPort {
	port := rapid.Uint16().Draw(t, "port")
	if rapid.Bool().Draw(t, "v6") {
		raw := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "ip6")
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw)), port)
	}
	raw := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "ip4")
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw)), port)
})

var messages = rapid.Custom(func(t *rapid.T) *Message {
	m := &Message{
		Topic:                     rapid.StringN(0, 300, 400).Draw(t, "topic"),
		QueueID:                   rapid.Int32().Draw(t, "queue"),
		Flag:                      rapid.Int32().Draw(t, "flag"),
		SysFlag:                   rapid.Int32().Draw(t, "sysFlag") &^ (SysBornHostV6 | SysStoreHostV6),
		BornTimestamp:             rapid.Int64().Draw(t, "born"),
		BornHost:                  hosts.Draw(t, "bornHost"),
		StoreTimestamp:            rapid.Int64().Draw(t, "stored"),
		StoreHost:                 hosts.Draw(t, "storeHost"),
		ReconsumeTimes:            rapid.Int32().Draw(t, "reconsumed"),
		Properties:                Properties(rapid.String().Draw(t, "properties")),
		PreparedTransactionOffset: rapid.Int64().Draw(t, "prepared"),
		QueueOffset:               rapid.Int64().Draw(t, "queueOffset"),
		PhysicalOffset:            rapid.Int64().Draw(t, "physicalOffset"),
		Body:                      rapid.SliceOf(rapid.Byte()).Draw(t, "body"),
	}
	if m.BornHost.Addr().Is6() {
		m.SysFlag |= SysBornHostV6
	}
	if m.StoreHost.Addr().Is6() {
		m.SysFlag |= SysStoreHostV6
	}
	return m
})

func same(a, b *Message) error {
	x, y := *a, *b
	x.Body, y.Body = nil, nil
	x.StoreSize, y.StoreSize = 0, 0
	x.BodyCRC, y.BodyCRC = 0, 0
	if fmt.Sprintf("%#v", x) != fmt.Sprintf("%#v", y) || !bytes.Equal(a.Body, b.Body) {
		return fmt.Errorf("%#v\nis not\n%#v", *a, *b)
	}
	return nil
}

// A record whose end was not written is torn; a value with a zero at its end is not, as clients
// in C may send it to another server.
func TestEndOfARecord(t *testing.T) {
	m := &Message{Topic: "T", Properties: Properties("k\x01" + strings.Repeat("v", 600)), PhysicalOffset: 4096}
	record, err := AppendStored(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		written int
		want    error
	}{{len(record), nil}, {len(record) - 1, nil}, {len(record) - 40, nil}, {512, ErrTorn}, {511, nil}} {
		cut := slices.Clone(record)
		clear(cut[c.written:])
		if err := CheckCRC(cut); !errors.Is(err, c.want) {
			t.Errorf("%d of %d bytes written: %v", c.written, len(record), err)
		}
	}
}

func TestDecodeAfterEncodeIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := messages.Draw(t, "message")
		record, err := AppendStored([]byte("before"), m)
		if err != nil {
			t.Fatal(err)
		}
		record = record[len("before"):]
		if size, err := StoredSize(m); err != nil || size != len(record) {
			t.Fatalf("StoredSize %d, %v; the record has %d", size, err, len(record))
		}
		var back Message
		n, err := DecodeStored(append(record[:len(record):len(record)], 1, 2, 3), &back)
		if err != nil || n != len(record) || int(back.StoreSize) != n {
			t.Fatalf("decoded %d, %v", n, err)
		}
		want := *m
		if strings.HasSuffix(string(m.Properties), "\x00") { // no record ends with a zero
			want.Properties += "\x02"
		}
		if err := same(&want, &back); err != nil {
			t.Fatal(err)
		}
		if err := CheckCRC(record); err != nil {
			t.Fatal(err)
		}
		again, err := AppendStored(nil, &back)
		if err != nil || !bytes.Equal(again, record) {
			t.Fatalf("encoded again: %v\n%x\n%x", err, again, record)
		}
		h, ok := PeekHeader(record)
		if !ok || h.QueueOffset != m.QueueOffset || h.PhysicalOffset != m.PhysicalOffset || h.StoreTimestamp != m.StoreTimestamp || h.QueueID != m.QueueID || int(h.Size) != n {
			t.Fatalf("PeekHeader %+v, %v", h, ok)
		}
	})
}

func TestPatchIsEncodingLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := messages.Draw(t, "message")
		encode := AppendStored
		if rapid.Bool().Draw(t, "crc") {
			encode = AppendStoredCRC
		}
		want, err := encode(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		early := *m
		early.QueueOffset, early.PhysicalOffset, early.StoreTimestamp = 0, 0, 0
		got, err := encode(nil, &early)
		if err != nil {
			t.Fatal(err)
		}
		Patch(got, m.QueueOffset, m.PhysicalOffset, m.StoreTimestamp)
		if !bytes.Equal(got, want) {
			t.Fatalf("\n%x\n%x", got, want)
		}
		if err := CheckCRC(got); err != nil {
			t.Fatal(err)
		}
	})
}

func TestEveryDamagedByteIsSeen(t *testing.T) {
	record, err := AppendStoredCRC(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	for i := range record {
		damaged := bytes.Clone(record)
		damaged[i] ^= 0x10
		var m Message
		if _, err := DecodeStored(damaged, &m); err == nil && CheckCRC(damaged) == nil {
			// The closing separator and the property's own name are not covered by it.
			if i < len(record)-crcSize {
				t.Errorf("byte %d damaged and not seen", i)
			}
		}
	}
}

func TestFormatFollowsTopicLength(t *testing.T) {
	for length, want := range map[int]uint32{0: MagicV1, 127: MagicV1, 128: MagicV2, 255: MagicV2, 300: MagicV2} {
		m := sample()
		m.Topic = strings.Repeat("t", length)
		record, err := AppendStored(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if h, ok := PeekHeader(record); !ok || h.Magic != want {
			t.Errorf("topic of %d bytes: magic %X, want %X", length, h.Magic, want)
		}
	}
}

func TestMappedAddressesBecomeIPv4(t *testing.T) {
	m := sample()
	m.BornHost = netip.MustParseAddrPort("[::ffff:192.0.2.7]:51234")
	record, err := AppendStored(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	var back Message
	if _, err := DecodeStored(record, &back); err != nil {
		t.Fatal(err)
	}
	if back.BornHost != sample().BornHost || back.SysFlag&SysBornHostV6 != 0 {
		t.Errorf("born host %v, flag %x", back.BornHost, back.SysFlag)
	}
}

func TestLimits(t *testing.T) {
	m := sample()
	m.Properties = Properties(strings.Repeat("p", MaxProperties))
	if _, err := AppendStored(nil, m); err != nil {
		t.Error(err)
	}
	m.Properties += "p"
	if _, err := AppendStored(nil, m); !errors.Is(err, ErrPropertiesTooLarge) {
		t.Errorf("%v", err)
	}
	m = sample()
	m.Topic = strings.Repeat("t", 1<<15)
	if _, err := AppendStored(nil, m); !errors.Is(err, ErrTopicTooLong) {
		t.Errorf("%v", err)
	}
}

// A client that sends a CRC property must not make the store look damaged.
func TestForeignCRCPropertyIsLeftOut(t *testing.T) {
	m := sample()
	m.Properties = "A\x01b\x02__CRC32#\x010000000001\x02"
	for _, encode := range []func([]byte, *Message) ([]byte, error){AppendStored, AppendStoredCRC} {
		record, err := encode(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckCRC(record); err != nil {
			t.Error(err)
		}
		var back Message
		if _, err := DecodeStored(record, &back); err != nil || back.Properties.Value("A") != "b" {
			t.Errorf("%q, %v", back.Properties, err)
		}
	}
}

func TestEndOfFileAndTornRecords(t *testing.T) {
	record, err := AppendStored(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	negativeBody := bytes.Clone(record)
	copy(negativeBody[84:], []byte{0xff, 0xff, 0xff, 0xff})
	for _, c := range []struct {
		name string
		in   []byte
		n    int
		err  error
	}{
		{"blank", append(AppendBlank(nil, 500), record...), 500, ErrBlank},
		{"blank with nothing behind", AppendBlank(nil, 8), 8, ErrBlank},
		{"blank of negative size", AppendBlank(nil, -8), 0, ErrCorrupt},
		{"nothing", nil, 0, ErrTorn},
		{"zeros", make([]byte, 200), 0, ErrTorn},
		{"half", record[:len(record)/2], len(record), ErrTorn},
		{"all but one byte", record[:len(record)-1], len(record), ErrTorn},
		{"other magic", bytes.Repeat([]byte{7}, 200), 0, ErrCorrupt},
		{"negative body length", negativeBody, 0, ErrCorrupt},
	} {
		var m Message
		if n, err := DecodeStored(c.in, &m); n != c.n || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v; want %d, %v", c.name, n, err, c.n, c.err)
		}
	}
}

func TestRecordsAllocateNothing(t *testing.T) {
	m := sample()
	dst := make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		dst, _ = AppendStored(dst[:0], m)
		Patch(dst, 1, 2, 3)
	}); n != 0 {
		t.Errorf("AppendStored allocates %v times", n)
	}
	var back Message
	if n := testing.AllocsPerRun(100, func() {
		_, _ = DecodeStored(dst, &back)
		_ = TagsCode(back.Tag())
		_, _ = PeekHeader(dst)
	}); n != 0 {
		t.Errorf("DecodeStored allocates %v times", n)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	record, err := AppendStored(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	var m Message
	if _, err := DecodeStored(record, &m); err != nil {
		t.Fatal(err)
	}
	c := m.Clone()
	clear(record)
	if err := same(c, sample()); err != nil {
		t.Error(err)
	}
}

func TestRecordIsOfItsQueueAlone(t *testing.T) {
	for _, m := range []*Message{sample(), sampleV2()} {
		record, err := AppendStored(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		if !IsOf(record, m.Topic, m.QueueID, m.QueueOffset) {
			t.Errorf("not of %s", m.Topic)
		}
		other := m.Topic[:len(m.Topic)-1]
		if IsOf(record, other, 3, 41) || IsOf(record, other+"~", 3, 41) || IsOf(record, m.Topic+"~", 3, 41) || IsOf(record, m.Topic, 2, 41) || IsOf(record, m.Topic, 3, 40) {
			t.Errorf("%s is of another queue", m.Topic)
		}
		for n := range len(record) {
			IsOf(record[:n:n], m.Topic, 3, 41)
		}
	}
}

func FuzzDecodeStored(f *testing.F) {
	for _, encode := range []func([]byte, *Message) ([]byte, error){AppendStored, AppendStoredCRC} {
		record, err := encode(nil, sample())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(record)
	}
	m := sample()
	m.Topic = strings.Repeat("t", 200)
	m.BornHost = netip.MustParseAddrPort("[2001:db8::1]:1")
	record, err := AppendStored(nil, m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(record)
	f.Add(AppendBlank(nil, 8))
	f.Fuzz(func(t *testing.T, record []byte) {
		PeekHeader(record)
		IsOf(record, "orders", 3, 41)
		var m Message
		alone, ok := PropertiesOf(record)
		n, err := DecodeStored(record, &m)
		if err != nil {
			return
		}
		if n == len(record) && (!ok || alone != m.Properties) {
			t.Fatalf("properties %q alone, %q with the rest", alone, m.Properties)
		}
		if !IsOf(record, m.Topic, m.QueueID, m.QueueOffset) || IsOf(record, m.Topic+"x", m.QueueID, m.QueueOffset) {
			t.Fatalf("not of topic %q alone", m.Topic)
		}
		if n < fixedSize || n > len(record) {
			t.Fatalf("a record of %d bytes in %d", n, len(record))
		}
		_ = CheckCRC(record)
		if m.Properties.Has(PropertyCRC) || strings.Contains(string(m.Properties), PropertyCRC) {
			return
		}
		again, err := AppendStored(nil, &m)
		if err != nil {
			return // a V2 record may hold a topic that is written as V1, and the other way round
		}
		var back Message
		if _, err := DecodeStored(again, &back); err != nil {
			t.Fatal(err)
		}
		if err := same(&m, &back); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkAppendStored(b *testing.B) {
	m := sample()
	m.Body = make([]byte, 1024)
	m.Properties = benchmarkProperties
	dst := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(1024)
	for b.Loop() {
		dst, _ = AppendStored(dst[:0], m)
	}
}

func BenchmarkPatch(b *testing.B) {
	record, err := AppendStored(nil, sample())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Patch(record, 1, 2, 3)
	}
}

func BenchmarkDecodeStored(b *testing.B) {
	m := sample()
	m.Body = make([]byte, 1024)
	m.Properties = benchmarkProperties
	record, err := AppendStored(nil, m)
	if err != nil {
		b.Fatal(err)
	}
	var back Message
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeStored(record, &back); err != nil {
			b.Fatal(err)
		}
	}
}

const benchmarkProperties = "KEYS\x01order-1234567\x02UNIQ_KEY\x017F00000100002A139A1B8C3D4E5F0001\x02WAIT\x01true\x02TAGS\x01paid\x02CLUSTER\x01DefaultCluster\x02MSG_REGION\x01DefaultRegion\x02TRACE_ON\x01true\x02"

package remoting

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// RegisterBrokerBody is the body of REGISTER_BROKER.
type RegisterBrokerBody struct {
	FilterServerList            []string
	TopicConfigSerializeWrapper TopicConfigTable
}

// Members names the members.
func (b *RegisterBrokerBody) Members(m *Members) {
	m.Strs("filterServerList", &b.FilterServerList)
	m.Object("topicConfigSerializeWrapper", &b.TopicConfigSerializeWrapper)
}

// maxInflated bounds what a compressed registration may become.
const maxInflated = 256 << 20

// MarshalRegisterBroker returns b in the plain or the compressed form.
func MarshalRegisterBroker(b *RegisterBrokerBody, compressed bool) []byte {
	if !compressed {
		return Marshal(b)
	}
	var out bytes.Buffer
	z, _ := zlib.NewWriterLevel(&out, zlib.BestCompression)
	block := func(p []byte) {
		z.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		z.Write(p)
	}
	t := &b.TopicConfigSerializeWrapper
	block(Marshal(&t.DataVersion))
	z.Write(binary.BigEndian.AppendUint32(nil, uint32(len(t.TopicConfigTable))))
	for _, name := range slices.Sorted(maps.Keys(t.TopicConfigTable)) {
		c := t.TopicConfigTable[name]
		block([]byte(c.line()))
	}
	m := Members{writing: true}
	writeList(&m, b.FilterServerList, m.str)
	block(m.out)
	z.Write([]byte{0, 0, 0, 0}) // no static topics
	z.Close()
	return out.Bytes()
}

// UnmarshalRegisterBroker reads a registration of either form.
func UnmarshalRegisterBroker(data []byte, compressed bool, b *RegisterBrokerBody) error {
	if !compressed {
		return Unmarshal(data, b)
	}
	z, err := zlib.NewReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrBody, err)
	}
	if err := b.inflate(io.LimitReader(z, maxInflated)); err != nil {
		return fmt.Errorf("%w: compressed registration: %w", ErrBody, err)
	}
	return nil
}

// inflate reads the compressed form up to the mappings of static topics, which brokers
// before 5.0 do not send.
func (b *RegisterBrokerBody) inflate(r io.Reader) error {
	size := func() (int, error) {
		var n [4]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return 0, err
		}
		if v := int32(binary.BigEndian.Uint32(n[:])); v >= 0 && v <= maxInflated {
			return int(v), nil
		}
		return 0, errors.New("a length out of range")
	}
	var buf bytes.Buffer
	block := func() ([]byte, error) {
		n, err := size()
		if err != nil {
			return nil, err
		}
		buf.Reset()
		// The buffer grows with what comes, not with what the length claims.
		if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
			return nil, err
		}
		return buf.Bytes(), nil
	}
	t := &b.TopicConfigSerializeWrapper
	p, err := block()
	if err != nil {
		return err
	}
	if err := Unmarshal(p, &t.DataVersion); err != nil {
		return err
	}
	topics, err := size()
	if err != nil {
		return err
	}
	t.TopicConfigTable = map[string]TopicConfig{}
	for range topics {
		if p, err = block(); err != nil {
			return err
		}
		c, err := topicConfigOfLine(string(p))
		if err != nil {
			return err
		}
		t.TopicConfigTable[c.TopicName] = c
	}
	if p, err = block(); err != nil {
		return err
	}
	m := Members{read: lenient{b: p}}
	b.FilterServerList = nil
	m.list(func() { m.str(grow(&b.FilterServerList)) })
	return m.read.err
}

// line is the form of a topic in a compressed registration.
func (b *TopicConfig) line() string {
	s := b.TopicName + " " + strconv.Itoa(int(b.ReadQueueNums)) + " " + strconv.Itoa(int(b.WriteQueueNums)) + " " +
		strconv.Itoa(int(b.Perm)) + " " + b.TopicFilterType + " "
	if b.Attributes != nil {
		m := Members{writing: true}
		mapValue(&m, &b.Attributes, stringKey, m.str)
		s += string(m.out)
	}
	return s
}

func topicConfigOfLine(s string) (TopicConfig, error) {
	f := strings.SplitN(s, " ", 6)
	if len(f) < 5 {
		return TopicConfig{}, fmt.Errorf("topic line %q has %d fields", s, len(f))
	}
	b := TopicConfig{TopicName: f[0], TopicFilterType: f[4]}
	for i, p := range []*int32{&b.ReadQueueNums, &b.WriteQueueNums, &b.Perm} {
		n, err := strconv.ParseInt(f[1+i], 10, 32)
		if err != nil {
			return TopicConfig{}, fmt.Errorf("topic line %q: %w", s, err)
		}
		*p = int32(n)
	}
	if len(f) == 6 && strings.TrimSpace(f[5]) != "" {
		m := Members{read: lenient{b: []byte(f[5])}}
		mapValue(&m, &b.Attributes, stringKey, m.str)
		if m.read.err != nil {
			return TopicConfig{}, fmt.Errorf("topic line %q: %w", s, m.read.err)
		}
	}
	return b, nil
}

package remoting

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// captured returns the frames under testdata: one file per frame, hex with any blanks,
// the length field included; lines that begin with # are comments.
func captured(t testing.TB) map[string][]byte {
	files, err := filepath.Glob("testdata/*.hex")
	if err != nil {
		t.Fatal(err)
	}
	frames := map[string][]byte{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var digits strings.Builder
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "#") {
				digits.WriteString(strings.Join(strings.Fields(line), ""))
			}
		}
		if frames[f], err = hex.DecodeString(digits.String()); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
	}
	return frames
}

// TestCapturedFrames reads every frame under testdata, with the header of its code, and
// writes the header again: nothing of it may get lost.
func TestCapturedFrames(t *testing.T) {
	for name, frame := range captured(t) {
		n, err := FrameSize(frame)
		if err != nil || n != len(frame)-LengthSize {
			t.Errorf("%s: length field %d of %d bytes, %v", name, n, len(frame), err)
			continue
		}
		var c Command
		if err := c.Parse(bytes.Clone(frame[LengthSize:])); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.IsResponse() {
			continue
		}
		code, known := LookupCode(c.Code)
		if !known {
			t.Errorf("%s: code %d is not in the table", name, c.Code)
		}
		if code.Header == nil {
			continue
		}
		h := code.Header()
		if err := c.Decode(h); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var again Command
		if err := again.Parse(AppendRequest(nil, c.Code, c.Opaque, c.Flag, h, c.Body)[LengthSize:]); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.Ext.Each(func(field, value []byte) {
			got, ok := again.Ext.Get(string(field))
			if zero := string(value) == "" || string(value) == "0" || string(value) == "false"; got != string(value) && (ok || !zero) && !generalField(string(field)) {
				t.Errorf("%s: field %s: %q became %q", name, field, value, got)
			}
		})
	}
}

// generalField names fields that any request may carry and that no header keeps.
func generalField(name string) bool {
	switch name {
	case "ns", "nsd", "oway", "lo", "bname", "AccessKey", "Signature", "SecurityToken", "_UNIQUE_KEY_QUERY":
		return true
	}
	return false
}

func FuzzFrame(f *testing.F) {
	for _, frame := range captured(f) {
		f.Add(frame[LengthSize:])
	}
	f.Add(jsonFrame(`{"code":10,"extFields":{"a":"\u0001\"x\\","b":1},"flag":0,"language":"JAVA","opaque":3,"remark":null,"version":477}`))
	f.Add((&Command{Code: 11, Body: []byte("x")}).AppendBinary(nil)[LengthSize:])
	f.Add(AppendRequest(nil, ReqSendMessageV2, 1, 0, &SendMessageRequest{V2: true, Properties: "KEYS\x01k\x02"}, []byte("b"))[LengthSize:])
	f.Fuzz(func(t *testing.T, frame []byte) {
		var c Command
		if c.Parse(bytes.Clone(frame)) != nil {
			return
		}
		code, _ := LookupCode(c.Code)
		if code.Header == nil {
			return
		}
		h := code.Header()
		if c.Decode(h) != nil {
			return
		}
		var again Command
		if err := again.Parse(AppendRequest(nil, c.Code, c.Opaque, c.Flag, h, c.Body)[LengthSize:]); err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		h2 := code.Header()
		if err := again.Decode(h2); err != nil || !reflect.DeepEqual(h, h2) {
			t.Fatalf("%+v became %+v, %v", h, h2, err)
		}
		if clone := again.Clone(); dump(clone) != dump(&again) || !bytes.Equal(clone.Body, again.Body) {
			t.Fatal("a clone differs")
		}
	})
}

func FuzzBody(f *testing.F) {
	for i, b := range bodies() {
		n := 0
		stuff(reflect.ValueOf(b).Elem(), &n)
		f.Add(byte(i), Marshal(b))
		f.Add(byte(i), MarshalStandard(b))
	}
	f.Add(byte(33), []byte(`{'clientID':x,"consumerDataSet":[{"consumeType":1}],}`))
	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		all := bodies()
		b := all[int(kind)%len(all)]
		if Unmarshal(data, b) != nil {
			return
		}
		one := Marshal(b)
		again := reflect.New(reflect.TypeOf(b).Elem()).Interface().(Body)
		if err := Unmarshal(one, again); err != nil {
			t.Fatalf("%T: what was written can't be read: %v\n%s", b, err, one)
		}
		if two := Marshal(again); !bytes.Equal(one, two) {
			t.Fatalf("%T:\n%s\n%s", b, one, two)
		}
	})
}

func FuzzRegisterBroker(f *testing.F) {
	b := &RegisterBrokerBody{TopicConfigSerializeWrapper: TopicConfigTable{TopicConfigTable: map[string]TopicConfig{
		"t": {TopicName: "t", TopicFilterType: "SINGLE_TAG", Attributes: map[string]string{"a": "b"}}}}}
	f.Add(MarshalRegisterBroker(b, true), true)
	f.Add(MarshalRegisterBroker(b, false), false)
	f.Fuzz(func(t *testing.T, data []byte, compressed bool) {
		var b RegisterBrokerBody
		UnmarshalRegisterBroker(data, compressed, &b)
	})
}

package remoting

import (
	"encoding/binary"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func jsonFrame(header string) []byte {
	n := len(header)
	return append([]byte{0, byte(n >> 16), byte(n >> 8), byte(n)}, header...)
}

func TestJSONHeaderForms(t *testing.T) {
	for _, tt := range []struct{ name, header, want string }{
		{"usual", `{"code":10,"extFields":{"a":"x"},"flag":0,"language":"JAVA","opaque":3,"serializeTypeCurrentRPC":"JSON","version":477}`, "10 JAVA 477 3 0  a=x"},
		{"blanks", " {\t\"code\" : 10 ,\r\n\"extFields\" : { \"a\" : \"x\" } } ", "10 JAVA 0 0 0  a=x"},
		{"empty", `{}`, "0 JAVA 0 0 0 "},
		{"language by number", `{"language":9}`, "0 GO 0 0 0 "},
		{"unknown language", `{"language":"COBOL"}`, "0 OTHER 0 0 0 "},
		{"unknown members", `{"x":[1,{"y":"}]"},null],"code":5,"z":1.5e3}`, "5 JAVA 0 0 0 "},
		{"nulls", `{"remark":null,"extFields":null,"language":null,"code":null}`, "0 JAVA 0 0 0 "},
		{"null field", `{"extFields":{"a":null,"b":""}}`, "0 JAVA 0 0 0  b="},
		{"values that are no strings", `{"extFields":{"a":12,"b":true,"c":-3,"d":{"x":1}}}`, `0 JAVA 0 0 0  a=12 b=true c=-3 d={"x":1}`},
		{"quoted numbers", `{"code":"11","opaque":"-5"}`, "11 JAVA 0 -5 0 "},
		{"escapes", `{"remark":"\u0001\"\\\/\b\f\n\r\t\u00fc\ud83d\ude00.","extFields":{"\u0061":"\"\"","b":"\\"}}`,
			"0 JAVA 0 0 0 \x01\"\\/\b\f\n\r\tü😀. a=\"\" b=\\"},
		{"lone surrogates", `{"remark":"\ud83dx\ude00\ud83d\u0041"}`, "0 JAVA 0 0 0 \ufffdx\ufffd\ufffdA"},
	} {
		var c Command
		if err := c.Parse(jsonFrame(tt.header)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := dump(&c); got != tt.want {
			t.Errorf("%s:\n got %q\nwant %q", tt.name, got, tt.want)
		}
	}
}

func TestJSONHeaderRefusals(t *testing.T) {
	for _, header := range []string{
		``, `[]`, `{`, `{"code"`, `{"code":`, `{"code":1`, `{"code":1,`, `{"code":1,}`, `{code:1}`, `{"code":1}x`,
		`{"code":99999999999}`, `{"code":1.5}`, `{"code":"x"}`, `{"code":[]}`, `{"extFields":"x"}`, `{"extFields":[]}`,
		`{"remark":"\x"}`, `{"remark":"\u12"}`, `{"remark":"\u12"34"}`, `{"remark":"\"}`, `{"remark":"\`, `{"a":]}`, `{"a":,}`,
		`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
	} {
		var c Command
		if err := c.Parse(jsonFrame(header)); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", header, err)
		}
	}
}

func TestFrameSizes(t *testing.T) {
	for _, tt := range []struct {
		bytes string
		size  int // 0: refused
	}{
		{"\x00\x00\x00\x04", 4}, {"\x01\x00\x00\x00", MaxFrame}, {"\x01\x00\x00\x01", 0}, {"\x00\x00\x00\x03", 0},
		{"\x00\x00\x00\x00", 0}, {"\xff\xff\xff\xff", 0}, {"GET ", 0}, {"\x80\x00\x00\x00", 0},
	} {
		n, err := FrameSize([]byte(tt.bytes))
		if (tt.size == 0) != errors.Is(err, ErrFrame) || n != tt.size {
			t.Errorf("%q: %d, %v", tt.bytes, n, err)
		}
	}
	for _, frame := range []string{"", "\x00\x00\x00", "\x00\x00\x00\x01", "\x00\xff\xff\xff{}", "\x02\x00\x00\x02{}", "\x01\x00\x00\x02{}"} {
		var c Command
		if err := c.Parse([]byte(frame)); !errors.Is(err, ErrFrame) {
			t.Errorf("%q: %v", frame, err)
		}
	}
}

// TestBinaryCodeIsCut holds that a code beyond 16 bits arrives as something else: POP's
// 200050 becomes 3442.
func TestBinaryCodeIsCut(t *testing.T) {
	frame := (&Command{Code: ReqPopMessage}).AppendBinary(nil)
	var c Command
	if err := c.Parse(frame[LengthSize:]); err != nil || c.Code != 3442 {
		t.Errorf("code %d, %v", c.Code, err)
	}
}

func TestResponseForm(t *testing.T) {
	got := string(AppendResponse(nil, 5, ResSuccess, "", &SendMessageResponse{MsgID: "01", QueueID: 2, QueueOffset: 3, TraceOn: "true"}, nil)[8:])
	want := `{"code":0,"extFields":{"msgId":"01","queueId":"2","queueOffset":"3","TRACE_ON":"true"},"flag":1,"language":"JAVA","opaque":5,"serializeTypeCurrentRPC":"JSON","version":513}`
	if got != want {
		t.Error(got)
	}
	got = string(AppendResponse(nil, 5, ResSystemError, "a \"b\"\x00", nil, []byte("xyz"))[8:])
	want = `{"code":1,"flag":1,"language":"JAVA","opaque":5,"remark":"a \"b\"\u0000","serializeTypeCurrentRPC":"JSON","version":513}xyz`
	if got != want {
		t.Error(got)
	}
}

func TestNamesAreKeptOnce(t *testing.T) {
	var n Names
	a, b := n.String(0, []byte("topic")), n.String(0, []byte("topic"))
	if a != "topic" || b != "topic" {
		t.Fatal(a, b)
	}
	if got := testing.AllocsPerRun(100, func() { n.String(0, []byte("topic")) }); got != 0 {
		t.Errorf("%v allocations for a name seen before", got)
	}
	for i := range 10 * maxNames {
		n.String(i, []byte{byte(i), byte(i >> 8), 'x'})
	}
	if len(n.seen) > maxNames {
		t.Errorf("%d names kept", len(n.seen))
	}
}

func dump(c *Command) string {
	var b strings.Builder
	b.WriteString(strings.Join([]string{itoa(c.Code), c.Language.String(), itoa(c.Version), itoa(c.Opaque), itoa(c.Flag), c.Remark}, " "))
	c.Ext.Each(func(name, value []byte) { b.WriteString(" " + string(name) + "=" + string(value)) })
	return b.String()
}

func itoa(n int32) string { return strconv.Itoa(int(n)) }

// TestBooleans holds that what is not true is false, whatever it is.
func TestBooleans(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "TRUE": true, "True": true, "false": false, "": false, "0": false, "1": false, "yes": false} {
		c := Command{}
		c.Ext.list = []field{{[]byte("order"), []byte(text)}, {[]byte("setZeroIfNotFound"), []byte(text)}}
		var v struct {
			order bool
			zero  Opt[bool]
		}
		h := headerFunc(func(x *Visitor) {
			x.Bool("order", &v.order, Required)
			x.OptBool("setZeroIfNotFound", &v.zero)
		})
		if err := c.Decode(h); err != nil || v.order != want || v.zero != Some(want) {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}

type headerFunc func(v *Visitor)

func (f headerFunc) Fields(v *Visitor) { f(v) }

// TestHeaderOfManyFields: a field costs more in memory than on the wire.
func TestHeaderOfManyFields(t *testing.T) {
	for _, c := range []struct {
		fields int
		ok     bool
	}{{maxFields, true}, {maxFields + 1, false}, {1 << 20, false}} {
		text := `{"code":1,"extFields":{` + strings.Repeat(`"a":"b",`, c.fields-1) + `"a":"b"}}`
		frame := append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
		if err := new(Command).Parse(frame); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrFrame) {
			t.Errorf("JSON, %d fields: %v", c.fields, err)
		}
		many := Command{Ext: Fields{list: slices.Repeat([]field{{[]byte("a"), []byte("b")}}, c.fields)}}
		if err := new(Command).Parse(many.AppendBinary(nil)[LengthSize:]); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrFrame) {
			t.Errorf("binary, %d fields: %v", c.fields, err)
		}
	}
}

// TestLongRemarks: an answer that repeats what a peer has sent is still a frame.
func TestLongRemarks(t *testing.T) {
	for _, remark := range []string{strings.Repeat("\x01", 15<<20), strings.Repeat("ü", maxRemark), strings.Repeat("x", maxRemark), ""} {
		var c Command
		if err := c.Parse(AppendResponse(nil, 1, ResTopicNotExist, remark, nil, []byte("body"))[LengthSize:]); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(remark, c.Remark) || len(c.Remark) < min(len(remark), maxRemark-1) || !utf8.ValidString(c.Remark) || string(c.Body) != "body" {
			t.Errorf("of %d bytes %d came, body %q", len(remark), len(c.Remark), c.Body)
		}
	}
}

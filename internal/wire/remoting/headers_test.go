package remoting

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// fill gives every field of a header struct a value of its own.
func fill(h Header) {
	v := reflect.ValueOf(h).Elem()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if name == "V2" {
			continue
		}
		switch f.Kind() {
		case reflect.String:
			f.SetString(name + " \"quoted\" \x01\x02 ü 😀 \\")
		case reflect.Int32, reflect.Int64:
			f.SetInt(int64(-1000 - i))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Struct: // Opt
			f.Field(1).SetBool(true)
		}
	}
}

// TestHeadersReadWhatTheyWrite goes through every header of the table of codes.
func TestHeadersReadWhatTheyWrite(t *testing.T) {
	for _, code := range RequestCodes() {
		if code.Header == nil {
			continue
		}
		in := code.Header()
		fill(in)
		frame := AppendRequest(nil, code.Code, 7, 0, in, []byte("body"))
		n, err := FrameSize(frame)
		if err != nil || n != len(frame)-LengthSize {
			t.Fatalf("%s: size %d of %d, %v", code.Name, n, len(frame), err)
		}
		var c Command
		if err := c.Parse(frame[LengthSize:]); err != nil {
			t.Fatalf("%s: %v", code.Name, err)
		}
		out := code.Header()
		if err := c.Decode(out); err != nil {
			t.Fatalf("%s: %v", code.Name, err)
		}
		if !reflect.DeepEqual(in, out) || string(c.Body) != "body" || c.Code != code.Code || c.Opaque != 7 {
			t.Errorf("%s: wrote %+v, read %+v", code.Name, in, out)
		}
		// The binary encoding carries the same fields, and codes of 16 bits.
		frame = c.AppendBinary(nil)
		var b Command
		if err := b.Parse(frame[LengthSize:]); err != nil {
			t.Fatalf("%s: %v", code.Name, err)
		}
		out = code.Header()
		if err := b.Decode(out); err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("%s, binary: wrote %+v, read %+v, %v", code.Name, in, out, err)
		}
		if b.Code != int32(int16(code.Code)) {
			t.Errorf("%s, binary: code %d", code.Name, b.Code)
		}
	}
}

// TestRequiredFieldsAreNamed leaves out each field in turn.
func TestRequiredFieldsAreNamed(t *testing.T) { // R098
	for _, code := range RequestCodes() {
		if code.Header == nil {
			continue
		}
		in := code.Header()
		fill(in)
		var whole Command
		if err := whole.Parse(AppendRequest(nil, code.Code, 7, 0, in, nil)[LengthSize:]); err != nil {
			t.Fatal(err)
		}
		for i, f := range whole.Ext.list {
			c := Command{Code: code.Code}
			c.Ext.list = slices.Delete(slices.Clone(whole.Ext.list), i, i+1)
			err := c.Decode(code.Header())
			var fe *FieldError
			if err != nil && (!errors.As(err, &fe) || fe.Field != string(f.name) || fe.Request != code.Name) {
				t.Errorf("%s without %s: %v", code.Name, f.name, err)
			}
			c.Ext.list = slices.Clone(whole.Ext.list)
			c.Ext.list[i].value = []byte("x")
			err = c.Decode(code.Header())
			if err != nil && (!errors.As(err, &fe) || fe.Field != string(f.name) || !strings.Contains(err.Error(), `"x"`)) {
				t.Errorf("%s with %s=x: %v", code.Name, f.name, err)
			}
		}
	}
	var h SendMessageRequest
	c := Command{Code: ReqSendMessage}
	if got := c.Decode(&h).Error(); got != "SEND_MESSAGE: header field producerGroup is missing" {
		t.Error(got)
	}
}

// TestCodesAreInOrder keeps the table readable and without doubles.
func TestCodesAreInOrder(t *testing.T) {
	last := int32(-1)
	for _, c := range RequestCodes() {
		if c.Code <= last {
			t.Errorf("%s (%d) stands after %d", c.Name, c.Code, last)
		}
		if (c.State == Refused) != (c.Why != "") {
			t.Errorf("%s: state %d, reason %q", c.Name, c.State, c.Why)
		}
		last = c.Code
	}
}

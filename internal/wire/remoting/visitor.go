package remoting

import (
	"fmt"
	"strconv"
	"unsafe"
)

// Need says whether a header field may be absent.
type Need bool

// What a field may be.
const (
	Optional Need = false
	Required Need = true
)

// FieldError says which header field cannot be used and why.
type FieldError struct {
	Request string // name of the request code, "" in a response
	Field   string
	Want    string // the type it has to have; "" when the field is missing
	Got     string
}

// Error names request, field and what is wrong with it.
func (e *FieldError) Error() string {
	where := "header field " + e.Field
	if e.Request != "" {
		where = e.Request + ": " + where
	}
	if e.Want == "" {
		return where + " is missing"
	}
	got := e.Got
	if len(got) > 64 {
		got = got[:64] + "…"
	}
	return fmt.Sprintf("%s must be %s, not %q", where, e.Want, got)
}

// Visitor carries a header's fields from or to a frame. A Fields method calls one method
// for each field; the visitor reads into the variable or writes it, whichever it is for.
// When it reads, an absent optional field leaves the zero value; when it writes, an
// optional field that is zero is left out.
type Visitor struct {
	writing bool

	fields []field
	there  uint64
	next   int // where the field after the last one found is likely to be
	names  *Names
	err    *FieldError

	out     []byte
	written int
}

// Writing reports whether the visitor writes, for the few headers whose fields depend
// on it.
func (v *Visitor) Writing() bool { return v.writing }

func (v *Visitor) find(name string, need Need) ([]byte, bool) {
	f := v.fields
	if v.next < len(f) && string(f[v.next].name) == name {
		v.next++
		return f[v.next-1].value, true
	}
	if v.there == 0 || v.there&nameBit(name) != 0 {
		for i := range f {
			if n := f[i].name; len(n) == len(name) && n[0] == name[0] && string(n) == name {
				v.next = i + 1
				return f[i].value, true
			}
		}
	}
	if need == Required {
		v.fail(name, "", nil)
	}
	return nil, false
}

func (v *Visitor) fail(name, want string, got []byte) {
	if v.err == nil {
		v.err = &FieldError{Field: name, Want: want, Got: string(got)}
	}
}

// put writes the name and opens the value; the caller sets v.out to what it appends.
func (v *Visitor) put(name string) []byte {
	out := v.out
	if v.written > 0 {
		out = append(out, ',', '"')
	} else {
		out = append(out, '"')
	}
	v.written++
	out = append(out, name...)
	return append(out, `":"`...)
}

// Name is a string that repeats on a connection: a topic, a group, a broker.
func (v *Visitor) Name(name string, p *string, need Need) {
	if v.writing {
		v.putString(name, *p, need)
		return
	}
	if b, ok := v.find(name, need); ok {
		*p = v.names.String(v.next, b)
	} else {
		*p = ""
	}
}

// Str is a string that does not repeat; it is copied.
func (v *Visitor) Str(name string, p *string, need Need) {
	if v.writing {
		v.putString(name, *p, need)
		return
	}
	if b, ok := v.find(name, need); ok {
		*p = string(b)
	} else {
		*p = ""
	}
}

// Ref is a string that aliases the frame: valid until the handler returns.
func (v *Visitor) Ref(name string, p *string, need Need) {
	if v.writing {
		v.putString(name, *p, need)
		return
	}
	if b, ok := v.find(name, need); ok {
		*p = unsafe.String(unsafe.SliceData(b), len(b))
	} else {
		*p = ""
	}
}

func (v *Visitor) putString(name, s string, need Need) {
	if s == "" && need == Optional {
		return
	}
	v.out = append(appendEscaped(v.put(name), s), '"')
}

// Int32 is a 32-bit integer.
func (v *Visitor) Int32(name string, p *int32, need Need) {
	if v.writing {
		if *p != 0 || need == Required {
			v.putInt(name, int64(*p))
		}
		return
	}
	*p = 0
	if b, ok := v.find(name, need); ok {
		*p = v.int32(name, b)
	}
}

// Int64 is a 64-bit integer.
func (v *Visitor) Int64(name string, p *int64, need Need) {
	if v.writing {
		if *p != 0 || need == Required {
			v.putInt(name, *p)
		}
		return
	}
	*p = 0
	if b, ok := v.find(name, need); ok {
		*p = v.int64(name, b)
	}
}

// Bool is true when it reads so, in any case. All else is false, as for Apache: the C++
// client writes 0 and 1, and is understood to have said false both times.
func (v *Visitor) Bool(name string, p *bool, need Need) {
	if v.writing {
		if *p || need == Required {
			v.putBool(name, *p)
		}
		return
	}
	*p = false
	if b, ok := v.find(name, need); ok {
		*p = equalFold(b, "true")
	}
}

// Opt is a value that may be absent where absence is not the same as zero.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some is a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// Or returns the value, or otherwise when it is absent.
func (o Opt[T]) Or(otherwise T) T {
	if o.Set {
		return o.Value
	}
	return otherwise
}

// OptInt32 is a 32-bit integer that may be absent.
func (v *Visitor) OptInt32(name string, p *Opt[int32]) {
	if v.writing {
		if p.Set {
			v.putInt(name, int64(p.Value))
		}
		return
	}
	*p = Opt[int32]{}
	if b, ok := v.find(name, Optional); ok {
		*p = Opt[int32]{v.int32(name, b), true}
	}
}

// OptInt64 is a 64-bit integer that may be absent.
func (v *Visitor) OptInt64(name string, p *Opt[int64]) {
	if v.writing {
		if p.Set {
			v.putInt(name, p.Value)
		}
		return
	}
	*p = Opt[int64]{}
	if b, ok := v.find(name, Optional); ok {
		*p = Opt[int64]{v.int64(name, b), true}
	}
}

// OptBool is a boolean that may be absent.
func (v *Visitor) OptBool(name string, p *Opt[bool]) {
	if v.writing {
		if p.Set {
			v.putBool(name, p.Value)
		}
		return
	}
	*p = Opt[bool]{}
	if b, ok := v.find(name, Optional); ok {
		*p = Opt[bool]{equalFold(b, "true"), true}
	}
}

func (v *Visitor) putInt(name string, n int64) {
	v.out = append(strconv.AppendInt(v.put(name), n, 10), '"')
}

func (v *Visitor) putBool(name string, b bool) {
	v.out = append(strconv.AppendBool(v.put(name), b), '"')
}

func (v *Visitor) int32(name string, b []byte) int32 {
	n, ok := parseInt(b)
	if !ok || n != int64(int32(n)) {
		v.fail(name, "a 32-bit integer", b)
	}
	return int32(n)
}

func (v *Visitor) int64(name string, b []byte) int64 {
	n, ok := parseInt(b)
	if !ok {
		v.fail(name, "a 64-bit integer", b)
	}
	return n
}

func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// parseInt reads an optional sign and digits, nothing else.
func parseInt(b []byte) (int64, bool) {
	i, negative := 0, false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative, i = b[0] == '-', 1
	}
	if i == len(b) {
		return 0, false
	}
	if len(b)-i > 18 {
		n, err := strconv.ParseInt(string(b), 10, 64)
		return n, err == nil
	}
	var n int64
	for ; i < len(b); i++ {
		d := b[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + int64(d)
	}
	if negative {
		n = -n
	}
	return n, true
}

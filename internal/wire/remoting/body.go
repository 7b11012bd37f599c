package remoting

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Body is a JSON body, or an object within one. Members names its members to m in
// alphabetical order, as Apache writes them; m reads or writes each. Reading leaves
// members that are not there as they were, so defaults are set before Unmarshal.
type Body interface{ Members(m *Members) }

// ErrBody is what every refusal of a body's bytes wraps.
var ErrBody = errors.New("body is not what its request code says")

// maxItems bounds the elements of all lists and maps of one body: an element costs more
// in memory than on the wire.
const maxItems = 1 << 19

// Marshal returns b in the form that Apache's JSON library writes: map keys that are
// numbers bare, map keys that are message queues as objects.
func Marshal(b Body) []byte { return marshal(b, false) }

// MarshalStandard returns b as JSON of the standard: every key is a string.
func MarshalStandard(b Body) []byte { return marshal(b, true) }

func marshal(b Body, standard bool) []byte {
	m := Members{writing: true, standard: standard}
	m.object(b)
	return m.out
}

// Unmarshal reads data into b. It takes what Apache's JSON library takes: bare and
// single-quoted keys, numbers and objects as keys, enumerations by name or number,
// numbers in quotes, members it does not know. data is not changed and not kept.
func Unmarshal(data []byte, b Body) error {
	m := Members{read: lenient{b: data}}
	m.object(b)
	if m.read.err == nil && m.read.peek() != 0 {
		m.read.fail("the end")
	}
	if m.read.err != nil {
		return fmt.Errorf("%w: %w", ErrBody, m.read.err)
	}
	return nil
}

// UnmarshalList reads a JSON array of bodies.
func UnmarshalList[T any, P bodyOf[T]](data []byte) ([]T, error) {
	m := Members{read: lenient{b: data}}
	var list []T
	m.list(func() { m.object(P(grow(&list))) })
	if m.read.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBody, m.read.err)
	}
	return list, nil
}

// MarshalList returns bodies as a JSON array.
func MarshalList[T any, P bodyOf[T]](list []T) []byte {
	m := Members{writing: true}
	writeList(&m, list, func(x *T) { m.object(P(x)) })
	return m.out
}

// Members carries the members of a body from or to JSON.
type Members struct {
	writing  bool
	standard bool
	out      []byte
	written  int // members of the object being written

	read  lenient
	want  []byte // name of the member being read
	hit   bool   // somebody has read it
	items int
}

// Writing reports whether m writes.
func (m *Members) Writing() bool { return m.writing }

// member reports whether the member called name is to be read or written now.
func (m *Members) member(name string) bool {
	if m.writing {
		m.comma()
		m.out = append(m.out, '"')
		m.out = append(m.out, name...)
		m.out = append(m.out, '"', ':')
		return true
	}
	if m.hit || string(m.want) != name {
		return false
	}
	m.hit = true
	return true
}

func (m *Members) comma() {
	if m.written > 0 {
		m.out = append(m.out, ',')
	}
	m.written++
}

func (m *Members) object(b Body) {
	if m.writing {
		outer := m.written
		m.written = 0
		m.out = append(m.out, '{')
		b.Members(m)
		m.out = append(m.out, '}')
		m.written = outer
		return
	}
	if m.read.null() {
		return
	}
	want, hit := m.want, m.hit
	m.read.object(func() {
		m.want, m.hit = m.read.key(), false
		if !m.read.colon() {
			return
		}
		b.Members(m)
		if !m.hit {
			m.read.skip()
		}
	})
	m.want, m.hit = want, hit
}

// list reads an array; element reads the next element.
func (m *Members) list(element func()) {
	if m.read.null() {
		return
	}
	m.read.array(func() {
		if m.items++; m.items > maxItems {
			m.read.fail("at most " + strconv.Itoa(maxItems) + " elements")
			return
		}
		element()
	})
}

// entries reads an object that is a map; entry reads key, colon and value.
func (m *Members) entries(entry func()) {
	if m.read.null() {
		return
	}
	m.read.object(func() {
		if m.items++; m.items > maxItems {
			m.read.fail("at most " + strconv.Itoa(maxItems) + " entries")
			return
		}
		entry()
	})
}

func (m *Members) str(p *string) {
	if m.writing {
		m.quoted(*p)
		return
	}
	if !m.read.null() {
		*p = m.read.text()
	}
}

func (m *Members) quoted(s string) { m.out = AppendString(m.out, s) }

// AppendString appends s as JSON, for a body too large to be made of maps first.
func AppendString(dst []byte, s string) []byte {
	return append(appendEscaped(append(dst, '"'), s), '"')
}

func (m *Members) int(p *int64) {
	if m.writing {
		m.out = strconv.AppendInt(m.out, *p, 10)
		return
	}
	if !m.read.null() {
		*p = m.read.int()
	}
}

func (m *Members) float(p *float64) {
	if m.writing {
		f := *p
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = 0
		}
		m.out = strconv.AppendFloat(m.out, f, 'f', -1, 64)
		if f == math.Trunc(f) {
			m.out = append(m.out, ".0"...) // as Java writes it
		}
		return
	}
	if !m.read.null() {
		*p = m.read.float()
	}
}

// Str is a string that is always written.
func (m *Members) Str(name string, p *string) {
	if m.member(name) {
		m.str(p)
	}
}

// OptStr is a string that is left out when empty.
func (m *Members) OptStr(name string, p *string) {
	if !m.writing || *p != "" {
		m.Str(name, p)
	}
}

// Enum is one of names, which may be read as its number in the list.
func (m *Members) Enum(name string, p *string, names []string) {
	if m.writing {
		m.OptStr(name, p)
		return
	}
	m.Str(name, p)
	if n, err := strconv.Atoi(*p); err == nil && n >= 0 && n < len(names) {
		*p = names[n]
	}
}

// Int64 is a number.
func (m *Members) Int64(name string, p *int64) {
	if m.member(name) {
		m.int(p)
	}
}

// Int32 is a number of 32 bits.
func (m *Members) Int32(name string, p *int32) {
	if !m.member(name) {
		return
	}
	n := int64(*p)
	if m.int(&n); n != int64(int32(n)) {
		m.read.fail("a 32-bit integer")
		return
	}
	*p = int32(n)
}

// Float is a number with a fraction.
func (m *Members) Float(name string, p *float64) {
	if m.member(name) {
		m.float(p)
	}
}

// Bool is true or false.
func (m *Members) Bool(name string, p *bool) {
	if !m.member(name) {
		return
	}
	if m.writing {
		m.out = strconv.AppendBool(m.out, *p)
	} else if !m.read.null() {
		*p = m.read.bool()
	}
}

// Strs is a list of strings.
func (m *Members) Strs(name string, p *[]string) {
	listOf(m, name, p, m.str)
}

func (m *Members) strs(p *[]string) { listValue(m, p, m.str) }

// Int32s is a list of numbers.
func (m *Members) Int32s(name string, p *[]int32) {
	listOf(m, name, p, func(x *int32) {
		n := int64(*x)
		m.int(&n)
		*x = int32(n)
	})
}

// Int64s is a list of numbers.
func (m *Members) Int64s(name string, p *[]int64) { listOf(m, name, p, m.int) }

// Object is an object within the object.
func (m *Members) Object(name string, b Body) {
	if m.member(name) {
		m.object(b)
	}
}

// StrMap is a map of strings.
func (m *Members) StrMap(name string, p *map[string]string) {
	mapOf(m, name, p, stringKey, m.str)
}

// bodyOf is the pointer to T that is a Body.
type bodyOf[T any] interface {
	*T
	Body
}

// opt is an object that may be absent.
func opt[T any, P bodyOf[T]](m *Members, name string, p **T) {
	if m.writing {
		if *p != nil {
			m.Object(name, P(*p))
		}
		return
	}
	if m.member(name) && !m.read.null() {
		*p = new(T)
		m.object(P(*p))
	}
}

func grow[T any](list *[]T) *T {
	var zero T
	*list = append(*list, zero)
	return &(*list)[len(*list)-1]
}

func listOf[T any](m *Members, name string, p *[]T, each func(*T)) {
	if m.member(name) {
		listValue(m, p, each)
	}
}

// listValue is a list that is itself a value.
func listValue[T any](m *Members, p *[]T, each func(*T)) {
	if m.writing {
		writeList(m, *p, each)
		return
	}
	*p = nil
	m.list(func() { each(grow(p)) })
}

func writeList[T any](m *Members, list []T, each func(*T)) {
	m.out = append(m.out, '[')
	for i := range list {
		if i > 0 {
			m.out = append(m.out, ',')
		}
		each(&list[i])
	}
	m.out = append(m.out, ']')
}

// objects is a list of objects.
func objects[T any, P bodyOf[T]](m *Members, name string, p *[]T) {
	listOf(m, name, p, func(x *T) { m.object(P(x)) })
}

// keyKind is how keys of a map are read, written and ordered.
type keyKind[K comparable] struct {
	read    func(m *Members) K
	write   func(m *Members, k K)
	compare func(a, b K) int
}

var stringKey = keyKind[string]{
	read:    func(m *Members) string { return string(m.read.key()) },
	write:   func(m *Members, k string) { m.quoted(k) },
	compare: cmp.Compare[string],
}

func numberKey[K int32 | int64]() keyKind[K] {
	return keyKind[K]{
		read: func(m *Members) K {
			n, ok := parseInt(m.read.key())
			if !ok || n != int64(K(n)) {
				m.read.fail("a number as key")
			}
			return K(n)
		},
		write: func(m *Members, k K) {
			if m.standard {
				m.quoted(strconv.FormatInt(int64(k), 10))
			} else {
				m.out = strconv.AppendInt(m.out, int64(k), 10)
			}
		},
		compare: cmp.Compare[K],
	}
}

var queueKey = keyKind[MessageQueue]{
	read: func(m *Members) (q MessageQueue) {
		if m.read.peek() == '{' {
			m.object(&q)
			return q
		}
		if err := Unmarshal(m.read.key(), &q); err != nil {
			m.read.fail("a message queue as key")
		}
		return q
	},
	write: func(m *Members, k MessageQueue) {
		if m.standard {
			m.quoted(string(Marshal(&k)))
		} else {
			m.object(&k)
		}
	},
	compare: MessageQueue.Compare,
}

func mapOf[K comparable, T any](m *Members, name string, p *map[K]T, keys keyKind[K], each func(*T)) {
	if m.member(name) {
		mapValue(m, p, keys, each)
	}
}

// mapValue is a map that is itself a value.
func mapValue[K comparable, T any](m *Members, p *map[K]T, keys keyKind[K], each func(*T)) {
	if !m.writing {
		*p = map[K]T{}
		m.entries(func() {
			k := keys.read(m)
			if !m.read.colon() {
				return
			}
			var x T
			each(&x)
			(*p)[k] = x
		})
		return
	}
	m.out = append(m.out, '{')
	for i, k := range slices.SortedFunc(maps.Keys(*p), keys.compare) {
		if i > 0 {
			m.out = append(m.out, ',')
		}
		keys.write(m, k)
		m.out = append(m.out, ':')
		x := (*p)[k]
		each(&x)
	}
	m.out = append(m.out, '}')
}

// objectMap is a map of objects by name.
func objectMap[T any, P bodyOf[T]](m *Members, name string, p *map[string]T) {
	mapOf(m, name, p, stringKey, func(x *T) { m.object(P(x)) })
}

// queueMap is a map of objects by message queue.
func queueMap[T any, P bodyOf[T]](m *Members, name string, p *map[MessageQueue]T) {
	mapOf(m, name, p, queueKey, func(x *T) { m.object(P(x)) })
}

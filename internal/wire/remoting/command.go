// Package remoting is the Remoting protocol: frames, both header encodings, every
// request code, header and body, as Apache RocketMQ 5.5.0 speaks it.
//
// Invariants: no reflection on the way of a message; no input panics; a header type is
// described once, by its Fields method, for reading and for writing; a decoded Command
// aliases the frame it was read from, and the frame is changed by decoding (escapes are
// resolved in place), so a frame is decoded once.
//
// Neighbours: transport moves the frames; fronts and clients use the headers.
package remoting

// Header is one request's or response's own fields. Fields names each of them to the
// visitor, which reads or writes it; there is no other description of a header.
type Header interface{ Fields(v *Visitor) }

// Flag bits of a command.
const (
	FlagResponse int32 = 1 // an answer, not a request
	FlagOneway   int32 = 2 // the sender wants no answer, not even an error
)

// Encoding is how a frame's header is written.
type Encoding byte

// The two encodings of a header. A receiver decides per frame; answers are always JSON,
// whatever the request was.
const (
	JSON   Encoding = 0
	Binary Encoding = 1
)

// Command is one frame, a request or a response. Decoded from a frame it aliases that
// frame: Ext and Body are valid as long as the frame is. Header fields that Decode
// fills are safe to keep, except those declared with Visitor.Ref.
type Command struct {
	Code     int32
	Language Language
	Version  int32
	Opaque   int32
	Flag     int32
	Remark   string
	Ext      Fields
	Body     []byte
	Encoding Encoding

	names   *Names
	visitor Visitor
}

// Forget drops all that aliases the frame, so that the command does not keep its memory.
func (c *Command) Forget() {
	c.Ext, c.Body, c.visitor = Fields{}, nil, Visitor{}
}

// IsResponse reports whether the command answers a request.
func (c *Command) IsResponse() bool { return c.Flag&FlagResponse != 0 }

// IsOneway reports whether the sender wants no answer.
func (c *Command) IsOneway() bool { return c.Flag&FlagOneway != 0 }

// UseNames makes Decode take names and short strings from n, the table of the
// connection that the command belongs to.
func (c *Command) UseNames(n *Names) { c.names = n }

// Decode fills h from the command's ext fields. The error, a *FieldError, names the
// field that is missing or ill-typed.
func (c *Command) Decode(h Header) error {
	v := &c.visitor
	*v = Visitor{fields: c.Ext.list, there: c.Ext.there, names: c.names}
	h.Fields(v)
	if v.err != nil {
		if !c.IsResponse() {
			v.err.Request = CodeName(c.Code)
		}
		return v.err
	}
	return nil
}

// Fields are the ext fields of a command in the order of the frame.
type Fields struct {
	list []field
	// there has the bit of every name in list; 0 says nothing. A header asks for many
	// fields that are not there.
	there uint64
}

type field struct{ name, value []byte }

// nameBit is one of 64 bits for a name, different for all the names of one letter.
func nameBit[T string | []byte](name T) uint64 {
	return 1 << ((uint(name[0]) + 5*uint(len(name)-1)) & 63)
}

// Len returns how many fields there are.
func (f *Fields) Len() int { return len(f.list) }

// Get returns the value of the named field, as a copy, and whether it is there.
func (f *Fields) Get(name string) (string, bool) {
	for i := range f.list {
		if string(f.list[i].name) == name {
			return string(f.list[i].value), true
		}
	}
	return "", false
}

// Is reports whether the named field is there and has this value; it copies nothing.
func (f *Fields) Is(name, value string) bool {
	for i := range f.list {
		if string(f.list[i].name) == name {
			return string(f.list[i].value) == value
		}
	}
	return false
}

// Each calls yield with every field; the slices alias the frame.
func (f *Fields) Each(yield func(name, value []byte)) {
	for i := range f.list {
		yield(f.list[i].name, f.list[i].value)
	}
}

// Pair is one ext field, kept.
type Pair struct{ Name, Value string }

// Pairs is a Header of any fields: what a proxy passes on, or what has no fixed list.
type Pairs []Pair

// Fields reads all fields of the command, or writes all pairs.
func (p *Pairs) Fields(v *Visitor) {
	if v.writing {
		for _, x := range *p {
			v.out = append(appendEscaped(v.put(x.Name), x.Value), '"')
		}
		return
	}
	*p = (*p)[:0]
	for _, f := range v.fields {
		*p = append(*p, Pair{v.names.String(0, f.name), string(f.value)})
	}
}

// Get returns the value of the named pair, "" when absent.
func (p Pairs) Get(name string) string {
	for _, x := range p {
		if x.Name == name {
			return x.Value
		}
	}
	return ""
}

// Clone returns a copy of c that aliases nothing.
func (c *Command) Clone() *Command {
	n := len(c.Body)
	for _, f := range c.Ext.list {
		n += len(f.name) + len(f.value)
	}
	k := &Command{Code: c.Code, Language: c.Language, Version: c.Version, Opaque: c.Opaque, Flag: c.Flag,
		Remark: c.Remark, Encoding: c.Encoding}
	own := make([]byte, 0, n)
	keep := func(b []byte) []byte {
		at := len(own)
		own = append(own, b...)
		return own[at:len(own):len(own)]
	}
	if len(c.Ext.list) > 0 {
		k.Ext.list = make([]field, len(c.Ext.list))
		for i, f := range c.Ext.list {
			k.Ext.list[i] = field{keep(f.name), keep(f.value)}
		}
	}
	if len(c.Body) > 0 {
		k.Body = keep(c.Body)
	}
	return k
}

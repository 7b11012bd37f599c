package message

import "iter"

// Separators of the properties text: name nameEnd value valueEnd, repeated.
const (
	nameEnd  = 1
	valueEnd = 2
)

// Properties is the properties text of a message, exactly as it is sent and stored. The
// last pair may lack its closing separator; pairs without a name or with an empty value
// are not seen by readers, as in Apache RocketMQ.
type Properties string

// Get returns the value of name and whether it is there.
func (p Properties) Get(name string) (string, bool) { panic("unwritten") }

// Value is Get without the second result: "" when absent.
func (p Properties) Value(name string) string { panic("unwritten") }

// With returns p with name set to value: replaced where it stood, else appended.
func (p Properties) With(name, value string) Properties { panic("unwritten") }

// Without returns p without the named properties.
func (p Properties) Without(names ...string) Properties { panic("unwritten") }

// All yields the pairs in their stored order.
func (p Properties) All() iter.Seq2[string, string] { panic("unwritten") }

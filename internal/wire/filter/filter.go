// Package filter compiles subscription expressions: tags (tags.go) and SQL92 (sql92.go).
//
// Invariants: an Expression is immutable and safe for concurrent use; compiling is the
// only place that rejects, with the position and the reason; asking allocates nothing and
// takes a stack that compiling has bounded. A message without what an expression asks for
// does not match, and is no error. Neighbours: pull, pop and the fronts compile; storage
// asks the compiled expression while it reads, longpoll before it wakes.
package filter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// Kinds of expressions, as the protocol names them.
const (
	KindTag   = "TAG"
	KindSQL92 = "SQL92"

	matchAll = "*"
)

// ErrUnsupported is what an expression of an unknown kind gets.
var ErrUnsupported = errors.New("filter kind is not supported")

// ErrIllegal is what an expression that can't be read gets.
var ErrIllegal = errors.New("illegal filter expression")

// Expression is a compiled subscription expression. A nil Expression matches everything.
type Expression struct {
	kind  string
	text  string
	tags  []string // nil = every message
	codes []int32  // sorted hashes of tags
	sql   node     // nil for tags
	need  *need    // of sql, in a message's traits
}

var all = &Expression{kind: KindTag, text: matchAll}

// All matches every message.
func All() *Expression { return all }

// MaxText is the longest text of an expression in bytes. Expressions are kept by their
// text, in caches and as subscriptions.
const MaxText = 64 << 10

// Compile reads an expression of a kind: TAG, which an empty kind means too, or SQL92.
func Compile(kind, text string) (*Expression, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrIllegal, len(text), MaxText)
	}
	switch kind {
	case "", KindTag:
		return compileTags(text)
	case KindSQL92:
		return compileSQL92(text)
	}
	return nil, fmt.Errorf("%w: expression type %.64q, known are %s and %s", ErrUnsupported, kind, KindTag, KindSQL92)
}

// MatchTagsCode reports whether a message with this code in the consume queue may match:
// false is certain, true must be confirmed by Match once the properties are known.
func (e *Expression) MatchTagsCode(code int64) bool {
	if e.MatchesAll() || e.sql != nil {
		return true
	}
	if int64(int32(code)) != code {
		return false // no hash at all
	}
	if len(e.codes) <= 4 {
		return slices.Contains(e.codes, int32(code))
	}
	_, found := slices.BinarySearch(e.codes, int32(code))
	return found
}

// Match reports whether a message with these properties matches.
func (e *Expression) Match(p message.Properties) bool {
	switch {
	case e.MatchesAll():
		return true
	case e.sql != nil:
		return matchSQL(e.sql, p)
	}
	return slices.Contains(e.tags, p.Value(message.PropertyTags))
}

// MatchRecord is MatchTagsCode and Match of a stored record. One that can't be read
// matches nothing but everything.
func (e *Expression) MatchRecord(tagsCode int64, record []byte) bool {
	if e.MatchesAll() {
		return true
	}
	if !e.MatchTagsCode(tagsCode) {
		return false
	}
	p, ok := message.PropertiesOf(record)
	return ok && e.Match(p)
}

// ByProperties reports that tags codes say nothing: each message's properties have to be
// asked.
func (e *Expression) ByProperties() bool { return e != nil && e.sql != nil }

// MatchesAll reports whether there is nothing to ask.
func (e *Expression) MatchesAll() bool { return e == nil || e.tags == nil && e.sql == nil }

// Tags are the tags in the order of the text; nil when there are none to ask for. The caller
// must not change them.
func (e *Expression) Tags() []string {
	if e == nil {
		return nil
	}
	return e.tags
}

// CodeSet are the hashes of the tags, sorted, each once. The caller must not change them.
func (e *Expression) CodeSet() []int32 {
	if e == nil {
		return nil
	}
	return e.codes
}

// Kind is TAG or SQL92.
func (e *Expression) Kind() string {
	if e == nil {
		return KindTag
	}
	return e.kind
}

// Text is the expression as it was written; "*" for one that matches everything.
func (e *Expression) Text() string {
	if e == nil {
		return matchAll
	}
	return e.text
}

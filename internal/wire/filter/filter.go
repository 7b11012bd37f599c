// Package filter compiles subscription expressions: tags now, SQL92 in its own file.
//
// Invariants: an Expression is immutable and safe for concurrent use; compiling is the
// only place that rejects. Neighbours: pull, pop and the fronts compile; storage asks
// the compiled expression while it reads.
package filter

import (
	"errors"
	"fmt"
	"slices"
)

// Kinds of expressions, as the protocol names them.
const (
	KindTag   = "TAG"
	KindSQL92 = "SQL92"

	matchAll = "*"
)

// ErrUnsupported is what an expression of an unknown or switched-off kind gets.
var ErrUnsupported = errors.New("filter kind is not supported")

// ErrIllegal is what an expression that can't be read gets.
var ErrIllegal = errors.New("illegal filter expression")

// Expression is a compiled subscription expression. A nil Expression matches everything.
type Expression struct {
	kind  string
	text  string
	tags  []string // nil = every message
	codes []int32  // sorted hashes of tags
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
// false is certain, true must be confirmed by Match once the tag is known.
func (e *Expression) MatchTagsCode(code int64) bool {
	if e.MatchesAll() {
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

// Match reports whether a message with this tag matches.
func (e *Expression) Match(tag string) bool {
	return e.MatchesAll() || slices.Contains(e.tags, tag)
}

// MatchesAll reports whether there is nothing to ask.
func (e *Expression) MatchesAll() bool { return e == nil || e.tags == nil }

// Tags are the tags in the order of the text; nil when every message matches. The caller
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

package filter

import (
	"hash/maphash"
	"math"
	"strconv"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// Traits are what is known of a message's properties without reading them: a Bloom filter of
// 64 bits over their names and their pairs of name and value. An expression that asks for a
// pair whose bits are not all there can't match, and the message need not be read. They mean
// something in one process only. Zero is for a message of which nothing is known.
type Traits uint64

// Unremarkable is for a message that has no property worth knowing.
const Unremarkable Traits = 1

var traitsSeed = maphash.MakeSeed()

func nameTraits(name string) Traits { return 1 << (maphash.String(traitsSeed, name) & 63) }

func pairTraits(pair string) Traits {
	h := maphash.String(traitsSeed, pair)
	return 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63)
}

// inEvery reports whether nearly every message has a property of this name that nobody
// filters by. Its bits would make all others worth less.
func inEvery(name string) bool {
	switch name {
	case message.PropertyUniqKey, message.PropertyWait, message.PropertyCluster, message.PropertyRegion, message.PropertyTraceOn:
		return true
	}
	return false
}

const pairSeparator = "\x01"

// Add takes in a property as it is stored: its name, the separator and its value, with the
// length of its name.
func (t *Traits) Add(pair string, name int) {
	if inEvery(pair[:name]) {
		return
	}
	*t |= nameTraits(pair[:name]) | pairTraits(pair)
	if canonical, ok := canonicalInteger(pair[name+1:]); ok {
		*t |= pairTraits(pair[:name] + pairSeparator + canonical)
	}
}

// canonicalInteger is how an integer is written that equals the text as a number and not as
// a text: 07, +7 and 7 in the digits of another script are 7.
func canonicalInteger(text string) (string, bool) {
	switch c := text[0]; {
	case c >= '1' && c <= '9', c == '0' && len(text) == 1:
		if strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0 {
			return "", false // it is written so, or is no integer
		}
	case c == '-', c == '+', c == '0', c >= 0x80:
	default:
		return "", false
	}
	n, ok := javaInteger(text, math.MinInt64, math.MaxInt64)
	if !ok {
		return "", false
	}
	return strconv.FormatInt(n, 10), true
}

// need is what an expression needs of a message's traits to be TRUE: all of some bits, and
// one of several needs each of which is as much. A nil need is none at all.
type need struct {
	bits  Traits
	among []*need
}

func (n *need) met(t Traits) bool {
	if t&n.bits != n.bits {
		return false
	}
	if n.among == nil {
		return true
	}
	for _, one := range n.among {
		if one.met(t) {
			return true
		}
	}
	return false
}

// Possible reports whether a message with these traits may match: false is certain.
func (e *Expression) Possible(t Traits) bool {
	return t == 0 || e == nil || e.need == nil || e.need.met(t)
}

// needOf is what n needs to be TRUE, as far as that is plain; nil where it may be TRUE of
// messages without any property.
func needOf(n node) *need {
	switch n := n.(type) {
	case logic:
		if n.decisive {
			return anyNeed(n.terms)
		}
		return allNeeds(n.terms)
	case equal:
		return needOfEqual(n)
	case order: // NULL on either side makes NULL
		return both(needOfName(n.left), needOfName(n.right))
	case isNull:
		if n.negated {
			return needOfName(n.of)
		}
	case contains: // FALSE for NULL, negated or not
		return needOfName(n.of)
	case *in:
		return needOfIn(n)
	}
	return nil
}

func needOfName(n node) *need {
	if name, ok := n.(property); ok && !inEvery(string(name)) {
		return &need{bits: nameTraits(string(name))}
	}
	return nil
}

// needOfEqual: a property on the left that is not there makes NULL. One on the right makes
// FALSE, which <> turns into TRUE.
func needOfEqual(n equal) *need {
	if n.negated {
		return needOfName(n.left)
	}
	name, isName := n.left.(property)
	c, isConstant := constantOf(n.right)
	if !isName {
		name, isName = n.right.(property)
		c, isConstant = constantOf(n.left)
	}
	if !isName || !isConstant || inEvery(string(name)) {
		return nil
	}
	value := c.s
	switch c.kind {
	case kindText:
	case kindInt, kindLong:
		value = strconv.FormatInt(c.n, 10)
	case kindNull, kindFailed: // minus a text is NULL, which a property that is not there equals
		return nil
	default:
		return needOfName(name)
	}
	return &need{bits: nameTraits(string(name)) | pairTraits(string(name)+pairSeparator+value)}
}

func constantOf(n node) (value, bool) {
	switch n := n.(type) {
	case constant:
		return n.value, true
	case negate:
		_, ok := constantOf(n.of)
		return n.eval(""), ok
	}
	return value{}, false
}

func needOfIn(n *in) *need {
	name := needOfName(n.property)
	if name == nil || n.negated {
		return name
	}
	add := func(text string) {
		name.among = append(name.among, &need{bits: pairTraits(string(n.property) + pairSeparator + text)})
	}
	for _, text := range n.few {
		add(text)
	}
	for text := range n.many {
		add(text)
	}
	return name
}

func allNeeds(terms []node) *need {
	var all *need
	for _, t := range terms {
		all = both(all, needOf(t))
	}
	return all
}

// both is a need of everything that a and b need.
func both(a, b *need) *need {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.among == nil:
		return &need{bits: a.bits | b.bits, among: b.among}
	case b.among == nil:
		return &need{bits: a.bits | b.bits, among: a.among}
	}
	// One of a's and one of b's: every pair would be exact, either is enough.
	if len(a.among) > len(b.among) {
		a, b = b, a
	}
	return &need{bits: a.bits | b.bits, among: a.among}
}

func anyNeed(terms []node) *need {
	any := &need{}
	for _, t := range terms {
		one := needOf(t)
		if one == nil {
			return nil
		}
		any.among = append(any.among, one)
	}
	return any
}

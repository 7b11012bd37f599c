package filter

import (
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// node is a part of a compiled expression. Asking one allocates nothing: properties are
// looked up in the text that is stored with the message.
type node interface {
	eval(p message.Properties) value
}

type constant struct{ value }

func (n constant) eval(message.Properties) value { return n.value }

// property is a property's value, NULL where the message has none.
type property string

func (n property) eval(p message.Properties) value {
	if s, ok := p.Get(string(n)); ok {
		return textValue(s)
	}
	return value{}
}

// negate is the minus sign. The value of a property is a text, and has no negative.
type negate struct{ of node }

func (n negate) eval(p message.Properties) value {
	v := n.of.eval(p)
	switch v.kind {
	case kindInt:
		v.n = int64(int32(-v.n))
	case kindLong:
		v.n = -v.n
	case kindDouble:
		v.f = -v.f
	case kindFailed:
	default:
		v = value{}
	}
	return v
}

// cast is a property where a condition stands: NULL or FALSE, since it is a text.
type cast struct{ of node }

func (n cast) eval(p message.Properties) value {
	if v := n.of.eval(p); v.kind == kindNull || v.kind == kindFailed {
		return v
	}
	return boolValue(false)
}

type not struct{ of node }

func (n not) eval(p message.Properties) value {
	v := n.of.eval(p)
	if v.kind == kindBoolean {
		v.n = 1 - v.n
	}
	return v
}

// logic is AND, or OR where TRUE is decisive. The terms are asked in order up to the first
// that decides; NULL among the others makes NULL.
type logic struct {
	decisive bool
	terms    []node
}

func (n logic) eval(p message.Properties) value {
	result := boolValue(!n.decisive)
	for _, t := range n.terms {
		switch v := t.eval(p); {
		case v.kind == kindFailed:
			return v
		case v.kind == kindNull:
			result = v
		case (v.n != 0) == n.decisive:
			return v
		}
	}
	return result
}

// isNull asks whether there is a value.
type isNull struct {
	of      node
	negated bool
}

func (n isNull) eval(p message.Properties) value {
	v := n.of.eval(p)
	if v.kind == kindFailed {
		return v
	}
	return boolValue((v.kind == kindNull) != n.negated)
}

// equal is = and <>. NULL on the left alone makes NULL, on the right alone FALSE, and two
// of them are equal.
type equal struct {
	left, right node
	negated     bool
}

func (n equal) eval(p message.Properties) value {
	l := n.left.eval(p)
	if l.kind == kindFailed {
		return l
	}
	r := n.right.eval(p)
	same := false
	switch {
	case r.kind == kindFailed:
		return r
	case l.kind == kindNull && r.kind == kindNull:
		same = true
	case l.kind == kindNull:
		return l
	case r.kind != kindNull:
		c, ok := compare(l, r)
		if !ok {
			return value{kind: kindFailed}
		}
		same = c == 0
	}
	return boolValue(same != n.negated)
}

// order is one of < <= > >=. Two texts are compared as numbers.
type order struct {
	left, right node
	op          string
}

func (n order) eval(p message.Properties) value {
	l := n.left.eval(p)
	if l.kind == kindNull || l.kind == kindFailed {
		return l
	}
	r := n.right.eval(p)
	if r.kind == kindNull || r.kind == kindFailed {
		return r
	}
	if l.kind == kindText && r.kind == kindText {
		var ok bool
		if l, ok = l.to(kindDouble); !ok {
			return value{kind: kindFailed}
		}
	}
	c, ok := compare(l, r)
	if !ok {
		return value{kind: kindFailed}
	}
	switch n.op {
	case "<":
		return boolValue(c < 0)
	case "<=":
		return boolValue(c <= 0)
	case ">":
		return boolValue(c > 0)
	}
	return boolValue(c >= 0)
}

// contains is CONTAINS, STARTSWITH or ENDSWITH. It is FALSE, negated or not, for NULL, for
// what is no text, and where the searched text is empty.
type contains struct {
	of      node
	how     string
	search  string
	negated bool
}

func (n contains) eval(p message.Properties) value {
	if n.search == "" {
		return boolValue(false)
	}
	v := n.of.eval(p)
	found := false
	switch {
	case v.kind == kindFailed:
		return v
	case v.kind != kindText:
		return boolValue(false)
	case n.how == "CONTAINS":
		found = strings.Contains(v.s, n.search)
	case n.how == "STARTSWITH":
		found = strings.HasPrefix(v.s, n.search)
	default:
		found = strings.HasSuffix(v.s, n.search)
	}
	return boolValue(found != n.negated)
}

// in asks whether a property's value is one of a list.
type in struct {
	property property
	few      []string
	many     map[string]bool
	negated  bool
}

// fewTexts is how many texts are looked through rather than looked up.
const fewTexts = 8

func (n *in) add(text string) { n.few = append(n.few, text) }

func (n *in) done() node {
	if len(n.few) > fewTexts {
		n.many = make(map[string]bool, len(n.few))
		for _, t := range n.few {
			n.many[t] = true
		}
		n.few = nil
	}
	return n
}

func (n *in) eval(p message.Properties) value {
	v := n.property.eval(p)
	if v.kind == kindNull {
		return v
	}
	return boolValue((n.many[v.s] || slices.Contains(n.few, v.s)) != n.negated)
}

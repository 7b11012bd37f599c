package filter

import (
	"fmt"
	"unicode/utf8"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// SQL92 filters, as Apache RocketMQ defines them:
//
//	or         = and { OR and }
//	and        = equality { AND equality }
//	equality   = comparison { ("=" | "<>") comparison | IS [NOT] NULL }
//	comparison = unary { (">" | ">=" | "<" | "<=") unary | [NOT] BETWEEN unary AND unary
//	           | [NOT] IN "(" text { "," text } ")" | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) text }
//	unary      = ("+" | "-" | NOT) unary | primary
//	primary    = text | number | TRUE | FALSE | NULL | property | "(" or ")"
//
// So NOT binds tighter than a comparison: NOT a = 1 is (NOT a) = 1. There is no LIKE and no
// arithmetic. Unlike there, nothing may follow the expression: what Apache reads no further
// is a condition that its author believes in.

// maxNesting bounds how deep an expression nests, and with it the stack that reading and
// asking it take.
const maxNesting = 500

// sqlParser reads one expression. The first error is kept; after it every token is the end.
type sqlParser struct {
	lexer sqlLexer
	token sqlToken // the next one
	depth int
	err   error
}

// operand is a part of an expression, and what the rules of others ask of it.
type operand struct {
	node     node
	at       int
	depth    int
	boolean  bool // a comparison, a combination of them, TRUE, FALSE or NULL
	constant *value
	property string
}

// compileSQL92 reads an SQL92 expression into what is asked of messages.
func compileSQL92(text string) (*Expression, error) {
	p := &sqlParser{lexer: sqlLexer{text: text}}
	p.next()
	whole := p.boolean(p.or())
	if p.err == nil && p.token.kind != tokenEnd && !p.lexer.comment(p.token) {
		p.unexpected("nothing may follow here")
	}
	if p.err != nil {
		return nil, p.err
	}
	return &Expression{kind: KindSQL92, text: text, sql: whole.node, need: needOf(whole.node)}, nil
}

func (p *sqlParser) next() {
	if p.err != nil {
		p.token = sqlToken{kind: tokenEnd, at: len(p.lexer.text)}
		return
	}
	t, reason := p.lexer.next()
	if reason != "" {
		p.fail(t.at, "%s", reason)
	}
	p.token = t
}

// fail keeps the first error: where, what stands there, and why it can't.
func (p *sqlParser) fail(at int, format string, args ...any) {
	if p.err != nil {
		return
	}
	near := p.lexer.text[at:]
	for i := range near {
		if i >= 24 {
			near = near[:i] + "…"
			break
		}
	}
	where := fmt.Sprintf("at position %d, %q", utf8.RuneCountInString(p.lexer.text[:at])+1, near)
	if near == "" {
		where = "at its end"
	}
	p.err = fmt.Errorf("%w: %s: %s", ErrIllegal, where, fmt.Sprintf(format, args...))
	p.token = sqlToken{kind: tokenEnd, at: len(p.lexer.text)}
}

func (p *sqlParser) unexpected(what string) {
	if hint := hints[p.token.text]; hint != "" && p.token.kind == tokenName {
		what += "; " + hint
	}
	p.fail(p.token.at, "%s", what)
}

// is tells whether the next token is this symbol or word.
func (p *sqlParser) is(symbol string) bool {
	return p.token.kind == tokenSymbol && p.token.text == symbol
}

// accept takes the next token if it is this symbol or word.
func (p *sqlParser) accept(symbol string) bool {
	if !p.is(symbol) {
		return false
	}
	p.next()
	return true
}

func (p *sqlParser) expect(symbol string) {
	if !p.accept(symbol) {
		p.unexpected(symbol + " is expected")
	}
}

// symbol takes the next token if it is one of these.
func (p *sqlParser) symbol(of ...string) (string, bool) {
	for _, s := range of {
		if p.accept(s) {
			return s, true
		}
	}
	return "", false
}

// enter counts one level of nesting while an inner part is read.
func (p *sqlParser) enter(at int) (leave func()) {
	if p.depth++; p.depth > maxNesting {
		p.fail(at, "it nests deeper than %d levels", maxNesting)
	}
	return func() { p.depth-- }
}

// made finishes an operand that is built of others.
func (p *sqlParser) made(o operand, of ...operand) operand {
	for _, part := range of {
		o.depth = max(o.depth, part.depth+1)
	}
	if o.depth > maxNesting {
		p.fail(o.at, "it nests deeper than %d levels", maxNesting)
	}
	return o
}

// boolean makes a condition of o: a property's value alone is never TRUE.
func (p *sqlParser) boolean(o operand) operand {
	switch {
	case o.boolean:
		return o
	case o.property != "":
		return p.made(operand{node: cast{o.node}, at: o.at, boolean: true}, o)
	}
	p.fail(o.at, "this is a value, where a condition is needed")
	return operand{node: constant{}, boolean: true}
}

func (p *sqlParser) or() operand  { return p.logic("OR", p.and) }
func (p *sqlParser) and() operand { return p.logic("AND", p.equality) }

// logic reads parts between ANDs or ORs into one node, however many there are.
func (p *sqlParser) logic(word string, part func() operand) operand {
	first := part()
	if !p.is(word) {
		return first
	}
	first = p.boolean(first)
	n := logic{decisive: word == "OR", terms: []node{first.node}}
	all := p.made(operand{at: first.at, boolean: true}, first)
	for p.accept(word) {
		o := p.boolean(part())
		n.terms = append(n.terms, o.node)
		all = p.made(all, o)
	}
	all.node = n
	return all
}

func (p *sqlParser) equality() operand {
	left := p.comparison()
	for {
		switch {
		case p.accept("="):
			left = p.equal(left, p.comparison(), false)
		case p.accept("<>"):
			left = p.equal(left, p.comparison(), true)
		case p.accept("IS"):
			negated := p.accept("NOT")
			p.expect("NULL")
			left = p.made(operand{node: isNull{left.node, negated}, at: left.at, boolean: true}, left)
		default:
			return left
		}
	}
}

func (p *sqlParser) equal(left, right operand, negated bool) operand {
	for _, o := range []operand{left, right} {
		if o.constant != nil && o.constant.kind == kindNull {
			p.fail(o.at, "nothing equals NULL; write IS NULL or IS NOT NULL")
		}
	}
	if left.constant != nil && left.boolean && right.constant != nil && !right.boolean {
		p.fail(right.at, "TRUE and FALSE can't be compared with this")
	}
	return p.made(operand{node: equal{left.node, right.node, negated}, at: left.at, boolean: true}, left, right)
}

func (p *sqlParser) comparison() operand {
	left := p.unary()
	for {
		if op, ok := p.symbol(">", ">=", "<", "<="); ok {
			left = p.order(op, left, p.unary())
			continue
		}
		negated := p.accept("NOT")
		switch op, ok := p.symbol("BETWEEN", "IN", "CONTAINS", "STARTSWITH", "ENDSWITH"); {
		case op == "BETWEEN":
			left = p.between(left, negated)
		case op == "IN":
			left = p.in(left, negated)
		case ok:
			left = p.made(operand{node: contains{left.node, op, p.text(), negated}, at: left.at, boolean: true}, left)
		case negated:
			p.unexpected("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH is expected after NOT")
			return left
		default:
			return left
		}
	}
}

// order is one of < <= > >=, which are for numbers.
func (p *sqlParser) order(op string, left, right operand) operand {
	for _, o := range []operand{left, right} {
		if o.boolean || o.constant != nil && !o.constant.number() {
			p.fail(o.at, "< <= > >= and BETWEEN compare numbers and properties, not this")
		}
	}
	return p.made(operand{node: order{left.node, right.node, op}, at: left.at, boolean: true}, left, right)
}

func (p *sqlParser) between(v operand, negated bool) operand {
	low := p.unary()
	p.expect("AND")
	high := p.unary()
	if negated {
		below, above := p.order("<", v, low), p.order(">", v, high)
		return p.made(operand{node: logic{decisive: true, terms: []node{below.node, above.node}}, at: v.at, boolean: true}, below, above)
	}
	from, to := p.order(">=", v, low), p.order("<=", v, high)
	if p.err == nil && low.constant != nil && high.constant != nil {
		if c, _ := compare(*high.constant, *low.constant); c < 0 {
			p.fail(low.at, "the first bound is above the second, so nothing is between them")
		}
	}
	return p.made(operand{node: logic{terms: []node{from.node, to.node}}, at: v.at, boolean: true}, from, to)
}

func (p *sqlParser) in(left operand, negated bool) operand {
	if left.property == "" {
		p.fail(left.at, "IN needs a property on its left")
	}
	n := in{property: property(left.property), negated: negated}
	p.expect("(")
	n.add(p.text())
	for p.accept(",") {
		n.add(p.text())
	}
	p.expect(")")
	return p.made(operand{node: n.done(), at: left.at, boolean: true}, left)
}

func (p *sqlParser) text() string {
	t := p.token
	if t.kind != tokenText {
		p.unexpected("a text in single quotes is expected")
		return ""
	}
	p.next()
	return t.text
}

func (p *sqlParser) unary() operand {
	at := p.token.at
	op, ok := p.symbol("+", "-", "NOT")
	if !ok {
		return p.primary()
	}
	leave := p.enter(at)
	defer leave()
	of := p.unary()
	switch op {
	case "-":
		return p.made(operand{node: negate{of.node}, at: at}, of)
	case "NOT":
		of = p.boolean(of)
		return p.made(operand{node: not{of.node}, at: at, boolean: true}, of)
	}
	return of
}

func (p *sqlParser) primary() operand {
	t := p.token
	literal := func(v value, boolean bool) operand {
		p.next()
		return operand{node: constant{v}, at: t.at, constant: &v, boolean: boolean}
	}
	switch {
	case t.kind == tokenText:
		return literal(textValue(t.text), false)
	case t.kind == tokenNumber:
		v, reason := number(t.text)
		if reason != "" {
			p.fail(t.at, "%s", reason)
		}
		return literal(v, false)
	case t.kind == tokenName:
		p.next()
		return operand{node: property(t.text), at: t.at, property: t.text}
	case p.is("TRUE"), p.is("FALSE"):
		return literal(boolValue(t.text == "TRUE"), true)
	case p.is("NULL"):
		return literal(value{}, true)
	case p.accept("("):
		leave := p.enter(t.at)
		defer leave()
		o := p.or()
		p.expect(")")
		return o
	}
	p.unexpected("a property, a value, NOT or ( is expected")
	return operand{node: constant{}, boolean: true}
}

// matchSQL asks a compiled expression; whatever is not TRUE does not match.
func matchSQL(n node, p message.Properties) bool {
	v := n.eval(p)
	return v.kind == kindBoolean && v.n != 0
}

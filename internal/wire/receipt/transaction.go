package receipt

import (
	"fmt"
	"strconv"
	"strings"
)

// transactionMark begins a transaction id of gRPC. Message ids, which Apache's proxy hands out
// as transaction ids, are of hexadecimal digits and never begin so.
const transactionMark = "t1."

// Transaction names one half message: all that a decision needs, so that any proxy can carry
// it, now and after a restart. Its text is "t1.<queue offset>.<log offset>.<broker>", the
// numbers to base 36.
type Transaction struct {
	QueueOffset, LogOffset int64
	Broker                 string
}

// String is the text.
func (t Transaction) String() string {
	b := make([]byte, 0, len(transactionMark)+28+len(t.Broker))
	b = append(strconv.AppendInt(append(b, transactionMark...), t.QueueOffset, 36), '.')
	b = append(strconv.AppendInt(b, t.LogOffset, 36), '.')
	return string(append(b, t.Broker...))
}

// illegalTransaction is ErrIllegal in the words of transactions.
type illegalTransaction string

func (e illegalTransaction) Error() string { return string(e) }
func (illegalTransaction) Unwrap() error   { return ErrIllegal }

// ParseTransaction reads the text.
func ParseTransaction(text string) (t Transaction, err error) {
	illegal := func(what string) (Transaction, error) {
		return Transaction{}, illegalTransaction(fmt.Sprintf("illegal transaction id %.64q: it %s", text, what))
	}
	rest, ok := strings.CutPrefix(text, transactionMark)
	if !ok {
		return illegal("does not begin with " + transactionMark)
	}
	for _, to := range []*int64{&t.QueueOffset, &t.LogOffset} {
		field, more, ok := strings.Cut(rest, ".")
		if !ok {
			return illegal("ends early")
		}
		if *to, err = strconv.ParseInt(field, 36, 64); err != nil || *to < 0 || strconv.FormatInt(*to, 36) != field {
			return illegal("has an offset that is no number")
		}
		rest = more
	}
	if t.Broker = rest; rest == "" {
		return illegal("names no broker")
	}
	return t, nil
}

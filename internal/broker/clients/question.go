package clients

import (
	"errors"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// ErrNoAnswer says that a client did not answer a question in time.
var ErrNoAnswer = errors.New("no answer in time")

// Question is a request of the protocol that the server puts to one of its clients.
type Question struct {
	Code    int32
	Header  remoting.Header
	Body    []byte
	Timeout time.Duration
}

// Answer is what the client said. Body is valid until done returns.
type Answer struct {
	Code   int32
	Remark string
	Body   []byte
}

// Asked is a Channel whose client answers questions. Ask calls done once, from any
// goroutine, possibly before it returns.
type Asked interface {
	Ask(q Question, done func(Answer, error))
}

package namesrvrpc

import (
	"errors"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// Answers that are no errors of the table.
var (
	errNoRoute   = errors.New("No topic route info in name server for the topic: ")
	errNoConfig  = errors.New("No config item, Namespace: ")
	errDisabled  = errors.New("disable")
	errCRC       = errors.New("crc32 not match")
	errProtected = errors.New("Can not update config in black list.")
)

// said is one of the answers above with what it is about.
type said struct {
	err  error
	rest string
}

func (e *said) Error() string { return e.err.Error() + e.rest }
func (e *said) Unwrap() error { return e.err }

// codes maps errors to codes, the first that fits.
var codes = []struct {
	err    error
	code   int32
	remark string // "" = the error's own text
}{
	{errNoRoute, remoting.ResTopicNotExist, ""},
	{errNoConfig, remoting.ResQueryNotFound, ""},
	{errDisabled, remoting.ResSystemError, ""},
	{errCRC, remoting.ResSystemError, ""},
	{errProtected, remoting.ResNoPermission, ""},
	{namesrv.ErrNotRegistered, remoting.ResSystemError, "register broker failed"},
	{namesrv.ErrIllegal, remoting.ResSystemError, ""},
	{namesrv.ErrNotFound, remoting.ResSystemError, ""},
	{config.ErrUnknown, remoting.ResSystemError, ""},
	{config.ErrFixed, remoting.ResNoPermission, ""},
	{config.ErrValue, remoting.ResSystemError, ""},
	{remoting.ErrBody, remoting.ResSystemError, ""},
}

// translate turns an error into a code and a remark.
func translate(err error) (code int32, remark string) {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			if c.remark != "" {
				return c.code, c.remark
			}
			return c.code, err.Error()
		}
	}
	var field *remoting.FieldError
	if errors.As(err, &field) {
		return remoting.ResSystemError, err.Error()
	}
	return remoting.ResSystemError, "system error"
}

// known tells whether an error is an answer and not a failure.
func known(err error) bool {
	_, remark := translate(err)
	return remark != "system error"
}

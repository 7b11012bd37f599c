package node

import (
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// noPop refuses to receive until the broker has POP.
type noPop struct{}

func (noPop) Pop(_ proxy.PopRequest, done func(proxy.Popped, error)) {
	done(proxy.Popped{}, proxy.ErrUnsupported)
}

func (noPop) Ack(_, _ string, handles []receipt.Handle, done func([]error)) {
	errs := make([]error, len(handles))
	for i := range errs {
		errs[i] = proxy.ErrUnsupported
	}
	done(errs)
}

func (noPop) ChangeInvisible(_ proxy.ChangeRequest, done func(receipt.Handle, error)) {
	done(receipt.Handle{}, proxy.ErrUnsupported)
}

func (noPop) DeadLetter(_, _ string, _ receipt.Handle, done func(error)) { done(proxy.ErrUnsupported) }

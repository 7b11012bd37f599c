package node

import (
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// noPop refuses to receive until the broker has POP.
type noPop struct{}

func (noPop) Pop(_ pop.Request, done func(pop.Result, error)) {
	done(pop.Result{}, proxy.ErrUnsupported)
}

func (noPop) AckBatch(_, _ string, handles []receipt.Handle, done func([]error)) {
	errs := make([]error, len(handles))
	for i := range errs {
		errs[i] = proxy.ErrUnsupported
	}
	done(errs)
}

func (noPop) ChangeInvisible(_, _ string, _ receipt.Handle, _ int64, _ bool, done func(receipt.Handle, error)) {
	done(receipt.Handle{}, proxy.ErrUnsupported)
}

func (noPop) Forward(_, _ string, _ receipt.Handle, done func(error)) { done(proxy.ErrUnsupported) }

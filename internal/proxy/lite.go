package proxy

import (
	"context"

	"github.com/bolidemq/bolide/internal/broker/lite"
)

// LiteSubscription is what a client says about the lite topics that it wants.
type LiteSubscription = lite.Subscription

// Lites keeps what clients want of lite topics.
type Lites interface {
	// SyncLite does what a client says about its subscriptions.
	SyncLite(s LiteSubscription) error
}

// SyncLite passes on what a client says about its subscriptions to lite topics. A client that
// loses one to another is told through its stream.
func (p *Proxy) SyncLite(_ context.Context, s LiteSubscription) error {
	return p.backend.SyncLite(s)
}

// leaveLites ends all subscriptions of a client that has gone for good. One whose stream was
// cut keeps them: it says them again when it is back, and is forgotten when it is not.
func (p *Proxy) leaveLites(c *Client) {
	if c.Settings.Kind == LitePushConsumer || c.Settings.Kind == LiteSimpleConsumer {
		_ = p.backend.SyncLite(LiteSubscription{Action: lite.CompleteRemove, ClientID: c.ID, Group: c.Settings.Group})
	}
}

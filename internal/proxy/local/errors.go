package local

import (
	"errors"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/timer"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
)

// sentinels are the broker's errors and the proxy's word for each; the first match counts.
//
// What passes by itself is ErrBusy, also where the server does nothing: sends before the time
// that it was told to accept them from, a full disk, a stop. Of all codes it becomes the only
// one on which the official producers wait before they try again; after any other they use up
// their attempts at once.
var sentinels = []struct{ of, is error }{
	{publish.ErrTopicNotFound, proxy.ErrTopicNotFound},
	{topic.ErrNotFound, proxy.ErrTopicNotFound},
	{publish.ErrGroupNotFound, proxy.ErrGroupNotFound},
	{group.ErrNotFound, proxy.ErrGroupNotFound},
	{publish.ErrForbidden, proxy.ErrForbidden},
	{publish.ErrNotWritable, proxy.ErrForbidden},
	{publish.ErrBodyTooLarge, proxy.ErrMessageTooLarge},
	{publish.ErrNotYet, proxy.ErrBusy},
	{publish.ErrTransaction, proxy.ErrForbidden},
	{txn.ErrDecided, proxy.ErrDecided},
	{txn.ErrNotFound, proxy.ErrIllegalTransaction},
	{txn.ErrGroup, proxy.ErrIllegalTransaction},
	{txn.ErrQueue, proxy.ErrIllegalTransaction},
	{txn.ErrLog, proxy.ErrIllegalTransaction},
	{txn.ErrMessage, proxy.ErrIllegalTransaction},
	{txn.ErrTopicGone, proxy.ErrTopicNotFound},
	{txn.ErrBusy, proxy.ErrBusy},
	{publish.ErrTimer, proxy.ErrDeliveryTime},
	{timer.ErrRecallOff, proxy.ErrForbidden},
	{timer.ErrRecallIllegal, proxy.ErrIllegalRecall},
	{timer.ErrRecallLate, proxy.ErrRecallTooLate},
	{timer.ErrRecallUnknown, proxy.ErrMessageNotFound},
	{timer.ErrRecallBusy, proxy.ErrBusy},
	{publish.ErrTimersOff, proxy.ErrUnsupported},
	{publish.ErrLightsOff, proxy.ErrUnsupported},
	{publish.ErrLiteTopic, proxy.ErrIllegalMessage},
	{storage.ErrTooManyLights, proxy.ErrLiteTopicQuota},
	{publish.ErrTopicIllegal, proxy.ErrIllegalMessage},
	{publish.ErrQueueIllegal, proxy.ErrIllegalMessage},
	{publish.ErrMessageIllegal, proxy.ErrIllegalMessage},
	{publish.ErrMessageNotFound, proxy.ErrMessageNotFound},
	{pop.ErrTopicNotFound, proxy.ErrTopicNotFound},
	{pop.ErrGroupNotFound, proxy.ErrGroupNotFound},
	{pop.ErrBrokerUnreadable, proxy.ErrForbidden},
	{pop.ErrTopicUnreadable, proxy.ErrForbidden},
	{pop.ErrGroupDisabled, proxy.ErrForbidden},
	{pop.ErrForbidden, proxy.ErrForbidden},
	{pop.ErrStale, proxy.ErrStaleHandle},
	{pop.ErrExpired, proxy.ErrExpiredHandle},
	{pop.ErrIllegal, proxy.ErrIllegalHandle},
	{lite.ErrTopicNotFound, proxy.ErrTopicNotFound},
	{lite.ErrGroupNotFound, proxy.ErrGroupNotFound},
	{lite.ErrGroupDisabled, proxy.ErrForbidden},
	{lite.ErrNotLite, proxy.ErrIllegalLite},
	{lite.ErrNotBound, proxy.ErrIllegalLite},
	{lite.ErrIllegal, proxy.ErrUnfitLite},
	{lite.ErrQuota, proxy.ErrLiteSubscriptionQuota},
	{storage.ErrMessageTooLarge, proxy.ErrMessageTooLarge},
	{storage.ErrPropertiesTooLarge, proxy.ErrIllegalMessage},
	{storage.ErrBusy, proxy.ErrBusy},
	{storage.ErrDiskFull, proxy.ErrBusy},
	{storage.ErrWrite, proxy.ErrBusy},
	{state.ErrFull, proxy.ErrBusy},
	{storage.ErrClosed, proxy.ErrBusy},
}

// translate puts the proxy's word in front of the broker's error.
func translate(err error) error {
	for _, s := range sentinels {
		if errors.Is(err, s.of) {
			return &translated{s.is, err}
		}
	}
	return err
}

// translated is both errors to errors.Is, and the broker's to a reader.
type translated struct{ word, err error }

func (t *translated) Error() string   { return t.err.Error() }
func (t *translated) Unwrap() []error { return []error{t.word, t.err} }

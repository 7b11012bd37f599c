package brokerrpc

import (
	"errors"

	"github.com/bolidemq/bolide/internal/broker/admin"
	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/lite"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/pop"
	"github.com/bolidemq/bolide/internal/broker/publish"
	"github.com/bolidemq/bolide/internal/broker/pull"
	"github.com/bolidemq/bolide/internal/broker/reply"
	"github.com/bolidemq/bolide/internal/broker/timer"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// codes says which response code a sentinel becomes. The first that fits counts, so a
// sentinel stands before those that it may wrap. The remark is the error's own text, which
// names field and limit, unless the line has a remark that clients look for.
var codes = []struct {
	err    error
	code   int32
	remark string
}{
	{err: publish.ErrTopicNotFound, code: remoting.ResTopicNotExist},
	{err: publish.ErrTopicIllegal, code: remoting.ResInvalidParameter},
	{err: publish.ErrForbidden, code: remoting.ResNoPermission},
	{err: publish.ErrNotWritable, code: remoting.ResNoPermission},
	{err: publish.ErrQueueIllegal, code: remoting.ResInvalidParameter},
	{err: publish.ErrGroupNotFound, code: remoting.ResSubscriptionGroupNotExist},
	{err: publish.ErrBodyTooLarge, code: remoting.ResMessageIllegal},
	{err: publish.ErrMessageIllegal, code: remoting.ResMessageIllegal},
	{err: publish.ErrMessageNotFound, code: remoting.ResSystemError},
	{err: publish.ErrNotYet, code: remoting.ResSystemError},
	{err: publish.ErrTransaction, code: remoting.ResNoPermission},
	{err: txn.ErrGroup, code: remoting.ResSystemError},
	{err: txn.ErrQueue, code: remoting.ResSystemError},
	{err: txn.ErrLog, code: remoting.ResSystemError},
	{err: txn.ErrNotFound, code: remoting.ResSystemError},
	{err: txn.ErrMessage, code: remoting.ResSystemError},
	{err: txn.ErrIllegal, code: remoting.ResInvalidParameter},
	{err: txn.ErrTopicGone, code: remoting.ResTopicNotExist},
	{err: txn.ErrDecided, code: remoting.ResIllegalOperation},
	{err: txn.ErrBusy, code: remoting.ResSystemBusy},
	{err: publish.ErrTimer, code: remoting.ResMessageIllegal},
	{err: publish.ErrTimersOff, code: remoting.ResSystemError},
	{err: publish.ErrLightsOff, code: remoting.ResSystemError},
	{err: publish.ErrLiteTopic, code: remoting.ResMessageIllegal},
	{err: storage.ErrTooManyLights, code: remoting.ResLMQQuotaExceeded},

	{err: timer.ErrRecallOff, code: remoting.ResNoPermission},
	{err: timer.ErrRecallIllegal, code: remoting.ResIllegalOperation},
	{err: timer.ErrRecallLate, code: remoting.ResIllegalOperation},
	{err: timer.ErrRecallUnknown, code: remoting.ResIllegalOperation},
	{err: timer.ErrRecallBusy, code: remoting.ResSystemBusy},
	{err: reply.ErrNoAsker, code: remoting.ResSystemError},
	{err: reply.ErrGone, code: remoting.ResSystemError},
	{err: reply.ErrNotTaken, code: remoting.ResSystemError},

	{err: pull.ErrBrokerUnreadable, code: remoting.ResNoPermission},
	{err: pull.ErrLiteOff, code: remoting.ResNoPermission},
	{err: pull.ErrGroupNotFound, code: remoting.ResSubscriptionGroupNotExist},
	{err: pull.ErrGroupDisabled, code: remoting.ResNoPermission},
	{err: pull.ErrTopicNotFound, code: remoting.ResTopicNotExist},
	{err: pull.ErrTopicUnreadable, code: remoting.ResNoPermission},
	{err: pull.ErrQueueIllegal, code: remoting.ResInvalidParameter},
	{err: pull.ErrFilterIllegal, code: remoting.ResSubscriptionParseFailed},
	{err: pull.ErrFilterOff, code: remoting.ResSystemError},
	{err: pull.ErrGroupOffline, code: remoting.ResSubscriptionNotExist},
	{err: pull.ErrNotSubscribed, code: remoting.ResSubscriptionNotExist},
	{err: pull.ErrActiveOff, code: remoting.ResSubscriptionNotExist},
	{err: pull.ErrBroadcastOff, code: remoting.ResNoPermission},
	{err: pull.ErrForbidden, code: remoting.ResNoPermission},
	{err: pull.ErrSubscriptionOlder, code: remoting.ResSubscriptionNotLatest},
	{err: pull.ErrBusy, code: remoting.ResSystemBusy},
	{err: pull.ErrNoOffset, code: remoting.ResQueryNotFound},
	{err: offset.ErrResetPending, code: remoting.ResSuccess, remark: "Offset has been previously reset"},

	{err: pop.ErrBrokerUnreadable, code: remoting.ResNoPermission},
	{err: pop.ErrTooMany, code: remoting.ResInvalidParameter},
	{err: pop.ErrTopicNotFound, code: remoting.ResTopicNotExist},
	{err: pop.ErrTopicUnreadable, code: remoting.ResNoPermission},
	{err: pop.ErrQueueIllegal, code: remoting.ResInvalidParameter},
	{err: lite.ErrTopicNotFound, code: remoting.ResTopicNotExist},
	{err: lite.ErrGroupNotFound, code: remoting.ResSubscriptionGroupNotExist},
	{err: lite.ErrGroupDisabled, code: remoting.ResIllegalOperation},
	{err: lite.ErrNotLite, code: remoting.ResInvalidParameter},
	{err: lite.ErrNotBound, code: remoting.ResInvalidParameter},
	{err: lite.ErrQuota, code: remoting.ResLiteSubscriptionQuotaExceeded},
	{err: lite.ErrIllegal, code: remoting.ResIllegalOperation},
	{err: pop.ErrGroupNotFound, code: remoting.ResSubscriptionGroupNotExist},
	{err: pop.ErrGroupDisabled, code: remoting.ResNoPermission},
	{err: pop.ErrForbidden, code: remoting.ResNoPermission},
	{err: pop.ErrStale, code: remoting.ResNoMessage},
	{err: pop.ErrExpired, code: remoting.ResNoMessage},
	{err: pop.ErrIllegal, code: remoting.ResNoMessage},
	{err: pop.ErrGone, code: remoting.ResPollingTimeout},
	{err: receipt.ErrIllegal, code: remoting.ResMessageIllegal},
	{err: errReceiptTopic, code: remoting.ResTopicNotExist},
	{err: errReceiptQueue, code: remoting.ResMessageIllegal},
	{err: errReceiptOffset, code: remoting.ResNoMessage},
	{err: errReceiptLite, code: remoting.ResInvalidParameter},

	{err: topic.ErrNotFound, code: remoting.ResTopicNotExist},
	{err: topic.ErrIllegalName, code: remoting.ResInvalidParameter},
	{err: topic.ErrSystemTopic, code: remoting.ResInvalidParameter},
	{err: topic.ErrMixed, code: remoting.ResInvalidParameter},
	{err: topic.ErrIllegal, code: remoting.ResSystemError},
	{err: group.ErrNotFound, code: remoting.ResSubscriptionGroupNotExist},
	{err: group.ErrIllegalName, code: remoting.ResInvalidParameter},
	{err: group.ErrIllegal, code: remoting.ResInvalidParameter},
	{err: group.ErrSystemGroup, code: remoting.ResInvalidParameter},

	{err: admin.ErrIllegal, code: remoting.ResSystemError},
	{err: admin.ErrRetryTopic, code: remoting.ResNoPermission},
	{err: admin.ErrNotOnline, code: remoting.ResSystemError},
	{err: admin.ErrTooOld, code: remoting.ResSystemError},
	{err: admin.ErrRedriving, code: remoting.ResSystemBusy},
	{err: publish.ErrNoOrigin, code: remoting.ResIllegalOperation},
	{err: publish.ErrInOrder, code: remoting.ResIllegalOperation},
	{err: admin.ErrUnasked, code: remoting.ResSystemError},
	{err: clients.ErrNoAnswer, code: remoting.ResConsumeMsgTimeout},

	{err: config.ErrAttribute, code: remoting.ResSystemError},
	{err: config.ErrUnknown, code: remoting.ResInvalidParameter},
	{err: config.ErrFixed, code: remoting.ResNoPermission},
	{err: config.ErrIdle, code: remoting.ResInvalidParameter},
	{err: config.ErrValue, code: remoting.ResInvalidParameter},
	{err: remoting.ErrBody, code: remoting.ResInvalidParameter},

	{err: storage.ErrMessageTooLarge, code: remoting.ResMessageIllegal},
	{err: storage.ErrPropertiesTooLarge, code: remoting.ResMessageIllegal},
	{err: message.ErrPropertiesTooLarge, code: remoting.ResMessageIllegal},
	{err: storage.ErrDiskFull, code: remoting.ResServiceNotAvailable},
	{err: storage.ErrWrite, code: remoting.ResServiceNotAvailable},
	{err: state.ErrFull, code: remoting.ResServiceNotAvailable},
	{err: storage.ErrClosed, code: remoting.ResServiceNotAvailable},
	{err: storage.ErrBusy, code: remoting.ResSystemBusy},
	{err: storage.ErrNotFound, code: remoting.ResSystemError},
	{err: storage.ErrManySearches, code: remoting.ResSystemBusy},
	{err: storage.ErrCrowdedHash, code: remoting.ResQueryNotFound},
	{err: storage.ErrNobodyWaits, code: remoting.ResSystemError},
}

// forbidden is the forbiddenType of those refusals of a pull that have one.
var forbidden = []struct {
	err  error
	kind int32
}{
	{pull.ErrBrokerUnreadable, 1},
	{pull.ErrLiteOff, 1},
	{pull.ErrGroupDisabled, 2},
	{pull.ErrTopicUnreadable, 3},
	{pull.ErrBroadcastOff, 4},
	{pull.ErrForbidden, 5},
}

// translate returns code and remark of an error. What no line knows is a system error and
// is logged here, once.
func (s *Server) translate(err error) (code int32, remark string) {
	var field *remoting.FieldError
	if errors.As(err, &field) {
		return remoting.ResInvalidParameter, err.Error()
	}
	for i := range codes {
		if errors.Is(err, codes[i].err) {
			if codes[i].remark != "" {
				return codes[i].code, codes[i].remark
			}
			return codes[i].code, err.Error()
		}
	}
	s.log.Error("a request failed", "err", err)
	return remoting.ResSystemError, err.Error()
}

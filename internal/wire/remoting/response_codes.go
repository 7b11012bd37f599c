package remoting

import "strconv"

// Response codes.
const (
	ResSuccess                       int32 = 0
	ResSystemError                   int32 = 1
	ResSystemBusy                    int32 = 2
	ResRequestCodeNotSupported       int32 = 3
	ResTransactionFailed             int32 = 4
	ResFlushDiskTimeout              int32 = 10
	ResSlaveNotAvailable             int32 = 11
	ResFlushSlaveTimeout             int32 = 12
	ResMessageIllegal                int32 = 13
	ResServiceNotAvailable           int32 = 14
	ResVersionNotSupported           int32 = 15
	ResNoPermission                  int32 = 16
	ResTopicNotExist                 int32 = 17
	ResTopicExistAlready             int32 = 18
	ResPullNotFound                  int32 = 19
	ResPullRetryImmediately          int32 = 20
	ResPullOffsetMoved               int32 = 21
	ResQueryNotFound                 int32 = 22
	ResSubscriptionParseFailed       int32 = 23
	ResSubscriptionNotExist          int32 = 24
	ResSubscriptionNotLatest         int32 = 25
	ResSubscriptionGroupNotExist     int32 = 26
	ResFilterDataNotExist            int32 = 27
	ResFilterDataNotLatest           int32 = 28
	ResInvalidParameter              int32 = 29
	ResTransactionShouldCommit       int32 = 200
	ResTransactionShouldRollback     int32 = 201
	ResTransactionStateUnknown       int32 = 202
	ResTransactionStateGroupWrong    int32 = 203
	ResNoBuyerID                     int32 = 204
	ResNotInCurrentUnit              int32 = 205
	ResConsumerNotOnline             int32 = 206
	ResConsumeMsgTimeout             int32 = 207
	ResNoMessage                     int32 = 208
	ResPollingFull                   int32 = 209
	ResPollingTimeout                int32 = 210
	ResBrokerNotExist                int32 = 211
	ResBrokerDispatchNotComplete     int32 = 212
	ResBroadcastConsumption          int32 = 213
	ResFlowControl                   int32 = 215
	ResNotLeaderForQueue             int32 = 501
	ResIllegalOperation              int32 = 604
	ResGoAway                        int32 = 1500
	ResLMQQuotaExceeded              int32 = 2017
	ResLiteSubscriptionQuotaExceeded int32 = 2018
	ResUserNotExist                  int32 = 3001
	ResPolicyNotExist                int32 = 3002
)

var responseNames = map[int32]string{
	ResSuccess: "SUCCESS", ResSystemError: "SYSTEM_ERROR", ResSystemBusy: "SYSTEM_BUSY",
	ResRequestCodeNotSupported: "REQUEST_CODE_NOT_SUPPORTED", ResTransactionFailed: "TRANSACTION_FAILED",
	ResFlushDiskTimeout: "FLUSH_DISK_TIMEOUT", ResSlaveNotAvailable: "SLAVE_NOT_AVAILABLE",
	ResFlushSlaveTimeout: "FLUSH_SLAVE_TIMEOUT", ResMessageIllegal: "MESSAGE_ILLEGAL",
	ResServiceNotAvailable: "SERVICE_NOT_AVAILABLE", ResVersionNotSupported: "VERSION_NOT_SUPPORTED",
	ResNoPermission: "NO_PERMISSION", ResTopicNotExist: "TOPIC_NOT_EXIST", ResTopicExistAlready: "TOPIC_EXIST_ALREADY",
	ResPullNotFound: "PULL_NOT_FOUND", ResPullRetryImmediately: "PULL_RETRY_IMMEDIATELY",
	ResPullOffsetMoved: "PULL_OFFSET_MOVED", ResQueryNotFound: "QUERY_NOT_FOUND",
	ResSubscriptionParseFailed: "SUBSCRIPTION_PARSE_FAILED", ResSubscriptionNotExist: "SUBSCRIPTION_NOT_EXIST",
	ResSubscriptionNotLatest: "SUBSCRIPTION_NOT_LATEST", ResSubscriptionGroupNotExist: "SUBSCRIPTION_GROUP_NOT_EXIST",
	ResFilterDataNotExist: "FILTER_DATA_NOT_EXIST", ResFilterDataNotLatest: "FILTER_DATA_NOT_LATEST",
	ResInvalidParameter: "INVALID_PARAMETER", ResTransactionShouldCommit: "TRANSACTION_SHOULD_COMMIT",
	ResTransactionShouldRollback: "TRANSACTION_SHOULD_ROLLBACK", ResTransactionStateUnknown: "TRANSACTION_STATE_UNKNOW",
	ResTransactionStateGroupWrong: "TRANSACTION_STATE_GROUP_WRONG", ResNoBuyerID: "NO_BUYER_ID",
	ResNotInCurrentUnit: "NOT_IN_CURRENT_UNIT", ResConsumerNotOnline: "CONSUMER_NOT_ONLINE",
	ResConsumeMsgTimeout: "CONSUME_MSG_TIMEOUT", ResNoMessage: "NO_MESSAGE", ResPollingFull: "POLLING_FULL",
	ResPollingTimeout: "POLLING_TIMEOUT", ResBrokerNotExist: "BROKER_NOT_EXIST",
	ResBrokerDispatchNotComplete: "BROKER_DISPATCH_NOT_COMPLETE", ResBroadcastConsumption: "BROADCAST_CONSUMPTION",
	ResFlowControl: "FLOW_CONTROL", ResNotLeaderForQueue: "NOT_LEADER_FOR_QUEUE",
	ResIllegalOperation: "ILLEGAL_OPERATION", ResGoAway: "GO_AWAY", ResLMQQuotaExceeded: "LMQ_QUOTA_EXCEEDED",
	ResLiteSubscriptionQuotaExceeded: "LITE_SUBSCRIPTION_QUOTA_EXCEEDED", ResUserNotExist: "USER_NOT_EXIST",
	ResPolicyNotExist: "POLICY_NOT_EXIST",
}

// ResponseName returns the protocol's name of a response code, or its number.
func ResponseName(code int32) string {
	if n, ok := responseNames[code]; ok {
		return n
	}
	return strconv.Itoa(int(code))
}

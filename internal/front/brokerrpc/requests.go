package brokerrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// request is one line of the table.
type request struct {
	code  int32
	serve func(*Server, *transport.Request)
	quick bool // never waits for long: what it causes is settled at the end of its round
	waits bool // may wait for messages; not on the VIP port
	local bool // from this machine only, until there is access control
}

// requests is every request that a broker serves. No other place switches over codes.
var requests = []request{
	{code: remoting.ReqSendMessage, serve: (*Server).sendMessage, quick: true},
	{code: remoting.ReqSendMessageV2, serve: (*Server).sendMessageV2, quick: true},
	{code: remoting.ReqSendBatchMessage, serve: (*Server).sendBatchMessage},
	{code: remoting.ReqEndTransaction, serve: (*Server).endTransaction, quick: true},
	{code: remoting.ReqBolideListTransactions, serve: (*Server).bolideListTransactions},
	{code: remoting.ReqResumeCheckHalfMessage, serve: (*Server).resumeCheckHalfMessage},
	{code: remoting.ReqSendReplyMessage, serve: (*Server).sendReplyMessage},
	{code: remoting.ReqSendReplyMessageV2, serve: (*Server).sendReplyMessageV2},
	{code: remoting.ReqConsumerSendMsgBack, serve: (*Server).consumerSendMsgBack},
	{code: remoting.ReqRecallMessage, serve: (*Server).recallMessage},

	{code: remoting.ReqPullMessage, serve: (*Server).pullMessage, waits: true},
	{code: remoting.ReqLitePullMessage, serve: (*Server).litePullMessage, waits: true},

	{code: remoting.ReqPopMessage, serve: (*Server).popMessage, quick: true, waits: true},
	{code: remoting.ReqAckMessage, serve: (*Server).ackMessage, quick: true},
	{code: remoting.ReqBatchAckMessage, serve: (*Server).batchAckMessage, quick: true},
	{code: remoting.ReqChangeMessageInvisibleTime, serve: (*Server).changeMessageInvisibleTime, quick: true},
	{code: remoting.ReqPeekMessage, serve: (*Server).peekMessage},
	{code: remoting.ReqPopRollback, serve: (*Server).popRollback},
	{code: remoting.ReqBolideGetPopState, serve: (*Server).bolideGetPopState},
	{code: remoting.ReqBolideGetTimers, serve: (*Server).bolideGetTimers},
	{code: remoting.ReqNotification, serve: (*Server).notification, waits: true},
	{code: remoting.ReqPollingInfo, serve: (*Server).pollingInfo, waits: true},

	{code: remoting.ReqQueryConsumerOffset, serve: (*Server).queryConsumerOffset},
	{code: remoting.ReqUpdateConsumerOffset, serve: (*Server).updateConsumerOffset},
	{code: remoting.ReqSearchOffsetByTimestamp, serve: (*Server).searchOffsetByTimestamp},
	{code: remoting.ReqGetMaxOffset, serve: (*Server).getMaxOffset},
	{code: remoting.ReqGetMinOffset, serve: (*Server).getMinOffset},
	{code: remoting.ReqGetEarliestMsgStoreTime, serve: (*Server).getEarliestMsgStoreTime},

	{code: remoting.ReqViewMessageByID, serve: (*Server).viewMessageByID},
	{code: remoting.ReqQueryMessage, serve: (*Server).queryMessage},

	{code: remoting.ReqHeartBeat, serve: (*Server).heartBeat},
	{code: remoting.ReqUnregisterClient, serve: (*Server).unregisterClient},
	{code: remoting.ReqCheckClientConfig, serve: (*Server).checkClientConfig},
	{code: remoting.ReqGetConsumerListByGroup, serve: (*Server).getConsumerListByGroup},
	{code: remoting.ReqGetConsumerConnectionList, serve: (*Server).getConsumerConnectionList},
	{code: remoting.ReqGetProducerConnectionList, serve: (*Server).getProducerConnectionList},
	{code: remoting.ReqQuerySubscriptionByConsumer, serve: (*Server).querySubscriptionByConsumer},
	{code: remoting.ReqLockBatchMQ, serve: (*Server).lockBatchMQ},
	{code: remoting.ReqUnlockBatchMQ, serve: (*Server).unlockBatchMQ},

	{code: remoting.ReqUpdateAndCreateTopic, serve: (*Server).updateAndCreateTopic},
	{code: remoting.ReqUpdateAndCreateTopicList, serve: (*Server).updateAndCreateTopicList},
	{code: remoting.ReqGetTopicConfig, serve: (*Server).getTopicConfig},
	{code: remoting.ReqGetAllTopicConfig, serve: (*Server).getAllTopicConfig},
	{code: remoting.ReqGetSystemTopicListFromBroker, serve: (*Server).getSystemTopicListFromBroker},
	{code: remoting.ReqUpdateAndCreateSubscriptionGroup, serve: (*Server).updateAndCreateSubscriptionGroup},
	{code: remoting.ReqUpdateAndCreateSubscriptionGroupList, serve: (*Server).updateAndCreateSubscriptionGroupList},
	{code: remoting.ReqGetSubscriptionGroupConfig, serve: (*Server).getSubscriptionGroupConfig},
	{code: remoting.ReqGetAllSubscriptionGroupConfig, serve: (*Server).getAllSubscriptionGroupConfig},
	{code: remoting.ReqQueryTopicsByConsumer, serve: (*Server).queryTopicsByConsumer},
	{code: remoting.ReqGetAllConsumerOffset, serve: (*Server).getAllConsumerOffset},
	{code: remoting.ReqGetAllDelayOffset, serve: (*Server).getAllDelayOffset},
	{code: remoting.ReqGetTimerCheckPoint, serve: (*Server).getTimerCheckPoint},
	{code: remoting.ReqGetTimerMetrics, serve: (*Server).getTimerMetrics},

	{code: remoting.ReqDeleteTopicInBroker, serve: (*Server).deleteTopicInBroker},
	{code: remoting.ReqDeleteSubscriptionGroup, serve: (*Server).deleteSubscriptionGroup},
	{code: remoting.ReqGetTopicStatsInfo, serve: (*Server).getTopicStatsInfo},
	{code: remoting.ReqGetConsumeStats, serve: (*Server).getConsumeStats},
	{code: remoting.ReqQueryTopicConsumeByWho, serve: (*Server).queryTopicConsumeByWho},
	{code: remoting.ReqInvokeBrokerToResetOffset, serve: (*Server).invokeBrokerToResetOffset},
	{code: remoting.ReqInvokeBrokerToGetConsumerStatus, serve: (*Server).invokeBrokerToGetConsumerStatus},
	{code: remoting.ReqGetConsumerRunningInfo, serve: (*Server).getConsumerRunningInfo},
	{code: remoting.ReqConsumeMessageDirectly, serve: (*Server).consumeMessageDirectly},
	{code: remoting.ReqCloneGroupOffset, serve: (*Server).cloneGroupOffset},
	{code: remoting.ReqQueryCorrectionOffset, serve: (*Server).queryCorrectionOffset},
	{code: remoting.ReqQueryConsumeTimeSpan, serve: (*Server).queryConsumeTimeSpan},
	{code: remoting.ReqGetBrokerConsumeStats, serve: (*Server).getBrokerConsumeStats},
	{code: remoting.ReqViewBrokerStatsData, serve: (*Server).viewBrokerStatsData},
	{code: remoting.ReqGetAllProducerInfo, serve: (*Server).getAllProducerInfo},
	{code: remoting.ReqUpdateAndGetGroupForbidden, serve: (*Server).updateAndGetGroupForbidden},
	{code: remoting.ReqBolideRedriveDeadLetter, serve: (*Server).redriveDeadLetter},
	{code: remoting.ReqBolideCountDeadLetters, serve: (*Server).countDeadLetters},
	{code: remoting.ReqQueryConsumeQueue, serve: (*Server).queryConsumeQueue},
	{code: remoting.ReqCleanExpiredConsumeQueue, serve: (*Server).cleanExpiredConsumeQueue},
	{code: remoting.ReqCleanUnusedTopic, serve: (*Server).cleanUnusedTopic},
	{code: remoting.ReqDeleteExpiredCommitLog, serve: (*Server).deleteExpiredCommitLog},
	{code: remoting.ReqQueryAssignment, serve: (*Server).queryAssignment},
	{code: remoting.ReqSetMessageRequestMode, serve: (*Server).setMessageRequestMode},
	{code: remoting.ReqGetAllMessageRequestMode, serve: (*Server).getAllMessageRequestMode},
	{code: remoting.ReqGetBrokerRuntimeInfo, serve: (*Server).getBrokerRuntimeInfo},

	{code: remoting.ReqPopLiteMessage, serve: (*Server).popLiteMessage, waits: true},
	{code: remoting.ReqLiteSubscriptionCtl, serve: (*Server).liteSubscriptionCtl},
	{code: remoting.ReqGetBrokerLiteInfo, serve: (*Server).getBrokerLiteInfo},
	{code: remoting.ReqGetParentTopicInfo, serve: (*Server).getParentTopicInfo},
	{code: remoting.ReqGetLiteTopicInfo, serve: (*Server).getLiteTopicInfo},
	{code: remoting.ReqGetLiteClientInfo, serve: (*Server).getLiteClientInfo},
	{code: remoting.ReqGetLiteGroupInfo, serve: (*Server).getLiteGroupInfo},
	{code: remoting.ReqTriggerLiteDispatch, serve: (*Server).triggerLiteDispatch},

	{code: remoting.ReqGetBrokerConfig, serve: (*Server).getBrokerConfig},
	{code: remoting.ReqUpdateBrokerConfig, serve: (*Server).updateBrokerConfig, local: true},
}

package remoting

import "strconv"

// To says who is asked with a request code; a code may go to several.
type To byte

// Whom a request goes to.
const (
	ToBroker To = 1 << iota
	ToNamesrv
	ToClient
	ToProxy
	ToController
	ToContainer
	ToNobody To = 0
)

// State says what this server does with a request code.
type State byte

// The states of a code.
const (
	Served  State = iota // a front has a function for it
	Refused              // answered REQUEST_CODE_NOT_SUPPORTED; Why says the reason
	Client               // we send it and the client serves it
)

// RequestCode is one line of the protocol's table of requests.
type RequestCode struct {
	Code   int32
	Name   string
	To     To
	State  State
	Why    string        // of a refused code
	Header func() Header // makes an empty header; nil when the request has none
}

// Why a code is refused. A line changes to Served with the change that serves it.
const (
	notServed    = "no server of Apache RocketMQ 5.5.0 serves it"
	later        = "not served by this version"
	timers       = "there is one engine of timers"
	container    = "there is no broker container"
	replication  = "replication is not served by this version"
	coldData     = "there is no cold data flow control"
	access       = "access control is not served by this version"
	liteTopics   = "no client sends it: deliveries of lite topics are acknowledged with ACK_MESSAGE"
	rocksDB      = "there is no RocksDB store"
	staticTopics = "static topics are not served by this version"
)

// Request codes.
const (
	ReqSendMessage                          int32 = 10
	ReqPullMessage                          int32 = 11
	ReqQueryMessage                         int32 = 12
	ReqQueryBrokerOffset                    int32 = 13
	ReqQueryConsumerOffset                  int32 = 14
	ReqUpdateConsumerOffset                 int32 = 15
	ReqUpdateAndCreateTopic                 int32 = 17
	ReqUpdateAndCreateTopicList             int32 = 18
	ReqGetAllTopicConfig                    int32 = 21
	ReqGetTopicConfigList                   int32 = 22
	ReqGetTopicNameList                     int32 = 23
	ReqUpdateBrokerConfig                   int32 = 25
	ReqGetBrokerConfig                      int32 = 26
	ReqTriggerDeleteFiles                   int32 = 27
	ReqGetBrokerRuntimeInfo                 int32 = 28
	ReqSearchOffsetByTimestamp              int32 = 29
	ReqGetMaxOffset                         int32 = 30
	ReqGetMinOffset                         int32 = 31
	ReqGetEarliestMsgStoreTime              int32 = 32
	ReqViewMessageByID                      int32 = 33
	ReqHeartBeat                            int32 = 34
	ReqUnregisterClient                     int32 = 35
	ReqConsumerSendMsgBack                  int32 = 36
	ReqEndTransaction                       int32 = 37
	ReqGetConsumerListByGroup               int32 = 38
	ReqCheckTransactionState                int32 = 39
	ReqNotifyConsumerIDsChanged             int32 = 40
	ReqLockBatchMQ                          int32 = 41
	ReqUnlockBatchMQ                        int32 = 42
	ReqGetAllConsumerOffset                 int32 = 43
	ReqGetAllDelayOffset                    int32 = 45
	ReqCheckClientConfig                    int32 = 46
	ReqGetClientConfig                      int32 = 47
	ReqGetTimerCheckPoint                   int32 = 60
	ReqGetTimerMetrics                      int32 = 61
	ReqPutKVConfig                          int32 = 100
	ReqGetKVConfig                          int32 = 101
	ReqDeleteKVConfig                       int32 = 102
	ReqRegisterBroker                       int32 = 103
	ReqUnregisterBroker                     int32 = 104
	ReqGetRouteInfoByTopic                  int32 = 105
	ReqGetBrokerClusterInfo                 int32 = 106
	ReqUpdateAndCreateSubscriptionGroup     int32 = 200
	ReqGetAllSubscriptionGroupConfig        int32 = 201
	ReqGetTopicStatsInfo                    int32 = 202
	ReqGetConsumerConnectionList            int32 = 203
	ReqGetProducerConnectionList            int32 = 204
	ReqWipeWritePermOfBroker                int32 = 205
	ReqGetAllTopicListFromNameServer        int32 = 206
	ReqDeleteSubscriptionGroup              int32 = 207
	ReqGetConsumeStats                      int32 = 208
	ReqSuspendConsumer                      int32 = 209
	ReqResumeConsumer                       int32 = 210
	ReqResetConsumerOffsetInConsumer        int32 = 211
	ReqResetConsumerOffsetInBroker          int32 = 212
	ReqAdjustConsumerThreadPool             int32 = 213
	ReqWhoConsumeTheMessage                 int32 = 214
	ReqDeleteTopicInBroker                  int32 = 215
	ReqDeleteTopicInNamesrv                 int32 = 216
	ReqRegisterTopicInNamesrv               int32 = 217
	ReqGetKVListByNamespace                 int32 = 219
	ReqResetConsumerClientOffset            int32 = 220
	ReqGetConsumerStatusFromClient          int32 = 221
	ReqInvokeBrokerToResetOffset            int32 = 222
	ReqInvokeBrokerToGetConsumerStatus      int32 = 223
	ReqGetTopicsByCluster                   int32 = 224
	ReqUpdateAndCreateSubscriptionGroupList int32 = 225
	ReqQueryTopicConsumeByWho               int32 = 300
	ReqRegisterFilterServer                 int32 = 301
	ReqRegisterMessageFilterClass           int32 = 302
	ReqQueryConsumeTimeSpan                 int32 = 303
	ReqGetSystemTopicListFromNS             int32 = 304
	ReqGetSystemTopicListFromBroker         int32 = 305
	ReqCleanExpiredConsumeQueue             int32 = 306
	ReqGetConsumerRunningInfo               int32 = 307
	ReqQueryCorrectionOffset                int32 = 308
	ReqConsumeMessageDirectly               int32 = 309
	ReqSendMessageV2                        int32 = 310
	ReqGetUnitTopicList                     int32 = 311
	ReqGetHasUnitSubTopicList               int32 = 312
	ReqGetHasUnitSubUnunitTopicList         int32 = 313
	ReqCloneGroupOffset                     int32 = 314
	ReqViewBrokerStatsData                  int32 = 315
	ReqCleanUnusedTopic                     int32 = 316
	ReqGetBrokerConsumeStats                int32 = 317
	ReqUpdateNamesrvConfig                  int32 = 318
	ReqGetNamesrvConfig                     int32 = 319
	ReqSendBatchMessage                     int32 = 320
	ReqQueryConsumeQueue                    int32 = 321
	ReqQueryDataVersion                     int32 = 322
	ReqResumeCheckHalfMessage               int32 = 323
	ReqSendReplyMessage                     int32 = 324
	ReqSendReplyMessageV2                   int32 = 325
	ReqPushReplyMessageToClient             int32 = 326
	ReqAddWritePermOfBroker                 int32 = 327
	ReqGetAllProducerInfo                   int32 = 328
	ReqDeleteExpiredCommitLog               int32 = 329
	ReqQueryTopicsByConsumer                int32 = 343
	ReqQuerySubscriptionByConsumer          int32 = 345
	ReqGetTopicConfig                       int32 = 351
	ReqGetSubscriptionGroupConfig           int32 = 352
	ReqUpdateAndGetGroupForbidden           int32 = 353
	ReqCheckRocksDBCQWriteProgress          int32 = 354
	ReqExportRocksDBConfigToJSON            int32 = 355
	ReqLitePullMessage                      int32 = 361
	ReqRecallMessage                        int32 = 370
	ReqQueryAssignment                      int32 = 400
	ReqSetMessageRequestMode                int32 = 401
	ReqGetAllMessageRequestMode             int32 = 402
	ReqUpdateAndCreateStaticTopic           int32 = 513
	ReqGetBrokerMemberGroup                 int32 = 901
	ReqAddBroker                            int32 = 902
	ReqRemoveBroker                         int32 = 903
	ReqBrokerHeartbeat                      int32 = 904
	ReqNotifyMinBrokerIDChange              int32 = 905
	ReqExchangeBrokerHAInfo                 int32 = 906
	ReqGetBrokerHAStatus                    int32 = 907
	ReqResetMasterFlushOffset               int32 = 908
	ReqControllerAlterSyncStateSet          int32 = 1001
	ReqControllerElectMaster                int32 = 1002
	ReqControllerRegisterBroker             int32 = 1003
	ReqControllerGetReplicaInfo             int32 = 1004
	ReqControllerGetMetadataInfo            int32 = 1005
	ReqControllerGetSyncStateData           int32 = 1006
	ReqGetBrokerEpochCache                  int32 = 1007
	ReqNotifyBrokerRoleChanged              int32 = 1008
	ReqUpdateControllerConfig               int32 = 1009
	ReqGetControllerConfig                  int32 = 1010
	ReqCleanBrokerData                      int32 = 1011
	ReqControllerGetNextBrokerID            int32 = 1012
	ReqControllerApplyBrokerID              int32 = 1013
	ReqUpdateColdDataFlowCtrConfig          int32 = 2001
	ReqRemoveColdDataFlowCtrConfig          int32 = 2002
	ReqGetColdDataFlowCtrInfo               int32 = 2003
	ReqSetCommitLogReadMode                 int32 = 2004
	ReqAuthCreateUser                       int32 = 3001
	ReqAuthUpdateUser                       int32 = 3002
	ReqAuthDeleteUser                       int32 = 3003
	ReqAuthGetUser                          int32 = 3004
	ReqAuthListUser                         int32 = 3005
	ReqAuthCreateACL                        int32 = 3006
	ReqAuthUpdateACL                        int32 = 3007
	ReqAuthDeleteACL                        int32 = 3008
	ReqAuthGetACL                           int32 = 3009
	ReqAuthListACL                          int32 = 3010
	ReqSwitchTimerEngine                    int32 = 5001
	ReqPopMessage                           int32 = 200050
	ReqAckMessage                           int32 = 200051
	ReqPeekMessage                          int32 = 200052
	ReqChangeMessageInvisibleTime           int32 = 200053
	ReqNotification                         int32 = 200054
	ReqPollingInfo                          int32 = 200055
	ReqPopRollback                          int32 = 200056
	ReqPopLiteMessage                       int32 = 200070
	ReqLiteSubscriptionCtl                  int32 = 200071
	ReqAckLiteMessage                       int32 = 200072
	ReqNotifyUnsubscribeLite                int32 = 200073
	ReqGetBrokerLiteInfo                    int32 = 200074
	ReqGetParentTopicInfo                   int32 = 200075
	ReqGetLiteTopicInfo                     int32 = 200076
	ReqGetLiteClientInfo                    int32 = 200077
	ReqGetLiteGroupInfo                     int32 = 200078
	ReqTriggerLiteDispatch                  int32 = 200079
	ReqBatchAckMessage                      int32 = 200151

	// Requests of Bolide's own, far from Apache's numbers.
	ReqBolideGetPopState       int32 = 700001
	ReqBolideRedriveDeadLetter int32 = 700002
	ReqBolideCountDeadLetters  int32 = 700003
	ReqBolideGetTimers         int32 = 700010
	ReqBolideListTransactions  int32 = 700021
	ReqBolideGetGoneBrokers    int32 = 700031
)

var requestCodes = []RequestCode{
	{Code: ReqSendMessage, Name: "SEND_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(SendMessageRequest) }},
	{Code: ReqPullMessage, Name: "PULL_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(PullMessageRequest) }},
	{Code: ReqQueryMessage, Name: "QUERY_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(QueryMessageRequest) }},
	{Code: ReqQueryBrokerOffset, Name: "QUERY_BROKER_OFFSET", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqQueryConsumerOffset, Name: "QUERY_CONSUMER_OFFSET", To: ToBroker, State: Served, Header: func() Header { return new(QueryConsumerOffsetRequest) }},
	{Code: ReqUpdateConsumerOffset, Name: "UPDATE_CONSUMER_OFFSET", To: ToBroker, State: Served, Header: func() Header { return new(UpdateConsumerOffsetRequest) }},
	{Code: ReqUpdateAndCreateTopic, Name: "UPDATE_AND_CREATE_TOPIC", To: ToBroker, State: Served, Header: func() Header { return new(UpdateAndCreateTopicRequest) }},
	{Code: ReqUpdateAndCreateTopicList, Name: "UPDATE_AND_CREATE_TOPIC_LIST", To: ToBroker, State: Served},
	{Code: ReqGetAllTopicConfig, Name: "GET_ALL_TOPIC_CONFIG", To: ToBroker, State: Served, Header: func() Header { return new(GetAllTopicConfigRequest) }},
	{Code: ReqGetTopicConfigList, Name: "GET_TOPIC_CONFIG_LIST", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqGetTopicNameList, Name: "GET_TOPIC_NAME_LIST", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqUpdateBrokerConfig, Name: "UPDATE_BROKER_CONFIG", To: ToBroker, State: Served},
	{Code: ReqGetBrokerConfig, Name: "GET_BROKER_CONFIG", To: ToBroker, State: Served},
	{Code: ReqTriggerDeleteFiles, Name: "TRIGGER_DELETE_FILES", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqGetBrokerRuntimeInfo, Name: "GET_BROKER_RUNTIME_INFO", To: ToBroker, State: Served},
	{Code: ReqSearchOffsetByTimestamp, Name: "SEARCH_OFFSET_BY_TIMESTAMP", To: ToBroker, State: Served, Header: func() Header { return new(SearchOffsetByTimestampRequest) }},
	{Code: ReqGetMaxOffset, Name: "GET_MAX_OFFSET", To: ToBroker, State: Served, Header: func() Header { return new(GetMaxOffsetRequest) }},
	{Code: ReqGetMinOffset, Name: "GET_MIN_OFFSET", To: ToBroker, State: Served, Header: func() Header { return new(GetMinOffsetRequest) }},
	{Code: ReqGetEarliestMsgStoreTime, Name: "GET_EARLIEST_MSG_STORETIME", To: ToBroker, State: Served, Header: func() Header { return new(GetEarliestMsgStoreTimeRequest) }},
	{Code: ReqViewMessageByID, Name: "VIEW_MESSAGE_BY_ID", To: ToBroker, State: Served, Header: func() Header { return new(ViewMessageByIDRequest) }},
	{Code: ReqHeartBeat, Name: "HEART_BEAT", To: ToBroker, State: Served},
	{Code: ReqUnregisterClient, Name: "UNREGISTER_CLIENT", To: ToBroker, State: Served, Header: func() Header { return new(UnregisterClientRequest) }},
	{Code: ReqConsumerSendMsgBack, Name: "CONSUMER_SEND_MSG_BACK", To: ToBroker, State: Served, Header: func() Header { return new(ConsumerSendMsgBackRequest) }},
	{Code: ReqEndTransaction, Name: "END_TRANSACTION", To: ToBroker, State: Served, Header: func() Header { return new(EndTransactionRequest) }},
	{Code: ReqGetConsumerListByGroup, Name: "GET_CONSUMER_LIST_BY_GROUP", To: ToBroker, State: Served, Header: func() Header { return new(GetConsumerListByGroupRequest) }},
	{Code: ReqCheckTransactionState, Name: "CHECK_TRANSACTION_STATE", To: ToClient, State: Client, Header: func() Header { return new(CheckTransactionStateRequest) }},
	{Code: ReqNotifyConsumerIDsChanged, Name: "NOTIFY_CONSUMER_IDS_CHANGED", To: ToClient, State: Client, Header: func() Header { return new(NotifyConsumerIDsChangedRequest) }},
	{Code: ReqLockBatchMQ, Name: "LOCK_BATCH_MQ", To: ToBroker, State: Served},
	{Code: ReqUnlockBatchMQ, Name: "UNLOCK_BATCH_MQ", To: ToBroker, State: Served},
	{Code: ReqGetAllConsumerOffset, Name: "GET_ALL_CONSUMER_OFFSET", To: ToBroker, State: Served},
	{Code: ReqGetAllDelayOffset, Name: "GET_ALL_DELAY_OFFSET", To: ToBroker, State: Served},
	{Code: ReqCheckClientConfig, Name: "CHECK_CLIENT_CONFIG", To: ToBroker, State: Served},
	{Code: ReqGetClientConfig, Name: "GET_CLIENT_CONFIG", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqGetTimerCheckPoint, Name: "GET_TIMER_CHECK_POINT", To: ToBroker, State: Served},
	{Code: ReqGetTimerMetrics, Name: "GET_TIMER_METRICS", To: ToBroker, State: Served},
	{Code: ReqPutKVConfig, Name: "PUT_KV_CONFIG", To: ToNamesrv, State: Served, Header: func() Header { return new(PutKVConfigRequest) }},
	{Code: ReqGetKVConfig, Name: "GET_KV_CONFIG", To: ToNamesrv, State: Served, Header: func() Header { return new(GetKVConfigRequest) }},
	{Code: ReqDeleteKVConfig, Name: "DELETE_KV_CONFIG", To: ToNamesrv, State: Served, Header: func() Header { return new(DeleteKVConfigRequest) }},
	{Code: ReqRegisterBroker, Name: "REGISTER_BROKER", To: ToNamesrv, State: Served, Header: func() Header { return new(RegisterBrokerRequest) }},
	{Code: ReqUnregisterBroker, Name: "UNREGISTER_BROKER", To: ToNamesrv, State: Served, Header: func() Header { return new(UnregisterBrokerRequest) }},
	{Code: ReqGetRouteInfoByTopic, Name: "GET_ROUTEINFO_BY_TOPIC", To: ToNamesrv, State: Served, Header: func() Header { return new(GetRouteInfoByTopicRequest) }},
	{Code: ReqGetBrokerClusterInfo, Name: "GET_BROKER_CLUSTER_INFO", To: ToNamesrv, State: Served},
	{Code: ReqUpdateAndCreateSubscriptionGroup, Name: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP", To: ToBroker, State: Served},
	{Code: ReqGetAllSubscriptionGroupConfig, Name: "GET_ALL_SUBSCRIPTIONGROUP_CONFIG", To: ToBroker, State: Served, Header: func() Header { return new(GetAllSubscriptionGroupConfigRequest) }},
	{Code: ReqGetTopicStatsInfo, Name: "GET_TOPIC_STATS_INFO", To: ToBroker, State: Served, Header: func() Header { return new(GetTopicStatsInfoRequest) }},
	{Code: ReqGetConsumerConnectionList, Name: "GET_CONSUMER_CONNECTION_LIST", To: ToBroker, State: Served, Header: func() Header { return new(GetConsumerConnectionListRequest) }},
	{Code: ReqGetProducerConnectionList, Name: "GET_PRODUCER_CONNECTION_LIST", To: ToBroker, State: Served, Header: func() Header { return new(GetProducerConnectionListRequest) }},
	{Code: ReqWipeWritePermOfBroker, Name: "WIPE_WRITE_PERM_OF_BROKER", To: ToNamesrv, State: Served, Header: func() Header { return new(WipeWritePermOfBrokerRequest) }},
	{Code: ReqGetAllTopicListFromNameServer, Name: "GET_ALL_TOPIC_LIST_FROM_NAMESERVER", To: ToNamesrv, State: Served},
	{Code: ReqDeleteSubscriptionGroup, Name: "DELETE_SUBSCRIPTIONGROUP", To: ToBroker, State: Served, Header: func() Header { return new(DeleteSubscriptionGroupRequest) }},
	{Code: ReqGetConsumeStats, Name: "GET_CONSUME_STATS", To: ToBroker, State: Served, Header: func() Header { return new(GetConsumeStatsRequest) }},
	{Code: ReqSuspendConsumer, Name: "SUSPEND_CONSUMER", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqResumeConsumer, Name: "RESUME_CONSUMER", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqResetConsumerOffsetInConsumer, Name: "RESET_CONSUMER_OFFSET_IN_CONSUMER", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqResetConsumerOffsetInBroker, Name: "RESET_CONSUMER_OFFSET_IN_BROKER", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqAdjustConsumerThreadPool, Name: "ADJUST_CONSUMER_THREAD_POOL", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqWhoConsumeTheMessage, Name: "WHO_CONSUME_THE_MESSAGE", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqDeleteTopicInBroker, Name: "DELETE_TOPIC_IN_BROKER", To: ToBroker, State: Served, Header: func() Header { return new(DeleteTopicInBrokerRequest) }},
	{Code: ReqDeleteTopicInNamesrv, Name: "DELETE_TOPIC_IN_NAMESRV", To: ToNamesrv, State: Served, Header: func() Header { return new(DeleteTopicInNamesrvRequest) }},
	{Code: ReqRegisterTopicInNamesrv, Name: "REGISTER_TOPIC_IN_NAMESRV", To: ToNamesrv, State: Served, Header: func() Header { return new(RegisterTopicInNamesrvRequest) }},
	{Code: ReqGetKVListByNamespace, Name: "GET_KVLIST_BY_NAMESPACE", To: ToNamesrv, State: Served, Header: func() Header { return new(GetKVListByNamespaceRequest) }},
	{Code: ReqResetConsumerClientOffset, Name: "RESET_CONSUMER_CLIENT_OFFSET", To: ToClient, State: Client},
	{Code: ReqGetConsumerStatusFromClient, Name: "GET_CONSUMER_STATUS_FROM_CLIENT", To: ToClient, State: Client},
	{Code: ReqInvokeBrokerToResetOffset, Name: "INVOKE_BROKER_TO_RESET_OFFSET", To: ToBroker, State: Served, Header: func() Header { return new(InvokeBrokerToResetOffsetRequest) }},
	{Code: ReqInvokeBrokerToGetConsumerStatus, Name: "INVOKE_BROKER_TO_GET_CONSUMER_STATUS", To: ToBroker, State: Served, Header: func() Header { return new(InvokeBrokerToGetConsumerStatusRequest) }},
	{Code: ReqGetTopicsByCluster, Name: "GET_TOPICS_BY_CLUSTER", To: ToNamesrv, State: Served, Header: func() Header { return new(GetTopicsByClusterRequest) }},
	{Code: ReqUpdateAndCreateSubscriptionGroupList, Name: "UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST", To: ToBroker, State: Served},
	{Code: ReqQueryTopicConsumeByWho, Name: "QUERY_TOPIC_CONSUME_BY_WHO", To: ToBroker, State: Served, Header: func() Header { return new(QueryTopicConsumeByWhoRequest) }},
	{Code: ReqRegisterFilterServer, Name: "REGISTER_FILTER_SERVER", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqRegisterMessageFilterClass, Name: "REGISTER_MESSAGE_FILTER_CLASS", To: ToNobody, State: Refused, Why: notServed},
	{Code: ReqQueryConsumeTimeSpan, Name: "QUERY_CONSUME_TIME_SPAN", To: ToBroker, State: Served, Header: func() Header { return new(QueryConsumeTimeSpanRequest) }},
	{Code: ReqGetSystemTopicListFromNS, Name: "GET_SYSTEM_TOPIC_LIST_FROM_NS", To: ToNamesrv, State: Served},
	{Code: ReqGetSystemTopicListFromBroker, Name: "GET_SYSTEM_TOPIC_LIST_FROM_BROKER", To: ToBroker, State: Served},
	{Code: ReqCleanExpiredConsumeQueue, Name: "CLEAN_EXPIRED_CONSUMEQUEUE", To: ToBroker, State: Served},
	{Code: ReqGetConsumerRunningInfo, Name: "GET_CONSUMER_RUNNING_INFO", To: ToBroker | ToClient, State: Served, Header: func() Header { return new(GetConsumerRunningInfoRequest) }},
	{Code: ReqQueryCorrectionOffset, Name: "QUERY_CORRECTION_OFFSET", To: ToBroker, State: Served, Header: func() Header { return new(QueryCorrectionOffsetRequest) }},
	{Code: ReqConsumeMessageDirectly, Name: "CONSUME_MESSAGE_DIRECTLY", To: ToBroker | ToClient, State: Served, Header: func() Header { return new(ConsumeMessageDirectlyRequest) }},
	{Code: ReqSendMessageV2, Name: "SEND_MESSAGE_V2", To: ToBroker, State: Served, Header: func() Header { return &SendMessageRequest{V2: true} }},
	{Code: ReqGetUnitTopicList, Name: "GET_UNIT_TOPIC_LIST", To: ToNamesrv, State: Served},
	{Code: ReqGetHasUnitSubTopicList, Name: "GET_HAS_UNIT_SUB_TOPIC_LIST", To: ToNamesrv, State: Served},
	{Code: ReqGetHasUnitSubUnunitTopicList, Name: "GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST", To: ToNamesrv, State: Served},
	{Code: ReqCloneGroupOffset, Name: "CLONE_GROUP_OFFSET", To: ToBroker, State: Served, Header: func() Header { return new(CloneGroupOffsetRequest) }},
	{Code: ReqViewBrokerStatsData, Name: "VIEW_BROKER_STATS_DATA", To: ToBroker, State: Served, Header: func() Header { return new(ViewBrokerStatsDataRequest) }},
	{Code: ReqCleanUnusedTopic, Name: "CLEAN_UNUSED_TOPIC", To: ToBroker, State: Served},
	{Code: ReqGetBrokerConsumeStats, Name: "GET_BROKER_CONSUME_STATS", To: ToBroker, State: Served, Header: func() Header { return new(GetBrokerConsumeStatsRequest) }},
	{Code: ReqUpdateNamesrvConfig, Name: "UPDATE_NAMESRV_CONFIG", To: ToNamesrv, State: Served},
	{Code: ReqGetNamesrvConfig, Name: "GET_NAMESRV_CONFIG", To: ToNamesrv, State: Served},
	{Code: ReqSendBatchMessage, Name: "SEND_BATCH_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return &SendMessageRequest{V2: true} }},
	{Code: ReqQueryConsumeQueue, Name: "QUERY_CONSUME_QUEUE", To: ToBroker, State: Served, Header: func() Header { return new(QueryConsumeQueueRequest) }},
	{Code: ReqQueryDataVersion, Name: "QUERY_DATA_VERSION", To: ToNamesrv, State: Served, Header: func() Header { return new(QueryDataVersionRequest) }},
	{Code: ReqResumeCheckHalfMessage, Name: "RESUME_CHECK_HALF_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(ResumeCheckHalfMessageRequest) }},
	{Code: ReqSendReplyMessage, Name: "SEND_REPLY_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(SendMessageRequest) }},
	{Code: ReqSendReplyMessageV2, Name: "SEND_REPLY_MESSAGE_V2", To: ToBroker, State: Served, Header: func() Header { return &SendMessageRequest{V2: true} }},
	{Code: ReqPushReplyMessageToClient, Name: "PUSH_REPLY_MESSAGE_TO_CLIENT", To: ToClient, State: Client, Header: func() Header { return new(PushReplyMessageRequest) }},
	{Code: ReqAddWritePermOfBroker, Name: "ADD_WRITE_PERM_OF_BROKER", To: ToNamesrv, State: Served, Header: func() Header { return new(AddWritePermOfBrokerRequest) }},
	{Code: ReqGetAllProducerInfo, Name: "GET_ALL_PRODUCER_INFO", To: ToBroker, State: Served},
	{Code: ReqDeleteExpiredCommitLog, Name: "DELETE_EXPIRED_COMMITLOG", To: ToBroker, State: Served},
	{Code: ReqQueryTopicsByConsumer, Name: "QUERY_TOPICS_BY_CONSUMER", To: ToBroker, State: Served, Header: func() Header { return new(QueryTopicsByConsumerRequest) }},
	{Code: ReqQuerySubscriptionByConsumer, Name: "QUERY_SUBSCRIPTION_BY_CONSUMER", To: ToBroker, State: Served, Header: func() Header { return new(QuerySubscriptionByConsumerRequest) }},
	{Code: ReqGetTopicConfig, Name: "GET_TOPIC_CONFIG", To: ToBroker, State: Served, Header: func() Header { return new(GetTopicConfigRequest) }},
	{Code: ReqGetSubscriptionGroupConfig, Name: "GET_SUBSCRIPTIONGROUP_CONFIG", To: ToBroker, State: Served, Header: func() Header { return new(GetSubscriptionGroupConfigRequest) }},
	{Code: ReqUpdateAndGetGroupForbidden, Name: "UPDATE_AND_GET_GROUP_FORBIDDEN", To: ToBroker, State: Served, Header: func() Header { return new(UpdateAndGetGroupForbiddenRequest) }},
	{Code: ReqCheckRocksDBCQWriteProgress, Name: "CHECK_ROCKSDB_CQ_WRITE_PROGRESS", To: ToBroker, State: Refused, Why: rocksDB, Header: func() Header { return new(CheckRocksDBCQWriteProgressRequest) }},
	{Code: ReqExportRocksDBConfigToJSON, Name: "EXPORT_ROCKSDB_CONFIG_TO_JSON", To: ToBroker, State: Refused, Why: rocksDB, Header: func() Header { return new(ExportRocksDBConfigToJSONRequest) }},
	{Code: ReqLitePullMessage, Name: "LITE_PULL_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(PullMessageRequest) }},
	{Code: ReqRecallMessage, Name: "RECALL_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(RecallMessageRequest) }},
	{Code: ReqQueryAssignment, Name: "QUERY_ASSIGNMENT", To: ToBroker, State: Served},
	{Code: ReqSetMessageRequestMode, Name: "SET_MESSAGE_REQUEST_MODE", To: ToBroker, State: Served},
	{Code: ReqGetAllMessageRequestMode, Name: "GET_ALL_MESSAGE_REQUEST_MODE", To: ToBroker, State: Served},
	{Code: ReqUpdateAndCreateStaticTopic, Name: "UPDATE_AND_CREATE_STATIC_TOPIC", To: ToBroker, State: Refused, Why: staticTopics},
	{Code: ReqGetBrokerMemberGroup, Name: "GET_BROKER_MEMBER_GROUP", To: ToNamesrv, State: Served, Header: func() Header { return new(GetBrokerMemberGroupRequest) }},
	{Code: ReqAddBroker, Name: "ADD_BROKER", To: ToContainer, State: Refused, Why: container, Header: func() Header { return new(AddBrokerRequest) }},
	{Code: ReqRemoveBroker, Name: "REMOVE_BROKER", To: ToContainer, State: Refused, Why: container, Header: func() Header { return new(RemoveBrokerRequest) }},
	{Code: ReqBrokerHeartbeat, Name: "BROKER_HEARTBEAT", To: ToNamesrv | ToController, State: Served, Header: func() Header { return new(BrokerHeartbeatRequest) }},
	{Code: ReqNotifyMinBrokerIDChange, Name: "NOTIFY_MIN_BROKER_ID_CHANGE", To: ToBroker, State: Client, Header: func() Header { return new(NotifyMinBrokerIDChangeRequest) }},
	{Code: ReqExchangeBrokerHAInfo, Name: "EXCHANGE_BROKER_HA_INFO", To: ToBroker, State: Refused, Why: replication, Header: func() Header { return new(ExchangeBrokerHAInfoRequest) }},
	{Code: ReqGetBrokerHAStatus, Name: "GET_BROKER_HA_STATUS", To: ToBroker, State: Refused, Why: replication},
	{Code: ReqResetMasterFlushOffset, Name: "RESET_MASTER_FLUSH_OFFSET", To: ToBroker, State: Refused, Why: replication, Header: func() Header { return new(ResetMasterFlushOffsetRequest) }},
	{Code: ReqControllerAlterSyncStateSet, Name: "CONTROLLER_ALTER_SYNC_STATE_SET", To: ToController, State: Refused, Why: replication, Header: func() Header { return new(ControllerAlterSyncStateSetRequest) }},
	{Code: ReqControllerElectMaster, Name: "CONTROLLER_ELECT_MASTER", To: ToController, State: Refused, Why: replication, Header: func() Header { return new(ControllerElectMasterRequest) }},
	{Code: ReqControllerRegisterBroker, Name: "CONTROLLER_REGISTER_BROKER", To: ToController, State: Refused, Why: replication, Header: func() Header { return new(ControllerRegisterBrokerRequest) }},
	{Code: ReqControllerGetReplicaInfo, Name: "CONTROLLER_GET_REPLICA_INFO", To: ToController, State: Refused, Why: replication, Header: func() Header { return new(ControllerGetReplicaInfoRequest) }},
	{Code: ReqControllerGetMetadataInfo, Name: "CONTROLLER_GET_METADATA_INFO", To: ToController, State: Refused, Why: replication},
	{Code: ReqControllerGetSyncStateData, Name: "CONTROLLER_GET_SYNC_STATE_DATA", To: ToController, State: Refused, Why: replication},
	{Code: ReqGetBrokerEpochCache, Name: "GET_BROKER_EPOCH_CACHE", To: ToBroker, State: Refused, Why: replication},
	{Code: ReqNotifyBrokerRoleChanged, Name: "NOTIFY_BROKER_ROLE_CHANGED", To: ToBroker, State: Refused, Why: replication, Header: func() Header { return new(NotifyBrokerRoleChangedRequest) }},
	{Code: ReqUpdateControllerConfig, Name: "UPDATE_CONTROLLER_CONFIG", To: ToController, State: Refused, Why: replication},
	{Code: ReqGetControllerConfig, Name: "GET_CONTROLLER_CONFIG", To: ToController, State: Refused, Why: replication},
	{Code: ReqCleanBrokerData, Name: "CLEAN_BROKER_DATA", To: ToController, State: Refused, Why: replication, Header: func() Header { return new(CleanBrokerDataRequest) }},
	{Code: ReqControllerGetNextBrokerID, Name: "CONTROLLER_GET_NEXT_BROKER_ID", To: ToController, State: Refused, Why: replication, Header: func() Header { return new(ControllerGetNextBrokerIDRequest) }},
	{Code: ReqControllerApplyBrokerID, Name: "CONTROLLER_APPLY_BROKER_ID", To: ToController, State: Refused, Why: replication, Header: func() Header { return new(ControllerApplyBrokerIDRequest) }},
	{Code: ReqUpdateColdDataFlowCtrConfig, Name: "UPDATE_COLD_DATA_FLOW_CTR_CONFIG", To: ToBroker, State: Refused, Why: coldData},
	{Code: ReqRemoveColdDataFlowCtrConfig, Name: "REMOVE_COLD_DATA_FLOW_CTR_CONFIG", To: ToBroker, State: Refused, Why: coldData},
	{Code: ReqGetColdDataFlowCtrInfo, Name: "GET_COLD_DATA_FLOW_CTR_INFO", To: ToBroker, State: Refused, Why: coldData},
	{Code: ReqSetCommitLogReadMode, Name: "SET_COMMITLOG_READ_MODE", To: ToBroker, State: Refused, Why: coldData},
	{Code: ReqAuthCreateUser, Name: "AUTH_CREATE_USER", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthCreateUserRequest) }},
	{Code: ReqAuthUpdateUser, Name: "AUTH_UPDATE_USER", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthUpdateUserRequest) }},
	{Code: ReqAuthDeleteUser, Name: "AUTH_DELETE_USER", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthDeleteUserRequest) }},
	{Code: ReqAuthGetUser, Name: "AUTH_GET_USER", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthGetUserRequest) }},
	{Code: ReqAuthListUser, Name: "AUTH_LIST_USER", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthListUserRequest) }},
	{Code: ReqAuthCreateACL, Name: "AUTH_CREATE_ACL", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthCreateACLRequest) }},
	{Code: ReqAuthUpdateACL, Name: "AUTH_UPDATE_ACL", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthUpdateACLRequest) }},
	{Code: ReqAuthDeleteACL, Name: "AUTH_DELETE_ACL", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthDeleteACLRequest) }},
	{Code: ReqAuthGetACL, Name: "AUTH_GET_ACL", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthGetACLRequest) }},
	{Code: ReqAuthListACL, Name: "AUTH_LIST_ACL", To: ToBroker, State: Refused, Why: access, Header: func() Header { return new(AuthListACLRequest) }},
	{Code: ReqSwitchTimerEngine, Name: "SWITCH_TIMER_ENGINE", To: ToBroker, State: Refused, Why: timers},
	{Code: ReqPopMessage, Name: "POP_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(PopMessageRequest) }},
	{Code: ReqAckMessage, Name: "ACK_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(AckMessageRequest) }},
	{Code: ReqPeekMessage, Name: "PEEK_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(PeekMessageRequest) }},
	{Code: ReqChangeMessageInvisibleTime, Name: "CHANGE_MESSAGE_INVISIBLETIME", To: ToBroker, State: Served, Header: func() Header { return new(ChangeMessageInvisibleTimeRequest) }},
	{Code: ReqNotification, Name: "NOTIFICATION", To: ToBroker, State: Served, Header: func() Header { return new(NotificationRequest) }},
	{Code: ReqPollingInfo, Name: "POLLING_INFO", To: ToBroker, State: Served, Header: func() Header { return new(PollingInfoRequest) }},
	{Code: ReqPopRollback, Name: "POP_ROLLBACK", To: ToBroker, State: Served},
	{Code: ReqPopLiteMessage, Name: "POP_LITE_MESSAGE", To: ToBroker, State: Served, Header: func() Header { return new(PopLiteMessageRequest) }},
	{Code: ReqLiteSubscriptionCtl, Name: "LITE_SUBSCRIPTION_CTL", To: ToBroker, State: Served},
	{Code: ReqAckLiteMessage, Name: "ACK_LITE_MESSAGE", To: ToBroker, State: Refused, Why: liteTopics},
	{Code: ReqNotifyUnsubscribeLite, Name: "NOTIFY_UNSUBSCRIBE_LITE", To: ToProxy, State: Client, Header: func() Header { return new(NotifyUnsubscribeLiteRequest) }},
	{Code: ReqGetBrokerLiteInfo, Name: "GET_BROKER_LITE_INFO", To: ToBroker, State: Served},
	{Code: ReqGetParentTopicInfo, Name: "GET_PARENT_TOPIC_INFO", To: ToBroker, State: Served, Header: func() Header { return new(GetParentTopicInfoRequest) }},
	{Code: ReqGetLiteTopicInfo, Name: "GET_LITE_TOPIC_INFO", To: ToBroker, State: Served, Header: func() Header { return new(GetLiteTopicInfoRequest) }},
	{Code: ReqGetLiteClientInfo, Name: "GET_LITE_CLIENT_INFO", To: ToBroker, State: Served, Header: func() Header { return new(GetLiteClientInfoRequest) }},
	{Code: ReqGetLiteGroupInfo, Name: "GET_LITE_GROUP_INFO", To: ToBroker, State: Served, Header: func() Header { return new(GetLiteGroupInfoRequest) }},
	{Code: ReqTriggerLiteDispatch, Name: "TRIGGER_LITE_DISPATCH", To: ToBroker, State: Served, Header: func() Header { return new(TriggerLiteDispatchRequest) }},
	{Code: ReqBatchAckMessage, Name: "BATCH_ACK_MESSAGE", To: ToBroker, State: Served},
	{Code: ReqBolideGetPopState, Name: "BOLIDE_GET_POP_STATE", To: ToBroker, State: Served, Header: func() Header { return new(GetPopStateRequest) }},
	{Code: ReqBolideRedriveDeadLetter, Name: "BOLIDE_REDRIVE_DEAD_LETTER", To: ToBroker, State: Served, Header: func() Header { return new(RedriveDeadLetterRequest) }},
	{Code: ReqBolideCountDeadLetters, Name: "BOLIDE_COUNT_DEAD_LETTERS", To: ToBroker, State: Served},
	{Code: ReqBolideGetTimers, Name: "BOLIDE_GET_TIMERS", To: ToBroker, State: Served, Header: func() Header { return new(GetTimersRequest) }},
	{Code: ReqBolideListTransactions, Name: "BOLIDE_LIST_TRANSACTIONS", To: ToBroker, State: Served, Header: func() Header { return new(ListTransactionsRequest) }},
	{Code: ReqBolideGetGoneBrokers, Name: "BOLIDE_GET_GONE_BROKERS", To: ToNamesrv, State: Served},
}

var requestByCode = func() map[int32]*RequestCode {
	m := make(map[int32]*RequestCode, len(requestCodes))
	for i := range requestCodes {
		m[requestCodes[i].Code] = &requestCodes[i]
	}
	return m
}()

// RequestCodes returns the whole table, in ascending order of the codes.
func RequestCodes() []RequestCode { return requestCodes }

// LookupCode returns the line of a request code.
func LookupCode(code int32) (RequestCode, bool) {
	if r, ok := requestByCode[code]; ok {
		return *r, true
	}
	return RequestCode{}, false
}

// CodeName returns the protocol's name of a request code, or its number.
func CodeName(code int32) string {
	if r, ok := requestByCode[code]; ok {
		return r.Name
	}
	return "request code " + strconv.Itoa(int(code))
}

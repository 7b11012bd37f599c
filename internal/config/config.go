// Package config is the option structs of all parts, with their defaults and Apache
// RocketMQ's property names, and the rules of topic and group attributes.
//
// Invariants: the structs are plain values and a published one never changes: Live
// replaces it as a whole, so a reader sees one consistent set; a property that nothing
// uses is not here, and an unknown name is an error, never silently ignored; a value is
// checked before it counts.
//
// Neighbours: everybody above reads; node fills from files and flags, the fronts change
// single properties at run time through Set.
package config

import "sync/atomic"

// LargestMessage is the most that maxMessageSize may be; a frame has room for no more.
const LargestMessage = 16 << 20

// Broker is what a broker can be told, under the names of Apache's broker.conf.
type Broker struct {
	BrokerName        string `prop:"brokerName" fixed:"true"`
	BrokerClusterName string `prop:"brokerClusterName" fixed:"true"`
	BrokerID          int64  `prop:"brokerId" min:"0" fixed:"true"`
	NamesrvAddr       string `prop:"namesrvAddr"`
	RegionID          string `prop:"regionId"`
	BrokerPermission  int32  `prop:"brokerPermission" min:"0" max:"15"`

	AutoCreateTopicEnable             bool   `prop:"autoCreateTopicEnable"`
	DefaultTopicQueueNums             int32  `prop:"defaultTopicQueueNums" min:"1" max:"65535"`
	ClusterTopicEnable                bool   `prop:"clusterTopicEnable"`
	BrokerTopicEnable                 bool   `prop:"brokerTopicEnable"`
	AutoCreateSubscriptionGroup       bool   `prop:"autoCreateSubscriptionGroup"`
	EnableCreateSysGroup              bool   `prop:"enableCreateSysGroup"`
	EnableMixedMessageType            bool   `prop:"enableMixedMessageType"`
	ValidateSystemTopicWhenUpdate     bool   `prop:"validateSystemTopicWhenUpdateTopic"`
	ClearRetryTopicWhenDeleteTopic    bool   `prop:"clearRetryTopicWhenDeleteTopic"`
	TraceOn                           bool   `prop:"traceOn"`
	TraceTopicEnable                  bool   `prop:"traceTopicEnable" fixed:"true"`
	MsgTraceTopicName                 string `prop:"msgTraceTopicName" fixed:"true"`
	RejectTransactionMessage          bool   `prop:"rejectTransactionMessage"`
	RejectPullConsumerEnable          bool   `prop:"rejectPullConsumerEnable"`
	StartAcceptSendRequestTimeStamp   int64  `prop:"startAcceptSendRequestTimeStamp" min:"0"`
	LitePullMessageEnable             bool   `prop:"litePullMessageEnable"`
	EnablePropertyFilter              bool   `prop:"enablePropertyFilter"`
	RecallMessageEnable               bool   `prop:"recallMessageEnable"`
	UseServerSideResetOffset          bool   `prop:"useServerSideResetOffset" idle:"a reset is always kept by the server until the consumer takes it"`
	StoreReplyMessageEnable           bool   `prop:"storeReplyMessageEnable"`
	RepeatedSendWindow                int64  `prop:"repeatedSendWindow" min:"0" max:"3600000"` // ms; 0: sends are not remembered
	RepeatedSendsKept                 int32  `prop:"repeatedSendsKept" min:"1" max:"10000000"`
	LongPollingEnable                 bool   `prop:"longPollingEnable"`
	NotifyConsumerIdsChangedEnable    bool   `prop:"notifyConsumerIdsChangedEnable"`
	FlushConsumerOffsetInterval       int64  `prop:"flushConsumerOffsetInterval" fixed:"true" min:"100" max:"60000"`
	ChannelExpiredTimeout             int64  `prop:"channelExpiredTimeout" min:"1000"`
	SubscriptionExpiredTimeout        int64  `prop:"subscriptionExpiredTimeout" min:"1000"`
	RegisterNameServerPeriod          int64  `prop:"registerNameServerPeriod" min:"10000" max:"60000"`
	RegisterBrokerTimeoutMills        int64  `prop:"registerBrokerTimeoutMills" min:"100"`
	CompressedRegister                bool   `prop:"compressedRegister"`
	ForceRegister                     bool   `prop:"forceRegister"`
	RetrieveMessageFromPopRetryV1     bool   `prop:"retrieveMessageFromPopRetryTopicV1"`
	EnableRetryTopicV2                bool   `prop:"enableRetryTopicV2"`
	PopFromRetryProbability           int32  `prop:"popFromRetryProbability" min:"0" max:"100"`
	PopFromRetryProbabilityByPriority int32  `prop:"popFromRetryProbabilityForPriority" min:"0" max:"100"`
	PriorityOrderAsc                  bool   `prop:"priorityOrderAsc"`
	ReviveQueueNum                    int32  `prop:"reviveQueueNum" min:"1" max:"1024" idle:"there are no revive queues: what is in flight is in the state database"`
	PopPollingSize                    int32  `prop:"popPollingSize" min:"1" idle:"maxPopPollingSize bounds all that wait, one queue may have them all"`
	MaxPopPollingSize                 int64  `prop:"maxPopPollingSize" fixed:"true" min:"1"`
	EnablePopMessageThreshold         bool   `prop:"enablePopMessageThreshold"`
	MaxLiteSubscriptionCount          int64  `prop:"maxLiteSubscriptionCount" min:"1"`
	LiteTTLCheckInterval              int64  `prop:"liteTtlCheckInterval" min:"1000"`
	MinLiteTTL                        int64  `prop:"minLiteTTl" min:"0"`
	LiteSubscriptionCheckInterval     int64  `prop:"liteSubscriptionCheckInterval" min:"1000"`
	LiteSubscriptionCheckTimeout      int64  `prop:"liteSubscriptionCheckTimeoutMills" min:"1000"`
	EnableLiteEventMode               bool   `prop:"enableLiteEventMode" idle:"a client always learns of its lite topics by events"`
	MaxClientEventCount               int32  `prop:"maxClientEventCount" min:"1" idle:"a client's events are bounded by its subscriptions"`
	LiteEventCheckInterval            int64  `prop:"liteEventCheckInterval" min:"1" idle:"events are given to all who may take them, and never have to be given to another"`
	LiteEventFullDispatchDelayTime    int64  `prop:"liteEventFullDispatchDelayTime" min:"1" idle:"no event is ever left out, so none has to be found again"`
	PopInflightMessageThreshold       int64  `prop:"popInflightMessageThreshold" min:"1"`
	DefaultMessageRequestMode         string `prop:"defaultMessageRequestMode" oneof:"PULL,POP"`
	DefaultPopShareQueueNum           int32  `prop:"defaultPopShareQueueNum" min:"-1"`
	TransactionTimeOut                int64  `prop:"transactionTimeOut" min:"1"`
	TransactionCheckMax               int32  `prop:"transactionCheckMax" min:"1"`
	TransactionCheckInterval          int64  `prop:"transactionCheckInterval" min:"1"`
}

// DefaultBroker is a broker that was told nothing. Where it differs from Apache's, the
// feature is on that clients and tools take for granted: property filters and recall.
func DefaultBroker() Broker {
	return Broker{
		BrokerName: "broker-a", BrokerClusterName: "DefaultCluster", RegionID: "DefaultRegion",
		BrokerPermission: 6, AutoCreateTopicEnable: true, DefaultTopicQueueNums: 8,
		ClusterTopicEnable: true, BrokerTopicEnable: true, AutoCreateSubscriptionGroup: true,
		EnableCreateSysGroup: true, ValidateSystemTopicWhenUpdate: true,
		ClearRetryTopicWhenDeleteTopic: true, TraceOn: true, MsgTraceTopicName: "RMQ_SYS_TRACE_TOPIC", LitePullMessageEnable: true, EnablePropertyFilter: true,
		RecallMessageEnable: true, UseServerSideResetOffset: true, StoreReplyMessageEnable: true, RepeatedSendsKept: 100_000,
		LongPollingEnable: true, NotifyConsumerIdsChangedEnable: true,
		FlushConsumerOffsetInterval: 5_000, ChannelExpiredTimeout: 120_000,
		SubscriptionExpiredTimeout: 600_000, RegisterNameServerPeriod: 30_000,
		RegisterBrokerTimeoutMills: 24_000, ForceRegister: true,
		RetrieveMessageFromPopRetryV1: true, PopFromRetryProbability: 20,
		PriorityOrderAsc: true, ReviveQueueNum: 8, PopPollingSize: 1024,
		MaxLiteSubscriptionCount: 100_000, LiteTTLCheckInterval: 120_000, MinLiteTTL: 900_000,
		LiteSubscriptionCheckInterval: 120_000, LiteSubscriptionCheckTimeout: 180_000, EnableLiteEventMode: true,
		MaxClientEventCount: 100, LiteEventCheckInterval: 10_000, LiteEventFullDispatchDelayTime: 10_000,
		MaxPopPollingSize: 100_000, PopInflightMessageThreshold: 10_000,
		DefaultMessageRequestMode: "PULL", DefaultPopShareQueueNum: -1,
		TransactionTimeOut: 6_000, TransactionCheckMax: 15, TransactionCheckInterval: 30_000,
	}
}

// Store is what a store can be told, under the names of Apache's broker.conf.
type Store struct {
	StorePathRootDir          string `prop:"storePathRootDir" fixed:"true"`
	MappedFileSizeCommitLog   int64  `prop:"mappedFileSizeCommitLog" min:"65536" fixed:"true"`
	MappedFileSizeConsume     int64  `prop:"mappedFileSizeConsumeQueue" min:"2000" fixed:"true"` // bytes
	MaxHashSlotNum            int32  `prop:"maxHashSlotNum" min:"16" fixed:"true"`
	MaxIndexNum               int32  `prop:"maxIndexNum" min:"16" fixed:"true"`
	MaxMessageSize            int32  `prop:"maxMessageSize" min:"1024" max:"16777216"`
	FlushDiskType             string `prop:"flushDiskType" oneof:"ASYNC_FLUSH,SYNC_FLUSH" fixed:"true"`
	FlushIntervalCommitLog    int64  `prop:"flushIntervalCommitLog" min:"1" fixed:"true"`
	FileReservedTime          int64  `prop:"fileReservedTime" min:"1" fixed:"true"` // hours
	DeleteWhen                string `prop:"deleteWhen" fixed:"true"`
	DiskMaxUsedSpaceRatio     int32  `prop:"diskMaxUsedSpaceRatio" min:"10" max:"95" fixed:"true"`
	CleanFileForciblyEnable   bool   `prop:"cleanFileForciblyEnable" fixed:"true"`
	MessageDelayLevel         string `prop:"messageDelayLevel" fixed:"true"`
	TimerMaxDelaySec          int64  `prop:"timerMaxDelaySec" min:"1" max:"3153600000"`
	TimerPrecisionMs          int64  `prop:"timerPrecisionMs" min:"100" max:"1000" idle:"times of delivery are kept to the millisecond"`
	TimerWheelEnable          bool   `prop:"timerWheelEnable"`
	FlushDelayOffsetInterval  int64  `prop:"flushDelayOffsetInterval" min:"100" idle:"how far each delay level has come is stored with each delivery"`
	MessageIndexEnable        bool   `prop:"messageIndexEnable" fixed:"true" idle:"keys are always indexed"`
	EnabledAppendPropCRC      bool   `prop:"enabledAppendPropCRC" fixed:"true"`
	DefaultQueryMaxNum        int32  `prop:"defaultQueryMaxNum" min:"1" max:"1024"`
	MaxTransferCountOnMessage int32  `prop:"maxTransferCountOnMessageInMemory" min:"1" max:"1024"`
	EnableLmq                 bool   `prop:"enableLmq"`
	EnableMultiDispatch       bool   `prop:"enableMultiDispatch"`
	EnableLmqQuota            bool   `prop:"enableLmqQuota"`
	MaxLmqConsumeQueueNum     int32  `prop:"maxLmqConsumeQueueNum" min:"1"`
	LightQueuesForApache      bool   `prop:"lightQueuesForApache" fixed:"true"`
}

// DefaultStore is a store that was told nothing.
func DefaultStore() Store {
	return Store{
		StorePathRootDir: "bolide-data", MappedFileSizeCommitLog: 1 << 30,
		MappedFileSizeConsume: 300_000 * 20, MaxHashSlotNum: 5_000_000, MaxIndexNum: 20_000_000,
		MaxMessageSize: 4 << 20, FlushDiskType: "ASYNC_FLUSH", FlushIntervalCommitLog: 500,
		FileReservedTime: 72, DeleteWhen: "04", DiskMaxUsedSpaceRatio: 75,
		CleanFileForciblyEnable: true,
		MessageDelayLevel:       "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
		TimerMaxDelaySec:        259_200, TimerPrecisionMs: 1_000, TimerWheelEnable: true,
		FlushDelayOffsetInterval: 10_000, MessageIndexEnable: true, DefaultQueryMaxNum: 32,
		MaxTransferCountOnMessage: 32, EnableLmq: true, EnableMultiDispatch: true, MaxLmqConsumeQueueNum: 20_000,
	}
}

// Namesrv is what a name server can be told, under the names of Apache's namesrv.properties.
type Namesrv struct {
	OrderMessageEnable          bool  `prop:"orderMessageEnable"`
	ReturnOrderTopicConfig      bool  `prop:"returnOrderTopicConfigToBroker"`
	ScanNotActiveBrokerInterval int64 `prop:"scanNotActiveBrokerInterval" min:"10" max:"60000"`
	EnableAllTopicList          bool  `prop:"enableAllTopicList"`
	EnableTopicList             bool  `prop:"enableTopicList"`
	DeleteTopicWithRegistration bool  `prop:"deleteTopicWithBrokerRegistration"`
	DefaultBrokerTimeoutMillis  int64 `prop:"defaultBrokerTimeoutMillis" min:"1000"`
	MaxTopicsOfOneRegistration  int32 `prop:"maxTopicsOfOneRegistration" min:"1"`
}

// DefaultNamesrv is a name server that was told nothing.
func DefaultNamesrv() Namesrv {
	return Namesrv{
		ReturnOrderTopicConfig: true, ScanNotActiveBrokerInterval: 5_000, EnableAllTopicList: true,
		EnableTopicList: true, DefaultBrokerTimeoutMillis: 120_000, MaxTopicsOfOneRegistration: 1_000_000,
	}
}

// Proxy is what a proxy can be told, under the names of Apache's rmq-proxy.json.
type Proxy struct {
	EnableTopicMessageTypeCheck bool  `prop:"enableTopicMessageTypeCheck" fixed:"true"`
	MaxMessageSize              int32 `prop:"maxMessageSize" fixed:"true" min:"1024" max:"16777216"`
	MaxUserPropertySize         int32 `prop:"maxUserPropertySize" fixed:"true" min:"0"`
	UserPropertyMaxNum          int32 `prop:"userPropertyMaxNum" fixed:"true" min:"0" max:"512"`
	MaxMessageGroupSize         int32 `prop:"maxMessageGroupSize" fixed:"true" min:"1"`
	MaxDelayTimeMills           int64 `prop:"maxDelayTimeMills" fixed:"true" min:"1" idle:"both protocols have one limit: timerMaxDelaySec"`
	MinInvisibleTimeMillsOnRecv int64 `prop:"minInvisibleTimeMillsForRecv" fixed:"true" min:"1" max:"3153600000000"`
	MaxInvisibleTimeMills       int64 `prop:"maxInvisibleTimeMills" fixed:"true" min:"1" max:"3153600000000"`
	LongPollingMinTimeMillis    int64 `prop:"grpcClientConsumerMinLongPollingTimeoutMillis" fixed:"true" min:"1" max:"86400000"`
	LongPollingMaxTimeMillis    int64 `prop:"grpcClientConsumerMaxLongPollingTimeoutMillis" fixed:"true" min:"1" max:"86400000"`
	LongPollingBatchSize        int32 `prop:"grpcClientConsumerLongPollingBatchSize" fixed:"true" min:"1" max:"32"`
	DefaultInvisibleTimeMills   int64 `prop:"defaultInvisibleTimeMills" fixed:"true" min:"1" max:"3153600000000"`
}

// DefaultProxy is a proxy that was told nothing.
func DefaultProxy() Proxy {
	return Proxy{
		EnableTopicMessageTypeCheck: true, MaxMessageSize: 4 << 20, MaxUserPropertySize: 16 << 10,
		UserPropertyMaxNum: 128, MaxMessageGroupSize: 64, MaxDelayTimeMills: 24 * 3600 * 1000,
		MinInvisibleTimeMillsOnRecv: 10_000, MaxInvisibleTimeMills: 12 * 3600 * 1000,
		LongPollingMinTimeMillis: 5_000, LongPollingMaxTimeMillis: 20_000,
		LongPollingBatchSize: 32, DefaultInvisibleTimeMills: 60_000,
	}
}

// Live is a set of options that can be replaced while others read it.
type Live[T any] struct{ p atomic.Pointer[T] }

// NewLive publishes a first set.
func NewLive[T any](v T) *Live[T] {
	l := &Live[T]{}
	l.p.Store(&v)
	return l
}

// Get returns the current set; the caller must not change it.
func (l *Live[T]) Get() *T { return l.p.Load() }

// Replace publishes another set.
func (l *Live[T]) Replace(v T) { l.p.Store(&v) }

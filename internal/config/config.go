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

// The tags of a setting are all that there is to know of it, for programs and for people:
//
//	prop   its name
//	about  what it is, as `bolide config` prints it
//	unit   what a number is a number of
//	min, max, oneof
//	       what it may be
//	check  which of checks a text has to pass
//	fixed  "true": it is read at the start
//	idle   why nothing looks at it

// Broker is what a broker can be told, under the names of Apache's broker.conf.
type Broker struct {
	BrokerName        string `prop:"brokerName" check:"name" fixed:"true" about:"Name of the broker, in routes, message queues and recall handles."`
	BrokerClusterName string `prop:"brokerClusterName" check:"name" fixed:"true" about:"Name of the cluster that the broker belongs to."`
	BrokerID          int64  `prop:"brokerId" min:"0" fixed:"true" about:"Id of the broker among those of its name; clients send to 0, the master."`
	NamesrvAddr       string `prop:"namesrvAddr" check:"servers" about:"Name servers elsewhere to register with: HOST:PORT, several with semicolons between them. --namesrv wins over it; without either NAMESRV_ADDR of the environment counts, unless the process is a name server itself."`
	RegionID          string `prop:"regionId" about:"Region in answers to sends, and in messages that come without one."`
	BrokerPermission  int32  `prop:"brokerPermission" min:"0" max:"7" about:"What the broker as a whole allows: 6 is to read and to write, 4 to read, 2 to write, 0 neither; 1 more, Apache's sign of a topic that others inherit from, means nothing here. No topic allows more."`

	AutoCreateTopicEnable             bool   `prop:"autoCreateTopicEnable" about:"Whether sends over Remoting make topics that do not exist, after the topic TBW102."`
	DefaultTopicQueueNums             int32  `prop:"defaultTopicQueueNums" unit:"queues" min:"1" max:"65535" about:"Queues of TBW102, and so the most of a topic that is made after it."`
	ClusterTopicEnable                bool   `prop:"clusterTopicEnable" about:"Whether the topic named like the cluster, after which senders may have topics made, can be read and written."`
	BrokerTopicEnable                 bool   `prop:"brokerTopicEnable" about:"Whether the topic named like the broker, after which senders may have topics made, can be read and written."`
	AutoCreateSubscriptionGroup       bool   `prop:"autoCreateSubscriptionGroup" about:"Whether a consumer group that does not exist is made when it is first used."`
	EnableCreateSysGroup              bool   `prop:"enableCreateSysGroup" about:"Whether groups of tools and servers are made so even without autoCreateSubscriptionGroup."`
	EnableMixedMessageType            bool   `prop:"enableMixedMessageType" about:"Whether a topic may have the message.type MIXED."`
	ValidateSystemTopicWhenUpdate     bool   `prop:"validateSystemTopicWhenUpdateTopic" about:"Whether changes of system topics are refused."`
	ClearRetryTopicWhenDeleteTopic    bool   `prop:"clearRetryTopicWhenDeleteTopic" about:"Whether a topic that is deleted takes its retry topics of POP along."`
	TraceOn                           bool   `prop:"traceOn" about:"Whether clients may trace what is sent here; where not, messages and answers to sends say so."`
	TraceTopicEnable                  bool   `prop:"traceTopicEnable" fixed:"true" about:"Whether a start makes the topic for traces, msgTraceTopicName."`
	MsgTraceTopicName                 string `prop:"msgTraceTopicName" check:"topic" fixed:"true" about:"Name of the topic for traces that traceTopicEnable makes."`
	RejectTransactionMessage          bool   `prop:"rejectTransactionMessage" about:"Whether half messages are refused."`
	RejectPullConsumerEnable          bool   `prop:"rejectPullConsumerEnable" about:"Whether pulls are refused to groups without a connected push consumer."`
	StartAcceptSendRequestTimeStamp   int64  `prop:"startAcceptSendRequestTimeStamp" unit:"ms since 1970" min:"0" about:"Time before which sends are refused; 0 is none."`
	LitePullMessageEnable             bool   `prop:"litePullMessageEnable" about:"Whether requests of lite pull consumers, LITE_PULL_MESSAGE, are served."`
	EnablePropertyFilter              bool   `prop:"enablePropertyFilter" about:"Whether pulls may filter by SQL92. POP and gRPC always may."`
	RecallMessageEnable               bool   `prop:"recallMessageEnable" about:"Whether messages with a time of delivery can be taken back before it."`
	UseServerSideResetOffset          bool   `prop:"useServerSideResetOffset" idle:"a reset is always kept by the server until the consumer takes it" about:"Whether a reset of offsets is kept by the server until the consumer takes it."`
	StoreReplyMessageEnable           bool   `prop:"storeReplyMessageEnable" about:"Whether replies between clients are stored, besides being pushed to who has asked."`
	RepeatedSendWindow                int64  `prop:"repeatedSendWindow" unit:"ms" min:"0" max:"3600000" about:"How long sends are remembered: one with the same message id to the same topic is answered with the place of the first. 0 is not at all."`
	RepeatedSendsKept                 int32  `prop:"repeatedSendsKept" unit:"sends" min:"1" max:"10000000" about:"Most sends that are remembered for repeatedSendWindow; the oldest are forgotten first."`
	LongPollingEnable                 bool   `prop:"longPollingEnable" about:"Whether a pull waits for messages as long as it asks for; if not, a second at most."`
	NotifyConsumerIdsChangedEnable    bool   `prop:"notifyConsumerIdsChangedEnable" about:"Whether the members of a consumer group are told when others join or leave."`
	FlushConsumerOffsetInterval       int64  `prop:"flushConsumerOffsetInterval" unit:"ms" fixed:"true" min:"100" max:"60000" about:"How long an offset that was committed one-way may be in memory only."`
	ChannelExpiredTimeout             int64  `prop:"channelExpiredTimeout" unit:"ms" min:"1000" max:"3153600000000" about:"Silence after which a client counts as gone; a connection of Remoting is closed then."`
	SubscriptionExpiredTimeout        int64  `prop:"subscriptionExpiredTimeout" unit:"ms" min:"1000" max:"3153600000000" about:"How long a subscription that came with a pull or pop, not with a heartbeat, counts after the last one."`
	RegisterNameServerPeriod          int64  `prop:"registerNameServerPeriod" unit:"ms" min:"10000" max:"60000" about:"How often the broker registers with name servers elsewhere, besides at changes."`
	RegisterBrokerTimeoutMills        int64  `prop:"registerBrokerTimeoutMills" unit:"ms" min:"100" max:"3153600000000" about:"How long one registration with a name server elsewhere may take; more than 10000 counts as 10000."`
	CompressedRegister                bool   `prop:"compressedRegister" about:"Whether registrations with name servers elsewhere are sent compressed."`
	ForceRegister                     bool   `prop:"forceRegister" about:"Whether each registration of registerNameServerPeriod is of all topics, even where none has changed."`
	RetrieveMessageFromPopRetryV1     bool   `prop:"retrieveMessageFromPopRetryTopicV1" about:"Whether POP reads retry topics of the older name, %RETRY%group_topic, too."`
	EnableRetryTopicV2                bool   `prop:"enableRetryTopicV2" about:"Whether POP writes retries to topics of the newer name, %RETRY%group+topic."`
	PopFromRetryProbability           int32  `prop:"popFromRetryProbability" unit:"percent of requests" min:"0" max:"100" about:"How many pops look into retry topics first."`
	PopFromRetryProbabilityByPriority int32  `prop:"popFromRetryProbabilityForPriority" unit:"percent of requests" min:"0" max:"100" about:"How many of those pops that go by priority look into retry topics first."`
	PriorityOrderAsc                  bool   `prop:"priorityOrderAsc" about:"Whether pops that go by priority take larger numbers first."`
	ReviveQueueNum                    int32  `prop:"reviveQueueNum" unit:"queues" min:"1" max:"1024" idle:"there are no revive queues: what is in flight is in the state database" about:"Queues of Apache's topic for checkpoints of POP."`
	PopPollingSize                    int32  `prop:"popPollingSize" unit:"requests" min:"1" idle:"maxPopPollingSize bounds all that wait, one queue may have them all" about:"Most pops that wait for one queue."`
	MaxPopPollingSize                 int64  `prop:"maxPopPollingSize" unit:"requests" fixed:"true" min:"1" about:"Most pops and pulls that wait for messages, of all clients together."`
	EnablePopMessageThreshold         bool   `prop:"enablePopMessageThreshold" about:"Whether popInflightMessageThreshold holds."`
	MaxLiteSubscriptionCount          int64  `prop:"maxLiteSubscriptionCount" unit:"subscriptions" min:"1" about:"Most subscriptions to lite topics, of all clients together."`
	LiteTTLCheckInterval              int64  `prop:"liteTtlCheckInterval" unit:"ms" min:"1000" max:"3153600000000" about:"How often lite topics are looked at that have outlived the lite.topic.expiration of their parent."`
	MinLiteTTL                        int64  `prop:"minLiteTTl" unit:"ms" min:"0" max:"3153600000000" about:"What a lite topic lives without a message at least; none is deleted so soon after a start either."`
	LiteSubscriptionCheckInterval     int64  `prop:"liteSubscriptionCheckInterval" unit:"ms" min:"1000" max:"3153600000000" about:"How often clients are looked for whose lite subscriptions have to end."`
	LiteSubscriptionCheckTimeout      int64  `prop:"liteSubscriptionCheckTimeoutMills" unit:"ms" min:"1000" max:"3153600000000" about:"How long lite subscriptions stay that their client does not say again."`
	EnableLiteEventMode               bool   `prop:"enableLiteEventMode" idle:"a client always learns of its lite topics by events" about:"Whether a client learns of messages in its lite topics by events."`
	MaxClientEventCount               int32  `prop:"maxClientEventCount" unit:"events" min:"1" idle:"a client's events are bounded by its subscriptions" about:"Most events of lite topics that wait for one client."`
	LiteEventCheckInterval            int64  `prop:"liteEventCheckInterval" unit:"ms" min:"1" max:"3153600000000" idle:"events are given to all who may take them, and never have to be given to another" about:"How often events of lite topics are looked for that their client has not taken."`
	LiteEventFullDispatchDelayTime    int64  `prop:"liteEventFullDispatchDelayTime" unit:"ms" min:"1" max:"3153600000000" idle:"no event is ever left out, so none has to be found again" about:"When events of lite topics are made again for a client that had no room for them."`
	PopInflightMessageThreshold       int64  `prop:"popInflightMessageThreshold" unit:"messages" min:"1" about:"How many messages of a queue a group may have in flight by POP before it gets no more, with enablePopMessageThreshold."`
	DefaultMessageRequestMode         string `prop:"defaultMessageRequestMode" oneof:"PULL,POP" about:"How push consumers that ask the broker get the messages of a topic for which nothing else is set."`
	DefaultPopShareQueueNum           int32  `prop:"defaultPopShareQueueNum" unit:"clients" min:"-1" about:"Of how many other members a member pops the queues, too, where defaultMessageRequestMode is POP; below 1 it is all."`
	TransactionTimeOut                int64  `prop:"transactionTimeOut" unit:"ms" min:"1" max:"3153600000000" about:"Age at which the producers of a half message are first asked about it, unless it names another."`
	TransactionCheckMax               int32  `prop:"transactionCheckMax" unit:"checks" min:"1" about:"How often the producers of a half message are asked before it is given up."`
	TransactionCheckInterval          int64  `prop:"transactionCheckInterval" unit:"ms" min:"1" max:"3153600000000" about:"Time between two questions about a half message."`
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
	StorePathRootDir          string `prop:"storePathRootDir" fixed:"true" about:"Folder of everything. --data takes its place."`
	MappedFileSizeCommitLog   int64  `prop:"mappedFileSizeCommitLog" unit:"bytes" min:"65536" max:"2147483647" fixed:"true" about:"Size of each file of the log, for a store that is made new."`
	MappedFileSizeConsume     int64  `prop:"mappedFileSizeConsumeQueue" unit:"bytes" min:"2000" max:"2147483647" fixed:"true" about:"Size of each file of a consume queue, 20 bytes a message."`
	MaxHashSlotNum            int32  `prop:"maxHashSlotNum" unit:"slots" min:"16" max:"100000000" fixed:"true" about:"Hash slots in each file of the key index."`
	MaxIndexNum               int32  `prop:"maxIndexNum" unit:"entries" min:"16" max:"80000000" fixed:"true" about:"Entries in each file of the key index."`
	MaxMessageSize            int32  `prop:"maxMessageSize" unit:"bytes" min:"1024" max:"16777216" about:"Largest body of a message, and of a batch as a whole."`
	FlushDiskType             string `prop:"flushDiskType" oneof:"ASYNC_FLUSH,SYNC_FLUSH" fixed:"true" about:"When a send is answered: ASYNC_FLUSH, when it survives the end of the process; SYNC_FLUSH, when it survives a power cut."`
	FlushIntervalCommitLog    int64  `prop:"flushIntervalCommitLog" unit:"ms" min:"1" max:"3153600000000" fixed:"true" about:"How long what is stored may wait to be synced to disk, with ASYNC_FLUSH."`
	FileReservedTime          int64  `prop:"fileReservedTime" unit:"hours" min:"1" max:"876000" about:"Age at which files of the log are deleted, and half messages that nobody has decided given up."`
	DeleteWhen                string `prop:"deleteWhen" check:"hours" about:"Hours of the day, local time, in which old files of the log are deleted: 04, or several, 04;16."`
	DiskMaxUsedSpaceRatio     int32  `prop:"diskMaxUsedSpaceRatio" unit:"percent of the disk" min:"10" max:"95" about:"Used space above which old files of the log are deleted at any hour, as long as less than 20 GiB are free."`
	CleanFileForciblyEnable   bool   `prop:"cleanFileForciblyEnable" about:"Whether the oldest file of the log is deleted whatever its age when more than 85 percent of the disk are used and less than 20 GiB free."`
	MessageDelayLevel         string `prop:"messageDelayLevel" check:"delays" fixed:"true" about:"Delays of the levels from 1 on, each a number followed by s, m, h or d."`
	TimerMaxDelaySec          int64  `prop:"timerMaxDelaySec" unit:"s" min:"1" max:"3153600000" about:"How far ahead a time of delivery may be, over both protocols."`
	TimerPrecisionMs          int64  `prop:"timerPrecisionMs" unit:"ms" min:"100" max:"1000" idle:"times of delivery are kept to the millisecond" about:"Grain of times of delivery."`
	TimerWheelEnable          bool   `prop:"timerWheelEnable" about:"Whether messages with a time of delivery are taken."`
	FlushDelayOffsetInterval  int64  `prop:"flushDelayOffsetInterval" unit:"ms" min:"100" max:"3153600000000" idle:"how far each delay level has come is stored with each delivery" about:"How often it is written how far the delay levels have come."`
	MessageIndexEnable        bool   `prop:"messageIndexEnable" fixed:"true" idle:"keys are always indexed" about:"Whether messages can be found by key."`
	EnabledAppendPropCRC      bool   `prop:"enabledAppendPropCRC" fixed:"true" about:"Whether each record carries a checksum of all its bytes, not of its body alone."`
	DefaultQueryMaxNum        int32  `prop:"defaultQueryMaxNum" unit:"messages" min:"1" max:"1024" about:"Most messages that a query by unique key finds; more than 64 counts as 64."`
	MaxTransferCountOnMessage int32  `prop:"maxTransferCountOnMessageInMemory" unit:"messages" min:"1" max:"1024" about:"Most messages in one answer to a pull."`
	EnableLmq                 bool   `prop:"enableLmq" about:"Whether messages get into further queues beside their own, those of lite topics among them; enableMultiDispatch has to be true, too."`
	EnableMultiDispatch       bool   `prop:"enableMultiDispatch" about:"Whether enableLmq holds; one without the other does nothing."`
	EnableLmqQuota            bool   `prop:"enableLmqQuota" about:"Whether maxLmqConsumeQueueNum holds."`
	MaxLmqConsumeQueueNum     int32  `prop:"maxLmqConsumeQueueNum" unit:"queues" min:"1" about:"How many light queues there are before a send makes no other, with enableLmqQuota."`
	LightQueuesForApache      bool   `prop:"lightQueuesForApache" fixed:"true" about:"Whether a clean stop leaves light queues in files, for Apache RocketMQ to open the store."`
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
	OrderMessageEnable          bool  `prop:"orderMessageEnable" about:"Whether routes carry the order configuration of their topic."`
	ReturnOrderTopicConfig      bool  `prop:"returnOrderTopicConfigToBroker" about:"Whether brokers that register are told the order configuration of all topics."`
	ScanNotActiveBrokerInterval int64 `prop:"scanNotActiveBrokerInterval" unit:"ms" min:"10" max:"60000" about:"How often brokers are looked for that have fallen silent."`
	EnableAllTopicList          bool  `prop:"enableAllTopicList" about:"Whether the list of all topics is given."`
	EnableTopicList             bool  `prop:"enableTopicList" about:"Whether the lists of topics by cluster and by unit are given."`
	DeleteTopicWithRegistration bool  `prop:"deleteTopicWithBrokerRegistration" about:"Whether topics that are missing in a registration leave the routes; one of a single topic says nothing of the others."`
	DefaultBrokerTimeoutMillis  int64 `prop:"defaultBrokerTimeoutMillis" unit:"ms" min:"1000" max:"3153600000000" about:"Silence after which a broker leaves the routes, unless its registration names another."`
	MaxTopicsOfOneRegistration  int32 `prop:"maxTopicsOfOneRegistration" unit:"topics" min:"1" about:"Most topics in one registration of a broker; one with more is refused."`
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
	EnableTopicMessageTypeCheck bool  `prop:"enableTopicMessageTypeCheck" fixed:"true" about:"Whether gRPC clients may send to a topic only what its message.type says."`
	MaxMessageSize              int32 `prop:"maxMessageSize" unit:"bytes" fixed:"true" min:"1024" max:"16777216" about:"Largest body of a message that a gRPC client sends."`
	MaxUserPropertySize         int32 `prop:"maxUserPropertySize" unit:"bytes" fixed:"true" min:"0" about:"Most that a gRPC message's user properties, tag and keys have together."`
	UserPropertyMaxNum          int32 `prop:"userPropertyMaxNum" unit:"properties" fixed:"true" min:"0" max:"512" about:"Most user properties of a gRPC message."`
	MaxMessageGroupSize         int32 `prop:"maxMessageGroupSize" unit:"bytes" fixed:"true" min:"1" about:"A gRPC message's group is shorter than this."`
	MaxDelayTimeMills           int64 `prop:"maxDelayTimeMills" unit:"ms" fixed:"true" min:"1" max:"3153600000000" idle:"both protocols have one limit: timerMaxDelaySec" about:"How far ahead a time of delivery may be over gRPC."`
	MinInvisibleTimeMillsOnRecv int64 `prop:"minInvisibleTimeMillsForRecv" unit:"ms" fixed:"true" min:"1" max:"3153600000000" about:"Shortest invisible time that a gRPC client may receive with."`
	MaxInvisibleTimeMills       int64 `prop:"maxInvisibleTimeMills" unit:"ms" fixed:"true" min:"1" max:"3153600000000" about:"Longest invisible time that a gRPC client may receive with, or change to."`
	LongPollingMinTimeMillis    int64 `prop:"grpcClientConsumerMinLongPollingTimeoutMillis" unit:"ms" fixed:"true" min:"1" max:"86400000" about:"What a gRPC receive waits for messages at least, if its deadline lets it."`
	LongPollingMaxTimeMillis    int64 `prop:"grpcClientConsumerMaxLongPollingTimeoutMillis" unit:"ms" fixed:"true" min:"1" max:"86400000" about:"What a gRPC receive waits for messages at most; gRPC clients are told to ask for it."`
	LongPollingBatchSize        int32 `prop:"grpcClientConsumerLongPollingBatchSize" unit:"messages" fixed:"true" min:"1" max:"32" about:"What gRPC clients are told to receive at a time at most."`
	DefaultInvisibleTimeMills   int64 `prop:"defaultInvisibleTimeMills" unit:"ms" fixed:"true" min:"1" max:"3153600000000" about:"Invisible time of what gRPC push consumers receive; it is extended while they are there."`
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

package remoting

// How a consumer gets its messages.
const (
	ConsumeActively  = "CONSUME_ACTIVELY"  // it pulls
	ConsumePassively = "CONSUME_PASSIVELY" // it is pushed to, by pulling in the client
	ConsumePop       = "CONSUME_POP"
)

// Who of a group gets a message.
const (
	Broadcasting  = "BROADCASTING"
	Clustering    = "CLUSTERING"
	LiteSelective = "LITE_SELECTIVE"
)

// Where a group begins.
const (
	ConsumeFromLastOffset  = "CONSUME_FROM_LAST_OFFSET"
	ConsumeFromFirstOffset = "CONSUME_FROM_FIRST_OFFSET"
	ConsumeFromTimestamp   = "CONSUME_FROM_TIMESTAMP"
)

var (
	consumeTypes  = []string{ConsumeActively, ConsumePassively, ConsumePop}
	messageModels = []string{Broadcasting, Clustering, LiteSelective}
	consumeFroms  = []string{ConsumeFromLastOffset, "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
		"CONSUME_FROM_MIN_OFFSET", "CONSUME_FROM_MAX_OFFSET", ConsumeFromFirstOffset, ConsumeFromTimestamp}
)

// HeartbeatData is the body of HEART_BEAT.
type HeartbeatData struct {
	ClientID             string
	ConsumerDataSet      []ConsumerData
	HeartbeatFingerprint int32
	ProducerDataSet      []ProducerData
	WithoutSub           bool
}

// Members names the members.
func (b *HeartbeatData) Members(m *Members) {
	m.Str("clientID", &b.ClientID)
	objects(m, "consumerDataSet", &b.ConsumerDataSet)
	m.Int32("heartbeatFingerprint", &b.HeartbeatFingerprint)
	objects(m, "producerDataSet", &b.ProducerDataSet)
	m.Bool("withoutSub", &b.WithoutSub)
}

// ConsumerData is a client's membership in one consumer group.
type ConsumerData struct {
	ConsumeFromWhere    string
	ConsumeType         string
	GroupName           string
	MessageModel        string
	SubscriptionDataSet []SubscriptionData
	UnitMode            bool
}

// Members names the members.
func (b *ConsumerData) Members(m *Members) {
	m.Enum("consumeFromWhere", &b.ConsumeFromWhere, consumeFroms)
	m.Enum("consumeType", &b.ConsumeType, consumeTypes)
	m.Str("groupName", &b.GroupName)
	m.Enum("messageModel", &b.MessageModel, messageModels)
	objects(m, "subscriptionDataSet", &b.SubscriptionDataSet)
	m.Bool("unitMode", &b.UnitMode)
}

// ProducerData is a client's membership in one producer group.
type ProducerData struct{ GroupName string }

// Members names the members.
func (b *ProducerData) Members(m *Members) { m.Str("groupName", &b.GroupName) }

// SubscriptionData is what a group wants of one topic.
type SubscriptionData struct {
	ClassFilterMode bool
	CodeSet         []int32
	ExpressionType  string
	SubString       string
	SubVersion      int64
	TagsSet         []string
	Topic           string
}

// Members names the members.
func (b *SubscriptionData) Members(m *Members) {
	m.Bool("classFilterMode", &b.ClassFilterMode)
	m.Int32s("codeSet", &b.CodeSet)
	m.Str("expressionType", &b.ExpressionType)
	m.Str("subString", &b.SubString)
	m.Int64("subVersion", &b.SubVersion)
	m.Strs("tagsSet", &b.TagsSet)
	m.Str("topic", &b.Topic)
}

// CheckClientBody is the body of CHECK_CLIENT_CONFIG.
type CheckClientBody struct {
	ClientID         string
	Group            string
	Namespace        string
	SubscriptionData *SubscriptionData
}

// Members names the members.
func (b *CheckClientBody) Members(m *Members) {
	m.Str("clientId", &b.ClientID)
	m.Str("group", &b.Group)
	m.OptStr("namespace", &b.Namespace)
	opt(m, "subscriptionData", &b.SubscriptionData)
}

// ConsumerListBody answers GET_CONSUMER_LIST_BY_GROUP.
type ConsumerListBody struct{ ConsumerIDList []string }

// Members names the members.
func (b *ConsumerListBody) Members(m *Members) { m.Strs("consumerIdList", &b.ConsumerIDList) }

// ConsumerConnection answers GET_CONSUMER_CONNECTION_LIST.
type ConsumerConnection struct {
	ConnectionSet     []Connection
	ConsumeFromWhere  string
	ConsumeType       string
	MessageModel      string
	SubscriptionTable map[string]SubscriptionData
}

// Members names the members.
func (b *ConsumerConnection) Members(m *Members) {
	objects(m, "connectionSet", &b.ConnectionSet)
	m.Enum("consumeFromWhere", &b.ConsumeFromWhere, consumeFroms)
	m.Enum("consumeType", &b.ConsumeType, consumeTypes)
	m.Enum("messageModel", &b.MessageModel, messageModels)
	objectMap(m, "subscriptionTable", &b.SubscriptionTable)
}

// Connection is one connected client.
type Connection struct {
	ClientAddr string
	ClientID   string
	Language   string
	Version    int32
}

// Members names the members.
func (b *Connection) Members(m *Members) {
	m.Str("clientAddr", &b.ClientAddr)
	m.Str("clientId", &b.ClientID)
	m.Enum("language", &b.Language, languageNames[:])
	m.Int32("version", &b.Version)
}

// ProducerConnection answers GET_PRODUCER_CONNECTION_LIST.
type ProducerConnection struct{ ConnectionSet []Connection }

// Members names the members.
func (b *ProducerConnection) Members(m *Members) { objects(m, "connectionSet", &b.ConnectionSet) }

// ProducerTable answers GET_ALL_PRODUCER_INFO, by group.
type ProducerTable struct{ Data map[string][]ProducerInfo }

// Members names the members.
func (b *ProducerTable) Members(m *Members) {
	mapOf(m, "data", &b.Data, stringKey, func(x *[]ProducerInfo) {
		listValue(m, x, func(p *ProducerInfo) { m.object(p) })
	})
}

// ProducerInfo is one connected producer.
type ProducerInfo struct {
	ClientID            string
	Language            string
	LastUpdateTimestamp int64
	RemoteIP            string
	Version             int32
}

// Members names the members.
func (b *ProducerInfo) Members(m *Members) {
	m.Str("clientId", &b.ClientID)
	m.Enum("language", &b.Language, languageNames[:])
	m.Int64("lastUpdateTimestamp", &b.LastUpdateTimestamp)
	m.Str("remoteIP", &b.RemoteIP)
	m.Int32("version", &b.Version)
}

// ConsumeMessageDirectlyResult is a client's answer to CONSUME_MESSAGE_DIRECTLY.
type ConsumeMessageDirectlyResult struct {
	AutoCommit     bool
	ConsumeResult  string
	Order          bool
	Remark         string
	SpentTimeMills int64
}

var consumeResults = []string{"CR_SUCCESS", "CR_LATER", "CR_ROLLBACK", "CR_COMMIT", "CR_THROW_EXCEPTION", "CR_RETURN_NULL"}

// Members names the members.
func (b *ConsumeMessageDirectlyResult) Members(m *Members) {
	m.Bool("autoCommit", &b.AutoCommit)
	m.Enum("consumeResult", &b.ConsumeResult, consumeResults)
	m.Bool("order", &b.Order)
	m.OptStr("remark", &b.Remark)
	m.Int64("spentTimeMills", &b.SpentTimeMills)
}

// ConsumerRunningInfo is a client's answer to GET_CONSUMER_RUNNING_INFO.
type ConsumerRunningInfo struct {
	Jstack           string
	MQPopTable       map[MessageQueue]PopProcessQueueInfo
	MQTable          map[MessageQueue]ProcessQueueInfo
	Properties       map[string]string
	StatusTable      map[string]ConsumeStatus
	SubscriptionSet  []SubscriptionData
	UserConsumerInfo map[string]string
}

// Members names the members.
func (b *ConsumerRunningInfo) Members(m *Members) {
	m.OptStr("jstack", &b.Jstack)
	queueMap(m, "mqPopTable", &b.MQPopTable)
	queueMap(m, "mqTable", &b.MQTable)
	m.StrMap("properties", &b.Properties)
	objectMap(m, "statusTable", &b.StatusTable)
	objects(m, "subscriptionSet", &b.SubscriptionSet)
	m.StrMap("userConsumerInfo", &b.UserConsumerInfo)
}

// ProcessQueueInfo is the state of one queue in a pushing consumer.
type ProcessQueueInfo struct {
	CachedMsgCount          int32
	CachedMsgMaxOffset      int64
	CachedMsgMinOffset      int64
	CachedMsgSizeInMiB      int32
	CommitOffset            int64
	Dropped                 bool
	LastConsumeTimestamp    int64
	LastLockTimestamp       int64
	LastPullTimestamp       int64
	Locked                  bool
	TransactionMsgCount     int32
	TransactionMsgMaxOffset int64
	TransactionMsgMinOffset int64
	TryUnlockTimes          int64
}

// Members names the members.
func (b *ProcessQueueInfo) Members(m *Members) {
	m.Int32("cachedMsgCount", &b.CachedMsgCount)
	m.Int64("cachedMsgMaxOffset", &b.CachedMsgMaxOffset)
	m.Int64("cachedMsgMinOffset", &b.CachedMsgMinOffset)
	m.Int32("cachedMsgSizeInMiB", &b.CachedMsgSizeInMiB)
	m.Int64("commitOffset", &b.CommitOffset)
	m.Bool("droped", &b.Dropped) // spelled so
	m.Int64("lastConsumeTimestamp", &b.LastConsumeTimestamp)
	m.Int64("lastLockTimestamp", &b.LastLockTimestamp)
	m.Int64("lastPullTimestamp", &b.LastPullTimestamp)
	m.Bool("locked", &b.Locked)
	m.Int32("transactionMsgCount", &b.TransactionMsgCount)
	m.Int64("transactionMsgMaxOffset", &b.TransactionMsgMaxOffset)
	m.Int64("transactionMsgMinOffset", &b.TransactionMsgMinOffset)
	m.Int64("tryUnlockTimes", &b.TryUnlockTimes)
}

// PopProcessQueueInfo is the state of one queue in a popping consumer.
type PopProcessQueueInfo struct {
	Dropped          bool
	LastPopTimestamp int64
	WaitAckCount     int32
}

// Members names the members.
func (b *PopProcessQueueInfo) Members(m *Members) {
	m.Bool("droped", &b.Dropped) // spelled so
	m.Int64("lastPopTimestamp", &b.LastPopTimestamp)
	m.Int32("waitAckCount", &b.WaitAckCount)
}

// ConsumeStatus is a consumer's figures for one topic.
type ConsumeStatus struct {
	ConsumeFailedMsgs int64
	ConsumeFailedTPS  float64
	ConsumeOKTPS      float64
	ConsumeRT         float64
	PullRT            float64
	PullTPS           float64
}

// Members names the members.
func (b *ConsumeStatus) Members(m *Members) {
	m.Int64("consumeFailedMsgs", &b.ConsumeFailedMsgs)
	m.Float("consumeFailedTPS", &b.ConsumeFailedTPS)
	m.Float("consumeOKTPS", &b.ConsumeOKTPS)
	m.Float("consumeRT", &b.ConsumeRT)
	m.Float("pullRT", &b.PullRT)
	m.Float("pullTPS", &b.PullTPS)
}

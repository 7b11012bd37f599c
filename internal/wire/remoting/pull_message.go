package remoting

// Bits of a pull's sysFlag.
const (
	PullCommitOffset int32 = 1  // commitOffset is to be stored
	PullSuspend      int32 = 2  // wait for messages up to suspendTimeoutMillis
	PullSubscription int32 = 4  // the expression is in the request
	PullClassFilter  int32 = 8  // filter class, no longer served
	PullLite         int32 = 16 // lite pull
)

// PullMessageRequest is the header of PULL_MESSAGE and LITE_PULL_MESSAGE.
type PullMessageRequest struct {
	ConsumerGroup        string
	Topic                string
	LiteTopic            string
	QueueID              int32
	QueueOffset          int64
	MaxMsgNums           int32
	SysFlag              int32
	CommitOffset         int64
	SuspendTimeoutMillis int64
	Subscription         string
	SubVersion           int64
	ExpressionType       string
	MaxMsgBytes          Opt[int32]
	RequestSource        int32 // −1 a client, 0 a proxy in order, 1 for broadcast, 2 for a stream
	ProxyForwardClientID string
	BrokerName           string
}

// Fields names the fields.
func (h *PullMessageRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Name("liteTopic", &h.LiteTopic, Optional)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int64("queueOffset", &h.QueueOffset, Required)
	v.Int32("maxMsgNums", &h.MaxMsgNums, Required)
	v.Int32("sysFlag", &h.SysFlag, Required)
	v.Int64("commitOffset", &h.CommitOffset, Required)
	v.Int64("suspendTimeoutMillis", &h.SuspendTimeoutMillis, Required)
	v.Name("subscription", &h.Subscription, Optional)
	v.Int64("subVersion", &h.SubVersion, Required)
	v.Name("expressionType", &h.ExpressionType, Optional)
	v.OptInt32("maxMsgBytes", &h.MaxMsgBytes)
	v.Int32("requestSource", &h.RequestSource, Optional)
	v.Name("proxyFrowardClientId", &h.ProxyForwardClientID, Optional) // spelled so
	v.Name("bname", &h.BrokerName, Optional)
}

// PullMessageResponse answers both pull codes.
type PullMessageResponse struct {
	SuggestWhichBrokerID int64
	NextBeginOffset      int64
	MinOffset            int64
	MaxOffset            int64
	OffsetDelta          Opt[int64]
	TopicSysFlag         Opt[int32]
	GroupSysFlag         Opt[int32]
	ForbiddenType        Opt[int32]
}

// Fields names the fields.
func (h *PullMessageResponse) Fields(v *Visitor) {
	v.Int64("suggestWhichBrokerId", &h.SuggestWhichBrokerID, Required)
	v.Int64("nextBeginOffset", &h.NextBeginOffset, Required)
	v.Int64("minOffset", &h.MinOffset, Required)
	v.Int64("maxOffset", &h.MaxOffset, Required)
	v.OptInt64("offsetDelta", &h.OffsetDelta)
	v.OptInt32("topicSysFlag", &h.TopicSysFlag)
	v.OptInt32("groupSysFlag", &h.GroupSysFlag)
	v.OptInt32("forbiddenType", &h.ForbiddenType)
}

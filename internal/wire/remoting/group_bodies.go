package remoting

// SubscriptionGroupConfig is a consumer group's configuration, as brokers keep and send
// it. DefaultSubscriptionGroupConfig has what absent members mean.
type SubscriptionGroupConfig struct {
	Attributes                     map[string]string
	BrokerID                       int64
	ConsumeBroadcastEnable         bool
	ConsumeEnable                  bool
	ConsumeFromMinEnable           bool
	ConsumeMessageOrderly          bool
	ConsumeTimeoutMinute           int32
	GroupName                      string
	GroupRetryPolicy               GroupRetryPolicy
	GroupSysFlag                   int32
	NotifyConsumerIDsChangedEnable bool
	RetryMaxTimes                  int32
	RetryQueueNums                 int32
	SubscriptionDataSet            []SimpleSubscriptionData
	WhichBrokerWhenConsumeSlowly   int64
}

// DefaultSubscriptionGroupConfig returns the configuration of a group that says nothing.
func DefaultSubscriptionGroupConfig(group string) SubscriptionGroupConfig {
	return SubscriptionGroupConfig{GroupName: group, ConsumeEnable: true, ConsumeFromMinEnable: true,
		ConsumeBroadcastEnable: true, RetryQueueNums: 1, RetryMaxTimes: 16, WhichBrokerWhenConsumeSlowly: 1,
		NotifyConsumerIDsChangedEnable: true, ConsumeTimeoutMinute: 15, GroupRetryPolicy: GroupRetryPolicy{Type: RetryCustomized}}
}

// Members names the members.
func (b *SubscriptionGroupConfig) Members(m *Members) {
	m.StrMap("attributes", &b.Attributes)
	m.Int64("brokerId", &b.BrokerID)
	m.Bool("consumeBroadcastEnable", &b.ConsumeBroadcastEnable)
	m.Bool("consumeEnable", &b.ConsumeEnable)
	m.Bool("consumeFromMinEnable", &b.ConsumeFromMinEnable)
	m.Bool("consumeMessageOrderly", &b.ConsumeMessageOrderly)
	m.Int32("consumeTimeoutMinute", &b.ConsumeTimeoutMinute)
	m.Str("groupName", &b.GroupName)
	m.Object("groupRetryPolicy", &b.GroupRetryPolicy)
	m.Int32("groupSysFlag", &b.GroupSysFlag)
	m.Bool("notifyConsumerIdsChangedEnable", &b.NotifyConsumerIDsChangedEnable)
	m.Int32("retryMaxTimes", &b.RetryMaxTimes)
	m.Int32("retryQueueNums", &b.RetryQueueNums)
	if !m.Writing() || b.SubscriptionDataSet != nil {
		objects(m, "subscriptionDataSet", &b.SubscriptionDataSet)
	}
	m.Int64("whichBrokerWhenConsumeSlowly", &b.WhichBrokerWhenConsumeSlowly)
}

// The kinds of a retry policy.
const (
	RetryExponential = "EXPONENTIAL"
	RetryCustomized  = "CUSTOMIZED"
)

// GroupRetryPolicy says how long a message waits between attempts.
type GroupRetryPolicy struct {
	CustomizedRetryPolicy  *CustomizedRetryPolicy
	ExponentialRetryPolicy *ExponentialRetryPolicy
	Type                   string
}

// Members names the members.
func (b *GroupRetryPolicy) Members(m *Members) {
	opt(m, "customizedRetryPolicy", &b.CustomizedRetryPolicy)
	opt(m, "exponentialRetryPolicy", &b.ExponentialRetryPolicy)
	m.Enum("type", &b.Type, []string{RetryExponential, RetryCustomized})
}

// CustomizedRetryPolicy lists the waits in milliseconds.
type CustomizedRetryPolicy struct{ Next []int64 }

// Members names the members.
func (b *CustomizedRetryPolicy) Members(m *Members) { m.Int64s("next", &b.Next) }

// ExponentialRetryPolicy multiplies the wait from Initial up to Max, in milliseconds.
type ExponentialRetryPolicy struct{ Initial, Max, Multiplier int64 }

// Members names the members.
func (b *ExponentialRetryPolicy) Members(m *Members) {
	m.Int64("initial", &b.Initial)
	m.Int64("max", &b.Max)
	m.Int64("multiplier", &b.Multiplier)
}

// SimpleSubscriptionData is a subscription that a group's configuration fixes.
type SimpleSubscriptionData struct {
	Expression     string
	ExpressionType string
	Topic          string
	Version        int64
}

// Members names the members.
func (b *SimpleSubscriptionData) Members(m *Members) {
	m.Str("expression", &b.Expression)
	m.Str("expressionType", &b.ExpressionType)
	m.Str("topic", &b.Topic)
	m.Int64("version", &b.Version)
}

// SubscriptionGroupTable answers GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
type SubscriptionGroupTable struct {
	DataVersion            DataVersion
	ForbiddenTable         map[string]map[string]int64
	SubscriptionGroupTable map[string]SubscriptionGroupConfig
}

// Members names the members.
func (b *SubscriptionGroupTable) Members(m *Members) {
	m.Object("dataVersion", &b.DataVersion)
	mapOf(m, "forbiddenTable", &b.ForbiddenTable, stringKey, func(x *map[string]int64) {
		mapValue(m, x, stringKey, m.int)
	})
	mapOf(m, "subscriptionGroupTable", &b.SubscriptionGroupTable, stringKey, func(x *SubscriptionGroupConfig) {
		if !m.writing {
			*x = DefaultSubscriptionGroupConfig("")
		}
		m.object(x)
	})
}

// SubscriptionGroupList is the body of UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST.
type SubscriptionGroupList struct{ GroupConfigList []SubscriptionGroupConfig }

// Members names the members.
func (b *SubscriptionGroupList) Members(m *Members) {
	listOf(m, "groupConfigList", &b.GroupConfigList, func(x *SubscriptionGroupConfig) {
		if !m.writing {
			*x = DefaultSubscriptionGroupConfig("")
		}
		m.object(x)
	})
}

// GroupForbidden answers UPDATE_AND_GET_GROUP_FORBIDDEN.
type GroupForbidden struct {
	Group    string
	Readable bool
	Topic    string
}

// Members names the members.
func (b *GroupForbidden) Members(m *Members) {
	m.Str("group", &b.Group)
	m.Bool("readable", &b.Readable)
	m.Str("topic", &b.Topic)
}

// ConsumeStats answers GET_CONSUME_STATS.
type ConsumeStats struct {
	ConsumeTps  float64
	OffsetTable map[MessageQueue]OffsetWrapper
}

// Members names the members.
func (b *ConsumeStats) Members(m *Members) {
	m.Float("consumeTps", &b.ConsumeTps)
	queueMap(m, "offsetTable", &b.OffsetTable)
}

// OffsetWrapper is how far a group has come in one queue.
type OffsetWrapper struct {
	BrokerOffset   int64
	ConsumerOffset int64
	LastTimestamp  int64
	PullOffset     int64
}

// Members names the members.
func (b *OffsetWrapper) Members(m *Members) {
	m.Int64("brokerOffset", &b.BrokerOffset)
	m.Int64("consumerOffset", &b.ConsumerOffset)
	m.Int64("lastTimestamp", &b.LastTimestamp)
	m.Int64("pullOffset", &b.PullOffset)
}

// ConsumeStatsList answers GET_BROKER_CONSUME_STATS.
type ConsumeStatsList struct {
	BrokerAddr        string
	ConsumeStatsList  []map[string][]ConsumeStats
	TotalDiff         int64
	TotalInflightDiff int64
}

// Members names the members.
func (b *ConsumeStatsList) Members(m *Members) {
	m.OptStr("brokerAddr", &b.BrokerAddr)
	listOf(m, "consumeStatsList", &b.ConsumeStatsList, func(x *map[string][]ConsumeStats) {
		mapValue(m, x, stringKey, func(l *[]ConsumeStats) {
			listValue(m, l, func(s *ConsumeStats) { m.object(s) })
		})
	})
	m.Int64("totalDiff", &b.TotalDiff)
	m.Int64("totalInflightDiff", &b.TotalInflightDiff)
}

// QueryConsumeTimeSpanBody answers QUERY_CONSUME_TIME_SPAN.
type QueryConsumeTimeSpanBody struct{ ConsumeTimeSpanSet []QueueTimeSpan }

// Members names the members.
func (b *QueryConsumeTimeSpanBody) Members(m *Members) {
	objects(m, "consumeTimeSpanSet", &b.ConsumeTimeSpanSet)
}

// QueueTimeSpan is the time that a queue's messages span and how late a group is.
type QueueTimeSpan struct {
	ConsumeTimestamp int64
	DelayTime        int64
	MaxTimestamp     int64
	MessageQueue     MessageQueue
	MinTimestamp     int64
}

// Members names the members.
func (b *QueueTimeSpan) Members(m *Members) {
	m.Int64("consumeTimeStamp", &b.ConsumeTimestamp)
	m.Int64("delayTime", &b.DelayTime)
	m.Int64("maxTimeStamp", &b.MaxTimestamp)
	m.Object("messageQueue", &b.MessageQueue)
	m.Int64("minTimeStamp", &b.MinTimestamp)
}

// QuerySubscriptionBody answers QUERY_SUBSCRIPTION_BY_CONSUMER.
type QuerySubscriptionBody struct {
	Group            string
	SubscriptionData *SubscriptionData
	Topic            string
}

// Members names the members.
func (b *QuerySubscriptionBody) Members(m *Members) {
	m.Str("group", &b.Group)
	opt(m, "subscriptionData", &b.SubscriptionData)
	m.Str("topic", &b.Topic)
}

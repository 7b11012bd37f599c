package remoting

// LiteSubscriptions is the body of LITE_SUBSCRIPTION_CTL.
type LiteSubscriptions struct{ Set []LiteSubscription }

// Members names the members.
func (b *LiteSubscriptions) Members(m *Members) { objects(m, "subscriptionSet", &b.Set) }

// LiteSubscription is what one client says.
type LiteSubscription struct {
	Action       string // PARTIAL_ADD, PARTIAL_REMOVE, COMPLETE_ADD, COMPLETE_REMOVE
	ClientID     string
	Group        string
	Topic        string
	LiteTopicSet []string
	OffsetOption LiteOffset
	Version      int64
}

// Members names the members.
func (b *LiteSubscription) Members(m *Members) {
	m.Str("action", &b.Action)
	m.Str("clientId", &b.ClientID)
	m.Str("group", &b.Group)
	m.Strs("liteTopicSet", &b.LiteTopicSet)
	m.Object("offsetOption", &b.OffsetOption)
	m.Str("topic", &b.Topic)
	m.Int64("version", &b.Version)
}

// LiteOffset is where a group is to go on. Of POLICY the value is 0 where it is, 1 the first
// message, 2 behind the last one.
type LiteOffset struct {
	Type  string // POLICY, OFFSET, TAIL_N, TIMESTAMP; empty for none
	Value int64
}

// Members names the members.
func (b *LiteOffset) Members(m *Members) {
	m.Str("type", &b.Type)
	m.Int64("value", &b.Value)
}

// BrokerLiteInfo answers GET_BROKER_LITE_INFO.
type BrokerLiteInfo struct {
	StoreType             string
	MaxLmqNum             int32
	CurrentLmqNum         int32
	LiteSubscriptionCount int32
	OrderInfoCount        int32
	CqTableSize           int32
	OffsetTableSize       int32
	EventMapSize          int32
	TopicMeta             map[string]int32
	GroupMeta             map[string][]string
}

// Members names the members.
func (b *BrokerLiteInfo) Members(m *Members) {
	m.Int32("cqTableSize", &b.CqTableSize)
	m.Int32("currentLmqNum", &b.CurrentLmqNum)
	m.Int32("eventMapSize", &b.EventMapSize)
	mapOf(m, "groupMeta", &b.GroupMeta, stringKey, m.strs)
	m.Int32("liteSubscriptionCount", &b.LiteSubscriptionCount)
	m.Int32("maxLmqNum", &b.MaxLmqNum)
	m.Int32("offsetTableSize", &b.OffsetTableSize)
	m.Int32("orderInfoCount", &b.OrderInfoCount)
	m.Str("storeType", &b.StoreType)
	mapOf(m, "topicMeta", &b.TopicMeta, stringKey, func(p *int32) {
		v := int64(*p)
		m.int(&v)
		*p = int32(v)
	})
}

// ParentTopicInfo answers GET_PARENT_TOPIC_INFO.
type ParentTopicInfo struct {
	Topic          string
	TTL            int32 // minutes
	Groups         []string
	LmqNum         int32
	LiteTopicCount int32
}

// Members names the members.
func (b *ParentTopicInfo) Members(m *Members) {
	m.Strs("groups", &b.Groups)
	m.Int32("liteTopicCount", &b.LiteTopicCount)
	m.Int32("lmqNum", &b.LmqNum)
	m.Str("topic", &b.Topic)
	m.Int32("ttl", &b.TTL)
}

// LiteTopicInfo answers GET_LITE_TOPIC_INFO.
type LiteTopicInfo struct {
	ParentTopic      string
	LiteTopic        string
	Subscriber       []ClientGroup
	TopicOffset      TopicOffset
	ShardingToBroker bool
}

// Members names the members.
func (b *LiteTopicInfo) Members(m *Members) {
	m.Str("liteTopic", &b.LiteTopic)
	m.Str("parentTopic", &b.ParentTopic)
	m.Bool("shardingToBroker", &b.ShardingToBroker)
	objects(m, "subscriber", &b.Subscriber)
	m.Object("topicOffset", &b.TopicOffset)
}

// ClientGroup is a client of a group.
type ClientGroup struct{ ClientID, Group string }

// Members names the members.
func (b *ClientGroup) Members(m *Members) {
	m.Str("clientId", &b.ClientID)
	m.Str("group", &b.Group)
}

// LiteClientInfo answers GET_LITE_CLIENT_INFO.
type LiteClientInfo struct {
	ParentTopic    string
	Group          string
	ClientID       string
	LastAccessTime int64
	LiteTopicCount int32
	LiteTopicSet   []string
}

// Members names the members.
func (b *LiteClientInfo) Members(m *Members) {
	m.Str("clientId", &b.ClientID)
	m.Str("group", &b.Group)
	m.Int64("lastAccessTime", &b.LastAccessTime)
	m.Int32("liteTopicCount", &b.LiteTopicCount)
	m.Strs("liteTopicSet", &b.LiteTopicSet)
	m.Str("parentTopic", &b.ParentTopic)
}

// LiteGroupInfo answers GET_LITE_GROUP_INFO.
type LiteGroupInfo struct {
	Group                       string
	ParentTopic                 string
	LiteTopic                   string
	EarliestUnconsumedTimestamp int64
	TotalLagCount               int64
	Offset                      *OffsetWrapper
	LagCountTopK                []LiteLag
	LagTimestampTopK            []LiteLag
}

// Members names the members.
func (b *LiteGroupInfo) Members(m *Members) {
	m.Int64("earliestUnconsumedTimestamp", &b.EarliestUnconsumedTimestamp)
	m.Str("group", &b.Group)
	objects(m, "lagCountTopK", &b.LagCountTopK)
	objects(m, "lagTimestampTopK", &b.LagTimestampTopK)
	m.OptStr("liteTopic", &b.LiteTopic)
	opt(m, "liteTopicOffsetWrapper", &b.Offset)
	m.Str("parentTopic", &b.ParentTopic)
	m.Int64("totalLagCount", &b.TotalLagCount)
}

// LiteLag is how far a group is behind in one lite topic.
type LiteLag struct {
	LiteTopic                   string
	LagCount                    int64
	EarliestUnconsumedTimestamp int64
}

// Members names the members.
func (b *LiteLag) Members(m *Members) {
	m.Int64("earliestUnconsumedTimestamp", &b.EarliestUnconsumedTimestamp)
	m.Int64("lagCount", &b.LagCount)
	m.Str("liteTopic", &b.LiteTopic)
}

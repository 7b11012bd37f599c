package remoting

// TopicConfig is a topic's configuration, as brokers keep and send it.
type TopicConfig struct {
	Attributes      map[string]string
	Order           bool
	Perm            int32
	ReadQueueNums   int32
	TopicFilterType string
	TopicName       string
	TopicSysFlag    int32
	WriteQueueNums  int32
}

var topicFilterTypes = []string{"SINGLE_TAG", "MULTI_TAG"}

// Members names the members.
func (b *TopicConfig) Members(m *Members) {
	m.StrMap("attributes", &b.Attributes)
	m.Bool("order", &b.Order)
	m.Int32("perm", &b.Perm)
	m.Int32("readQueueNums", &b.ReadQueueNums)
	m.Enum("topicFilterType", &b.TopicFilterType, topicFilterTypes)
	m.Str("topicName", &b.TopicName)
	m.Int32("topicSysFlag", &b.TopicSysFlag)
	m.Int32("writeQueueNums", &b.WriteQueueNums)
}

// TopicConfigTable answers GET_ALL_TOPIC_CONFIG and is part of a registration. Mappings
// of static topics are written empty and not read.
type TopicConfigTable struct {
	DataVersion        DataVersion
	MappingDataVersion DataVersion
	TopicConfigTable   map[string]TopicConfig
}

// Members names the members.
func (b *TopicConfigTable) Members(m *Members) {
	m.Object("dataVersion", &b.DataVersion)
	m.Object("mappingDataVersion", &b.MappingDataVersion)
	objectMap(m, "topicConfigTable", &b.TopicConfigTable)
	if m.Writing() {
		var none map[string]string
		m.StrMap("topicQueueMappingDetailMap", &none)
		m.StrMap("topicQueueMappingInfoMap", &none)
	}
}

// CreateTopicListBody is the body of UPDATE_AND_CREATE_TOPIC_LIST.
type CreateTopicListBody struct{ TopicConfigList []TopicConfig }

// Members names the members.
func (b *CreateTopicListBody) Members(m *Members) { objects(m, "topicConfigList", &b.TopicConfigList) }

// TopicStatsTable answers GET_TOPIC_STATS_INFO.
type TopicStatsTable struct {
	OffsetTable map[MessageQueue]TopicOffset
	TopicPutTps float64
}

// Members names the members.
func (b *TopicStatsTable) Members(m *Members) {
	queueMap(m, "offsetTable", &b.OffsetTable)
	m.Float("topicPutTps", &b.TopicPutTps)
}

// TopicOffset is the extent of one queue.
type TopicOffset struct {
	LastUpdateTimestamp int64
	MaxOffset           int64
	MinOffset           int64
}

// Members names the members.
func (b *TopicOffset) Members(m *Members) {
	m.Int64("lastUpdateTimestamp", &b.LastUpdateTimestamp)
	m.Int64("maxOffset", &b.MaxOffset)
	m.Int64("minOffset", &b.MinOffset)
}

// ConsumerOffsetTable answers GET_ALL_CONSUMER_OFFSET: topic@group, then queue.
type ConsumerOffsetTable struct {
	DataVersion *DataVersion
	OffsetTable map[string]map[int32]int64
}

// Members names the members.
func (b *ConsumerOffsetTable) Members(m *Members) {
	opt(m, "dataVersion", &b.DataVersion)
	mapOf(m, "offsetTable", &b.OffsetTable, stringKey, func(x *map[int32]int64) {
		mapValue(m, x, numberKey[int32](), m.int)
	})
}

// DelayOffsetTable answers GET_ALL_DELAY_OFFSET: queue offsets by delay level.
type DelayOffsetTable struct {
	DataVersion *DataVersion
	OffsetTable map[int32]int64
}

// Members names the members.
func (b *DelayOffsetTable) Members(m *Members) {
	opt(m, "dataVersion", &b.DataVersion)
	mapOf(m, "offsetTable", &b.OffsetTable, numberKey[int32](), m.int)
}

// QueryConsumeQueueBody answers QUERY_CONSUME_QUEUE.
type QueryConsumeQueueBody struct {
	FilterData       string
	MaxQueueIndex    int64
	MinQueueIndex    int64
	QueueData        []ConsumeQueueData
	SubscriptionData *SubscriptionData
}

// Members names the members.
func (b *QueryConsumeQueueBody) Members(m *Members) {
	m.OptStr("filterData", &b.FilterData)
	m.Int64("maxQueueIndex", &b.MaxQueueIndex)
	m.Int64("minQueueIndex", &b.MinQueueIndex)
	objects(m, "queueData", &b.QueueData)
	opt(m, "subscriptionData", &b.SubscriptionData)
}

// ConsumeQueueData is one entry of a consume queue.
type ConsumeQueueData struct {
	BitMap         string
	Eval           bool
	ExtendDataJSON string
	Msg            string
	PhysicOffset   int64
	PhysicSize     int32
	TagsCode       int64
}

// Members names the members.
func (b *ConsumeQueueData) Members(m *Members) {
	m.OptStr("bitMap", &b.BitMap)
	m.Bool("eval", &b.Eval)
	m.OptStr("extendDataJson", &b.ExtendDataJSON)
	m.OptStr("msg", &b.Msg)
	m.Int64("physicOffset", &b.PhysicOffset)
	m.Int32("physicSize", &b.PhysicSize)
	m.Int64("tagsCode", &b.TagsCode)
}

// BrokerStatsData answers VIEW_BROKER_STATS_DATA.
type BrokerStatsData struct{ StatsDay, StatsHour, StatsMinute BrokerStatsItem }

// Members names the members.
func (b *BrokerStatsData) Members(m *Members) {
	m.Object("statsDay", &b.StatsDay)
	m.Object("statsHour", &b.StatsHour)
	m.Object("statsMinute", &b.StatsMinute)
}

// BrokerStatsItem is a figure over one span of time.
type BrokerStatsItem struct {
	AvgPt float64
	Sum   int64
	Tps   float64
}

// Members names the members.
func (b *BrokerStatsItem) Members(m *Members) {
	m.Float("avgpt", &b.AvgPt)
	m.Int64("sum", &b.Sum)
	m.Float("tps", &b.Tps)
}

package remoting

// UpdateAndCreateTopicRequest is the header of UPDATE_AND_CREATE_TOPIC.
type UpdateAndCreateTopicRequest struct {
	Topic           string
	DefaultTopic    string
	ReadQueueNums   int32
	WriteQueueNums  int32
	Perm            int32
	TopicFilterType string
	TopicSysFlag    int32
	Order           bool
	Attributes      string
	Force           bool
}

// Fields names the fields.
func (h *UpdateAndCreateTopicRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Name("defaultTopic", &h.DefaultTopic, Required)
	v.Int32("readQueueNums", &h.ReadQueueNums, Required)
	v.Int32("writeQueueNums", &h.WriteQueueNums, Required)
	v.Int32("perm", &h.Perm, Required)
	v.Name("topicFilterType", &h.TopicFilterType, Required)
	v.Int32("topicSysFlag", &h.TopicSysFlag, Optional)
	v.Bool("order", &h.Order, Required)
	v.Str("attributes", &h.Attributes, Optional)
	v.Bool("force", &h.Force, Optional)
}

// GetAllTopicConfigRequest is the header of GET_ALL_TOPIC_CONFIG.
type GetAllTopicConfigRequest struct {
	TopicSeq    int32
	DataVersion string
	MaxTopicNum int32
}

// Fields names the fields.
func (h *GetAllTopicConfigRequest) Fields(v *Visitor) {
	v.Int32("topicSeq", &h.TopicSeq, Optional) // clients up to 5.3 send no header at all
	v.Str("dataVersion", &h.DataVersion, Optional)
	v.Int32("maxTopicNum", &h.MaxTopicNum, Optional)
}

// GetAllTopicConfigResponse answers GET_ALL_TOPIC_CONFIG.
type GetAllTopicConfigResponse struct {
	TotalTopicNum int32
}

// Fields names the fields.
func (h *GetAllTopicConfigResponse) Fields(v *Visitor) {
	v.Int32("totalTopicNum", &h.TotalTopicNum, Optional)
}

// GetTopicConfigRequest is the header of GET_TOPIC_CONFIG.
type GetTopicConfigRequest struct {
	Topic string
}

// Fields names the fields.
func (h *GetTopicConfigRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
}

// DeleteTopicInBrokerRequest is the header of DELETE_TOPIC_IN_BROKER.
type DeleteTopicInBrokerRequest struct {
	Topic string
}

// Fields names the fields.
func (h *DeleteTopicInBrokerRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
}

// GetTopicStatsInfoRequest is the header of GET_TOPIC_STATS_INFO.
type GetTopicStatsInfoRequest struct {
	Topic string
}

// Fields names the fields.
func (h *GetTopicStatsInfoRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
}

// QueryTopicConsumeByWhoRequest is the header of QUERY_TOPIC_CONSUME_BY_WHO.
type QueryTopicConsumeByWhoRequest struct {
	Topic string
}

// Fields names the fields.
func (h *QueryTopicConsumeByWhoRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
}

// CheckRocksDBCQWriteProgressRequest is the header of CHECK_ROCKSDB_CQ_WRITE_PROGRESS.
type CheckRocksDBCQWriteProgressRequest struct {
	Topic          string
	CheckStoreTime int64
}

// Fields names the fields.
func (h *CheckRocksDBCQWriteProgressRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Int64("checkStoreTime", &h.CheckStoreTime, Optional)
}

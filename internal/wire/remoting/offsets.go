package remoting

// QueryConsumerOffsetRequest is the header of QUERY_CONSUMER_OFFSET.
type QueryConsumerOffsetRequest struct {
	ConsumerGroup     string
	Topic             string
	QueueID           int32
	SetZeroIfNotFound Opt[bool]
	BrokerName        string
}

// Fields names the fields.
func (h *QueryConsumerOffsetRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.OptBool("setZeroIfNotFound", &h.SetZeroIfNotFound)
	v.Name("bname", &h.BrokerName, Optional)
}

// QueryConsumerOffsetResponse answers QUERY_CONSUMER_OFFSET.
type QueryConsumerOffsetResponse struct {
	Offset int64
}

// Fields names the fields.
func (h *QueryConsumerOffsetResponse) Fields(v *Visitor) {
	v.Int64("offset", &h.Offset, Required)
}

// UpdateConsumerOffsetRequest is the header of UPDATE_CONSUMER_OFFSET.
type UpdateConsumerOffsetRequest struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
	CommitOffset  int64
	BrokerName    string
}

// Fields names the fields.
func (h *UpdateConsumerOffsetRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int64("commitOffset", &h.CommitOffset, Required)
	v.Name("bname", &h.BrokerName, Optional)
}

// SearchOffsetByTimestampRequest is the header of SEARCH_OFFSET_BY_TIMESTAMP.
type SearchOffsetByTimestampRequest struct {
	Topic        string
	LiteTopic    string
	QueueID      int32
	Timestamp    int64
	BoundaryType string
	BrokerName   string
}

// Fields names the fields.
func (h *SearchOffsetByTimestampRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Name("liteTopic", &h.LiteTopic, Optional)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int64("timestamp", &h.Timestamp, Required)
	v.Name("boundaryType", &h.BoundaryType, Optional)
	v.Name("bname", &h.BrokerName, Optional)
}

// SearchOffsetByTimestampResponse answers SEARCH_OFFSET_BY_TIMESTAMP.
type SearchOffsetByTimestampResponse struct {
	Offset int64
}

// Fields names the fields.
func (h *SearchOffsetByTimestampResponse) Fields(v *Visitor) {
	v.Int64("offset", &h.Offset, Required)
}

// GetMaxOffsetRequest is the header of GET_MAX_OFFSET.
type GetMaxOffsetRequest struct {
	Topic      string
	QueueID    int32
	Committed  Opt[bool]
	BrokerName string
}

// Fields names the fields.
func (h *GetMaxOffsetRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.OptBool("committed", &h.Committed)
	v.Name("bname", &h.BrokerName, Optional)
}

// GetMaxOffsetResponse answers GET_MAX_OFFSET.
type GetMaxOffsetResponse struct {
	Offset int64
}

// Fields names the fields.
func (h *GetMaxOffsetResponse) Fields(v *Visitor) {
	v.Int64("offset", &h.Offset, Required)
}

// GetMinOffsetRequest is the header of GET_MIN_OFFSET.
type GetMinOffsetRequest struct {
	Topic      string
	QueueID    int32
	BrokerName string
}

// Fields names the fields.
func (h *GetMinOffsetRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Name("bname", &h.BrokerName, Optional)
}

// GetMinOffsetResponse answers GET_MIN_OFFSET.
type GetMinOffsetResponse struct {
	Offset int64
}

// Fields names the fields.
func (h *GetMinOffsetResponse) Fields(v *Visitor) {
	v.Int64("offset", &h.Offset, Required)
}

// GetEarliestMsgStoreTimeRequest is the header of GET_EARLIEST_MSG_STORETIME.
type GetEarliestMsgStoreTimeRequest struct {
	Topic      string
	QueueID    int32
	BrokerName string
}

// Fields names the fields.
func (h *GetEarliestMsgStoreTimeRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Name("bname", &h.BrokerName, Optional)
}

// GetEarliestMsgStoreTimeResponse answers GET_EARLIEST_MSG_STORETIME.
type GetEarliestMsgStoreTimeResponse struct {
	Timestamp int64
}

// Fields names the fields.
func (h *GetEarliestMsgStoreTimeResponse) Fields(v *Visitor) {
	v.Int64("timestamp", &h.Timestamp, Required)
}

// InvokeBrokerToResetOffsetRequest is the header of INVOKE_BROKER_TO_RESET_OFFSET.
type InvokeBrokerToResetOffsetRequest struct {
	Group     string
	Topic     string
	QueueID   Opt[int32]
	Offset    Opt[int64]
	Timestamp int64
	IsForce   bool
}

// Fields names the fields.
func (h *InvokeBrokerToResetOffsetRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
	v.Name("topic", &h.Topic, Required)
	v.OptInt32("queueId", &h.QueueID)
	v.OptInt64("offset", &h.Offset)
	v.Int64("timestamp", &h.Timestamp, Required)
	v.Bool("isForce", &h.IsForce, Required)
}

// CloneGroupOffsetRequest is the header of CLONE_GROUP_OFFSET.
type CloneGroupOffsetRequest struct {
	SrcGroup  string
	DestGroup string
	Topic     string
	Offline   bool
}

// Fields names the fields.
func (h *CloneGroupOffsetRequest) Fields(v *Visitor) {
	v.Name("srcGroup", &h.SrcGroup, Required)
	v.Name("destGroup", &h.DestGroup, Required)
	v.Name("topic", &h.Topic, Optional)
	v.Bool("offline", &h.Offline, Optional)
}

// QueryCorrectionOffsetRequest is the header of QUERY_CORRECTION_OFFSET.
type QueryCorrectionOffsetRequest struct {
	FilterGroups string
	CompareGroup string
	Topic        string
}

// Fields names the fields.
func (h *QueryCorrectionOffsetRequest) Fields(v *Visitor) {
	v.Str("filterGroups", &h.FilterGroups, Optional)
	v.Name("compareGroup", &h.CompareGroup, Required)
	v.Name("topic", &h.Topic, Required)
}

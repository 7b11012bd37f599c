package remoting

// QueryMessageRequest is the header of QUERY_MESSAGE.
type QueryMessageRequest struct {
	Topic          string
	Key            string
	MaxNum         int32
	BeginTimestamp int64
	EndTimestamp   int64
	IndexType      string
	LastKey        string
	BrokerName     string
}

// Fields names the fields.
func (h *QueryMessageRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Str("key", &h.Key, Required)
	v.Int32("maxNum", &h.MaxNum, Required)
	v.Int64("beginTimestamp", &h.BeginTimestamp, Required)
	v.Int64("endTimestamp", &h.EndTimestamp, Required)
	v.Name("indexType", &h.IndexType, Optional)
	v.Str("lastKey", &h.LastKey, Optional)
	v.Name("bname", &h.BrokerName, Optional)
}

// QueryMessageResponse answers QUERY_MESSAGE.
type QueryMessageResponse struct {
	IndexLastUpdateTimestamp int64
	IndexLastUpdatePhyoffset int64
}

// Fields names the fields.
func (h *QueryMessageResponse) Fields(v *Visitor) {
	v.Int64("indexLastUpdateTimestamp", &h.IndexLastUpdateTimestamp, Required)
	v.Int64("indexLastUpdatePhyoffset", &h.IndexLastUpdatePhyoffset, Required)
}

// ViewMessageByIDRequest is the header of VIEW_MESSAGE_BY_ID.
type ViewMessageByIDRequest struct {
	Topic      string
	Offset     int64
	BrokerName string
}

// Fields names the fields.
func (h *ViewMessageByIDRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Optional)
	v.Int64("offset", &h.Offset, Required)
	v.Name("bname", &h.BrokerName, Optional)
}

// QueryConsumeQueueRequest is the header of QUERY_CONSUME_QUEUE.
type QueryConsumeQueueRequest struct {
	Topic         string
	QueueID       Opt[int32]
	Index         int64
	Count         int32
	ConsumerGroup string
}

// Fields names the fields.
func (h *QueryConsumeQueueRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Optional)
	v.OptInt32("queueId", &h.QueueID)
	v.Int64("index", &h.Index, Optional)
	v.Int32("count", &h.Count, Optional)
	v.Name("consumerGroup", &h.ConsumerGroup, Optional)
}

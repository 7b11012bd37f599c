package remoting

// SendMessageRequest is the header of SEND_MESSAGE, SEND_MESSAGE_V2, SEND_BATCH_MESSAGE
// and the two SEND_REPLY_MESSAGE codes. V2 says whether its fields go by their one-letter
// names.
type SendMessageRequest struct {
	V2 bool // set before Decode or writing; not a field itself

	ProducerGroup         string
	Topic                 string
	DefaultTopic          string
	DefaultTopicQueueNums int32
	QueueID               int32
	SysFlag               int32
	BornTimestamp         int64
	Flag                  int32
	Properties            string // aliases the frame
	ReconsumeTimes        int32
	UnitMode              bool
	Batch                 bool
	MaxReconsumeTimes     Opt[int32]
	BrokerName            string
}

// Fields names the fields in the order in which Java clients send them.
func (h *SendMessageRequest) Fields(v *Visitor) {
	if h.V2 {
		v.Name("a", &h.ProducerGroup, Required)
		v.Name("b", &h.Topic, Required)
		v.Name("c", &h.DefaultTopic, Required)
		v.Int32("d", &h.DefaultTopicQueueNums, Required)
		v.Int32("e", &h.QueueID, Required)
		v.Int32("f", &h.SysFlag, Required)
		v.Int64("g", &h.BornTimestamp, Required)
		v.Int32("h", &h.Flag, Required)
		v.Ref("i", &h.Properties, Optional)
		v.Int32("j", &h.ReconsumeTimes, Optional)
		v.Bool("k", &h.UnitMode, Optional)
		v.OptInt32("l", &h.MaxReconsumeTimes)
		v.Bool("m", &h.Batch, Optional)
		v.Name("n", &h.BrokerName, Optional)
		return
	}
	v.Name("producerGroup", &h.ProducerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Name("defaultTopic", &h.DefaultTopic, Required)
	v.Int32("defaultTopicQueueNums", &h.DefaultTopicQueueNums, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int32("sysFlag", &h.SysFlag, Required)
	v.Int64("bornTimestamp", &h.BornTimestamp, Required)
	v.Int32("flag", &h.Flag, Required)
	v.Ref("properties", &h.Properties, Optional)
	v.Int32("reconsumeTimes", &h.ReconsumeTimes, Optional)
	v.Bool("unitMode", &h.UnitMode, Optional)
	v.Bool("batch", &h.Batch, Optional)
	v.OptInt32("maxReconsumeTimes", &h.MaxReconsumeTimes)
	v.Name("bname", &h.BrokerName, Optional)
}

// SendMessageResponse answers the send codes; refusals carry Region and TraceOn alone.
type SendMessageResponse struct {
	MsgID         string // offset id; of a batch all of them, joined by commas
	QueueID       int32
	QueueOffset   int64
	TransactionID string // the message's UNIQ_KEY
	BatchUniqID   string
	RecallHandle  string
	Region        string // MSG_REGION
	TraceOn       string // TRACE_ON
}

// Fields names the fields.
func (h *SendMessageResponse) Fields(v *Visitor) {
	v.Str("msgId", &h.MsgID, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int64("queueOffset", &h.QueueOffset, Required)
	v.Str("transactionId", &h.TransactionID, Optional)
	v.Str("batchUniqId", &h.BatchUniqID, Optional)
	v.Str("recallHandle", &h.RecallHandle, Optional)
	v.Name("MSG_REGION", &h.Region, Optional)
	v.Name("TRACE_ON", &h.TraceOn, Optional)
}

// PushReplyMessageRequest is the header of PUSH_REPLY_MESSAGE_TO_CLIENT.
type PushReplyMessageRequest struct {
	ProducerGroup         string
	Topic                 string
	DefaultTopic          string
	DefaultTopicQueueNums int32
	QueueID               int32
	SysFlag               int32
	BornTimestamp         int64
	Flag                  int32
	Properties            string // aliases the frame
	ReconsumeTimes        int32
	UnitMode              bool
	BornHost              string
	StoreHost             string
	StoreTimestamp        int64
}

// Fields names the fields.
func (h *PushReplyMessageRequest) Fields(v *Visitor) {
	v.Name("producerGroup", &h.ProducerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Name("defaultTopic", &h.DefaultTopic, Required)
	v.Int32("defaultTopicQueueNums", &h.DefaultTopicQueueNums, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int32("sysFlag", &h.SysFlag, Required)
	v.Int64("bornTimestamp", &h.BornTimestamp, Required)
	v.Int32("flag", &h.Flag, Required)
	v.Ref("properties", &h.Properties, Optional)
	v.Int32("reconsumeTimes", &h.ReconsumeTimes, Optional)
	v.Bool("unitMode", &h.UnitMode, Optional)
	v.Name("bornHost", &h.BornHost, Required)
	v.Name("storeHost", &h.StoreHost, Required)
	v.Int64("storeTimestamp", &h.StoreTimestamp, Required)
}

// ConsumerSendMsgBackRequest is the header of CONSUMER_SEND_MSG_BACK.
type ConsumerSendMsgBackRequest struct {
	Offset            int64
	Group             string
	DelayLevel        int32
	OriginMsgID       string
	OriginTopic       string
	UnitMode          bool
	MaxReconsumeTimes Opt[int32]
	BrokerName        string
}

// Fields names the fields.
func (h *ConsumerSendMsgBackRequest) Fields(v *Visitor) {
	v.Int64("offset", &h.Offset, Required)
	v.Name("group", &h.Group, Required)
	v.Int32("delayLevel", &h.DelayLevel, Required)
	v.Str("originMsgId", &h.OriginMsgID, Optional)
	v.Name("originTopic", &h.OriginTopic, Optional)
	v.Bool("unitMode", &h.UnitMode, Optional)
	v.OptInt32("maxReconsumeTimes", &h.MaxReconsumeTimes)
	v.Name("bname", &h.BrokerName, Optional)
}

// RecallMessageRequest is the header of RECALL_MESSAGE.
type RecallMessageRequest struct {
	ProducerGroup string
	Topic         string
	RecallHandle  string
}

// Fields names the fields.
func (h *RecallMessageRequest) Fields(v *Visitor) {
	v.Name("producerGroup", &h.ProducerGroup, Optional)
	v.Name("topic", &h.Topic, Required)
	v.Str("recallHandle", &h.RecallHandle, Required)
}

// RecallMessageResponse answers RECALL_MESSAGE.
type RecallMessageResponse struct{ MsgID string }

// Fields names the fields.
func (h *RecallMessageResponse) Fields(v *Visitor) { v.Str("msgId", &h.MsgID, Required) }

package remoting

// PopLiteMessageRequest is the header of POP_LITE_MESSAGE.
type PopLiteMessageRequest struct {
	ClientID      string
	ConsumerGroup string
	Topic         string
	MaxMsgNum     int32
	InvisibleTime int64
	PollTime      int64
	BornTime      int64
	AttemptID     string
}

// Fields names the fields.
func (h *PopLiteMessageRequest) Fields(v *Visitor) {
	v.Name("clientId", &h.ClientID, Required)
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("maxMsgNum", &h.MaxMsgNum, Required)
	v.Int64("invisibleTime", &h.InvisibleTime, Required)
	v.Int64("pollTime", &h.PollTime, Required)
	v.Int64("bornTime", &h.BornTime, Required)
	v.Str("attemptId", &h.AttemptID, Optional)
}

// PopLiteMessageResponse answers POP_LITE_MESSAGE.
type PopLiteMessageResponse struct {
	PopTime         int64
	InvisibleTime   int64
	ReviveQid       int32
	StartOffsetInfo string
	MsgOffsetInfo   string
	OrderCountInfo  string
}

// Fields names the fields.
func (h *PopLiteMessageResponse) Fields(v *Visitor) {
	v.Int64("popTime", &h.PopTime, Required)
	v.Int64("invisibleTime", &h.InvisibleTime, Required)
	v.Int32("reviveQid", &h.ReviveQid, Required)
	v.Str("startOffsetInfo", &h.StartOffsetInfo, Optional)
	v.Str("msgOffsetInfo", &h.MsgOffsetInfo, Optional)
	v.Str("orderCountInfo", &h.OrderCountInfo, Optional)
}

// NotifyUnsubscribeLiteRequest is the header of NOTIFY_UNSUBSCRIBE_LITE.
type NotifyUnsubscribeLiteRequest struct {
	LiteTopic     string
	ConsumerGroup string
	ClientID      string
}

// Fields names the fields.
func (h *NotifyUnsubscribeLiteRequest) Fields(v *Visitor) {
	v.Name("liteTopic", &h.LiteTopic, Required)
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("clientId", &h.ClientID, Required)
}

// GetParentTopicInfoRequest is the header of GET_PARENT_TOPIC_INFO.
type GetParentTopicInfoRequest struct {
	Topic string
}

// Fields names the fields.
func (h *GetParentTopicInfoRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
}

// GetLiteTopicInfoRequest is the header of GET_LITE_TOPIC_INFO.
type GetLiteTopicInfoRequest struct {
	ParentTopic string
	LiteTopic   string
}

// Fields names the fields.
func (h *GetLiteTopicInfoRequest) Fields(v *Visitor) {
	v.Name("parentTopic", &h.ParentTopic, Optional)
	v.Name("liteTopic", &h.LiteTopic, Optional)
}

// GetLiteClientInfoRequest is the header of GET_LITE_CLIENT_INFO.
type GetLiteClientInfoRequest struct {
	ParentTopic string
	Group       string
	ClientID    string
	MaxCount    int32
}

// Fields names the fields.
func (h *GetLiteClientInfoRequest) Fields(v *Visitor) {
	v.Name("parentTopic", &h.ParentTopic, Optional)
	v.Name("group", &h.Group, Optional)
	v.Name("clientId", &h.ClientID, Optional)
	v.Int32("maxCount", &h.MaxCount, Optional)
}

// GetLiteGroupInfoRequest is the header of GET_LITE_GROUP_INFO.
type GetLiteGroupInfoRequest struct {
	Group     string
	LiteTopic string
	TopK      int32
}

// Fields names the fields.
func (h *GetLiteGroupInfoRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
	v.Name("liteTopic", &h.LiteTopic, Optional)
	v.Int32("topK", &h.TopK, Optional)
}

// TriggerLiteDispatchRequest is the header of TRIGGER_LITE_DISPATCH.
type TriggerLiteDispatchRequest struct {
	Group    string
	ClientID string
}

// Fields names the fields.
func (h *TriggerLiteDispatchRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
	v.Name("clientId", &h.ClientID, Optional)
}

package remoting

// PopMessageRequest is the header of POP_MESSAGE.
type PopMessageRequest struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
	MaxMsgNums    int32
	InvisibleTime int64
	PollTime      int64
	BornTime      int64
	InitMode      int32
	ExpType       string
	Exp           string
	Order         bool
	AttemptID     string
	BrokerName    string
}

// Fields names the fields.
func (h *PopMessageRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int32("maxMsgNums", &h.MaxMsgNums, Required)
	v.Int64("invisibleTime", &h.InvisibleTime, Required)
	v.Int64("pollTime", &h.PollTime, Required)
	v.Int64("bornTime", &h.BornTime, Required)
	v.Int32("initMode", &h.InitMode, Required)
	v.Name("expType", &h.ExpType, Optional)
	v.Str("exp", &h.Exp, Optional)
	v.Bool("order", &h.Order, Optional)
	v.Str("attemptId", &h.AttemptID, Optional)
	v.Name("bname", &h.BrokerName, Optional)
}

// PopMessageResponse answers POP_MESSAGE.
type PopMessageResponse struct {
	PopTime         int64
	InvisibleTime   int64
	ReviveQid       int32
	RestNum         int64
	StartOffsetInfo string
	MsgOffsetInfo   string
	OrderCountInfo  string
}

// Fields names the fields.
func (h *PopMessageResponse) Fields(v *Visitor) {
	v.Int64("popTime", &h.PopTime, Required)
	v.Int64("invisibleTime", &h.InvisibleTime, Required)
	v.Int32("reviveQid", &h.ReviveQid, Required)
	v.Int64("restNum", &h.RestNum, Required)
	v.Str("startOffsetInfo", &h.StartOffsetInfo, Optional)
	v.Str("msgOffsetInfo", &h.MsgOffsetInfo, Optional)
	v.Str("orderCountInfo", &h.OrderCountInfo, Optional)
}

// AckMessageRequest is the header of ACK_MESSAGE.
type AckMessageRequest struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
	ExtraInfo     string
	Offset        int64
	LiteTopic     string
	BrokerName    string
}

// Fields names the fields.
func (h *AckMessageRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Str("extraInfo", &h.ExtraInfo, Required)
	v.Int64("offset", &h.Offset, Required)
	v.Name("liteTopic", &h.LiteTopic, Optional)
	v.Name("bname", &h.BrokerName, Optional)
}

// PeekMessageRequest is the header of PEEK_MESSAGE.
type PeekMessageRequest struct {
	Topic         string
	QueueID       int32
	MaxMsgNums    int32
	ConsumerGroup string
	BrokerName    string
}

// Fields names the fields.
func (h *PeekMessageRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int32("maxMsgNums", &h.MaxMsgNums, Required)
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("bname", &h.BrokerName, Optional)
}

// ChangeMessageInvisibleTimeRequest is the header of CHANGE_MESSAGE_INVISIBLETIME.
type ChangeMessageInvisibleTimeRequest struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
	ExtraInfo     string
	Offset        int64
	InvisibleTime int64
	LiteTopic     string
	Suspend       bool
	BrokerName    string
}

// Fields names the fields.
func (h *ChangeMessageInvisibleTimeRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Str("extraInfo", &h.ExtraInfo, Required)
	v.Int64("offset", &h.Offset, Required)
	v.Int64("invisibleTime", &h.InvisibleTime, Required)
	v.Name("liteTopic", &h.LiteTopic, Optional)
	v.Bool("suspend", &h.Suspend, Optional)
	v.Name("bname", &h.BrokerName, Optional)
}

// ChangeMessageInvisibleTimeResponse answers CHANGE_MESSAGE_INVISIBLETIME.
type ChangeMessageInvisibleTimeResponse struct {
	PopTime       int64
	InvisibleTime int64
	ReviveQid     int32
}

// Fields names the fields.
func (h *ChangeMessageInvisibleTimeResponse) Fields(v *Visitor) {
	v.Int64("popTime", &h.PopTime, Required)
	v.Int64("invisibleTime", &h.InvisibleTime, Required)
	v.Int32("reviveQid", &h.ReviveQid, Required)
}

// NotificationRequest is the header of NOTIFICATION.
type NotificationRequest struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
	PollTime      int64
	BornTime      int64
	Order         bool
	AttemptID     string
	ExpType       string
	Exp           string
	BrokerName    string
}

// Fields names the fields.
func (h *NotificationRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int64("pollTime", &h.PollTime, Required)
	v.Int64("bornTime", &h.BornTime, Required)
	v.Bool("order", &h.Order, Optional)
	v.Str("attemptId", &h.AttemptID, Optional)
	v.Name("expType", &h.ExpType, Optional)
	v.Str("exp", &h.Exp, Optional)
	v.Name("bname", &h.BrokerName, Optional)
}

// NotificationResponse answers NOTIFICATION.
type NotificationResponse struct {
	HAsMsg      bool
	PollingFull bool
}

// Fields names the fields.
func (h *NotificationResponse) Fields(v *Visitor) {
	v.Bool("hasMsg", &h.HAsMsg, Required)
	v.Bool("pollingFull", &h.PollingFull, Optional)
}

// PollingInfoRequest is the header of POLLING_INFO.
type PollingInfoRequest struct {
	ConsumerGroup string
	Topic         string
	QueueID       int32
	BrokerName    string
}

// Fields names the fields.
func (h *PollingInfoRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Name("bname", &h.BrokerName, Optional)
}

// PollingInfoResponse answers POLLING_INFO.
type PollingInfoResponse struct {
	PollingNum int32
}

// Fields names the fields.
func (h *PollingInfoResponse) Fields(v *Visitor) {
	v.Int32("pollingNum", &h.PollingNum, Required)
}

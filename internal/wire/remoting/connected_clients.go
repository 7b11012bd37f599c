package remoting

// UnregisterClientRequest is the header of UNREGISTER_CLIENT.
type UnregisterClientRequest struct {
	ClientID      string
	ProducerGroup string
	ConsumerGroup string
}

// Fields names the fields.
func (h *UnregisterClientRequest) Fields(v *Visitor) {
	v.Name("clientID", &h.ClientID, Required)
	v.Name("producerGroup", &h.ProducerGroup, Optional)
	v.Name("consumerGroup", &h.ConsumerGroup, Optional)
}

// GetConsumerListByGroupRequest is the header of GET_CONSUMER_LIST_BY_GROUP.
type GetConsumerListByGroupRequest struct {
	ConsumerGroup string
}

// Fields names the fields.
func (h *GetConsumerListByGroupRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
}

// NotifyConsumerIDsChangedRequest is the header of NOTIFY_CONSUMER_IDS_CHANGED.
type NotifyConsumerIDsChangedRequest struct {
	ConsumerGroup string
}

// Fields names the fields.
func (h *NotifyConsumerIDsChangedRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
}

// GetConsumerConnectionListRequest is the header of GET_CONSUMER_CONNECTION_LIST.
type GetConsumerConnectionListRequest struct {
	ConsumerGroup string
}

// Fields names the fields.
func (h *GetConsumerConnectionListRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
}

// GetProducerConnectionListRequest is the header of GET_PRODUCER_CONNECTION_LIST.
type GetProducerConnectionListRequest struct {
	ProducerGroup string
}

// Fields names the fields.
func (h *GetProducerConnectionListRequest) Fields(v *Visitor) {
	v.Name("producerGroup", &h.ProducerGroup, Required)
}

// GetConsumerRunningInfoRequest is the header of GET_CONSUMER_RUNNING_INFO.
type GetConsumerRunningInfoRequest struct {
	ConsumerGroup string
	ClientID      string
	JstackEnable  bool
}

// Fields names the fields.
func (h *GetConsumerRunningInfoRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("clientId", &h.ClientID, Required)
	v.Bool("jstackEnable", &h.JstackEnable, Optional)
}

// ConsumeMessageDirectlyRequest is the header of CONSUME_MESSAGE_DIRECTLY.
type ConsumeMessageDirectlyRequest struct {
	ConsumerGroup string
	ClientID      string
	MsgID         string
	BrokerName    string
	Topic         string
	TopicSysFlag  int32
	GroupSysFlag  int32
}

// Fields names the fields.
func (h *ConsumeMessageDirectlyRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("clientId", &h.ClientID, Optional)
	v.Str("msgId", &h.MsgID, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
	v.Name("topic", &h.Topic, Optional)
	v.Int32("topicSysFlag", &h.TopicSysFlag, Optional)
	v.Int32("groupSysFlag", &h.GroupSysFlag, Optional)
}

// InvokeBrokerToGetConsumerStatusRequest is the header of INVOKE_BROKER_TO_GET_CONSUMER_STATUS.
type InvokeBrokerToGetConsumerStatusRequest struct {
	Topic      string
	Group      string
	ClientAddr string
}

// Fields names the fields.
func (h *InvokeBrokerToGetConsumerStatusRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Name("group", &h.Group, Required)
	v.Name("clientAddr", &h.ClientAddr, Optional)
}

// HeartbeatResponse answers HEART_BEAT.
type HeartbeatResponse struct {
	SupportsV2 bool // heartbeats without subscriptions are understood
	SubChanged bool // the client is to send its subscriptions again
}

// Fields names the fields.
func (h *HeartbeatResponse) Fields(v *Visitor) {
	v.Bool("IS_SUPPORT_HEART_BEAT_V2", &h.SupportsV2, Required)
	v.Bool("IS_SUB_CHANGE", &h.SubChanged, Required)
}

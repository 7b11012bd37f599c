package remoting

// GetAllSubscriptionGroupConfigRequest is the header of GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
type GetAllSubscriptionGroupConfigRequest struct {
	GroupSeq    int32
	DataVersion string
	MaxGroupNum int32
}

// Fields names the fields.
func (h *GetAllSubscriptionGroupConfigRequest) Fields(v *Visitor) {
	v.Int32("groupSeq", &h.GroupSeq, Optional) // clients up to 5.3 send no header at all
	v.Str("dataVersion", &h.DataVersion, Optional)
	v.Int32("maxGroupNum", &h.MaxGroupNum, Optional)
}

// GetAllSubscriptionGroupConfigResponse answers GET_ALL_SUBSCRIPTIONGROUP_CONFIG.
type GetAllSubscriptionGroupConfigResponse struct {
	TotalGroupNum int32
}

// Fields names the fields.
func (h *GetAllSubscriptionGroupConfigResponse) Fields(v *Visitor) {
	v.Int32("totalGroupNum", &h.TotalGroupNum, Required)
}

// GetSubscriptionGroupConfigRequest is the header of GET_SUBSCRIPTIONGROUP_CONFIG.
type GetSubscriptionGroupConfigRequest struct {
	Group string
}

// Fields names the fields.
func (h *GetSubscriptionGroupConfigRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
}

// DeleteSubscriptionGroupRequest is the header of DELETE_SUBSCRIPTIONGROUP.
type DeleteSubscriptionGroupRequest struct {
	GroupName   string
	CleanOffset bool
}

// Fields names the fields.
func (h *DeleteSubscriptionGroupRequest) Fields(v *Visitor) {
	v.Name("groupName", &h.GroupName, Required)
	v.Bool("cleanOffset", &h.CleanOffset, Optional)
}

// UpdateAndGetGroupForbiddenRequest is the header of UPDATE_AND_GET_GROUP_FORBIDDEN.
type UpdateAndGetGroupForbiddenRequest struct {
	Group    string
	Topic    string
	Readable Opt[bool] // absent: only asks
}

// Fields names the fields.
func (h *UpdateAndGetGroupForbiddenRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
	v.Name("topic", &h.Topic, Required)
	v.OptBool("readable", &h.Readable)
}

// GetConsumeStatsRequest is the header of GET_CONSUME_STATS.
type GetConsumeStatsRequest struct {
	ConsumerGroup string
	Topic         string
	TopicList     string
}

// Fields names the fields.
func (h *GetConsumeStatsRequest) Fields(v *Visitor) {
	v.Name("consumerGroup", &h.ConsumerGroup, Required)
	v.Name("topic", &h.Topic, Optional)
	v.Str("topicList", &h.TopicList, Optional)
}

// GetBrokerConsumeStatsRequest is the header of GET_BROKER_CONSUME_STATS.
type GetBrokerConsumeStatsRequest struct {
	IsOrder bool
}

// Fields names the fields.
func (h *GetBrokerConsumeStatsRequest) Fields(v *Visitor) {
	v.Bool("isOrder", &h.IsOrder, Required)
}

// QueryConsumeTimeSpanRequest is the header of QUERY_CONSUME_TIME_SPAN.
type QueryConsumeTimeSpanRequest struct {
	Topic string
	Group string
}

// Fields names the fields.
func (h *QueryConsumeTimeSpanRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Name("group", &h.Group, Required)
}

// QueryTopicsByConsumerRequest is the header of QUERY_TOPICS_BY_CONSUMER.
type QueryTopicsByConsumerRequest struct {
	Group string
}

// Fields names the fields.
func (h *QueryTopicsByConsumerRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
}

// QuerySubscriptionByConsumerRequest is the header of QUERY_SUBSCRIPTION_BY_CONSUMER.
type QuerySubscriptionByConsumerRequest struct {
	Group string
	Topic string
}

// Fields names the fields.
func (h *QuerySubscriptionByConsumerRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
	v.Name("topic", &h.Topic, Optional)
}

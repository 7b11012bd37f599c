package remoting

// PutKVConfigRequest is the header of PUT_KV_CONFIG.
type PutKVConfigRequest struct {
	Namespace string
	Key       string
	Value     string
}

// Fields names the fields.
func (h *PutKVConfigRequest) Fields(v *Visitor) {
	v.Name("namespace", &h.Namespace, Required)
	v.Str("key", &h.Key, Required)
	v.Str("value", &h.Value, Required)
}

// GetKVConfigRequest is the header of GET_KV_CONFIG.
type GetKVConfigRequest struct {
	Namespace string
	Key       string
}

// Fields names the fields.
func (h *GetKVConfigRequest) Fields(v *Visitor) {
	v.Name("namespace", &h.Namespace, Required)
	v.Str("key", &h.Key, Required)
}

// GetKVConfigResponse answers GET_KV_CONFIG.
type GetKVConfigResponse struct {
	Value string
}

// Fields names the fields.
func (h *GetKVConfigResponse) Fields(v *Visitor) {
	v.Str("value", &h.Value, Optional)
}

// DeleteKVConfigRequest is the header of DELETE_KV_CONFIG.
type DeleteKVConfigRequest struct {
	Namespace string
	Key       string
}

// Fields names the fields.
func (h *DeleteKVConfigRequest) Fields(v *Visitor) {
	v.Name("namespace", &h.Namespace, Required)
	v.Str("key", &h.Key, Required)
}

// RegisterBrokerRequest is the header of REGISTER_BROKER.
type RegisterBrokerRequest struct {
	BrokerName             string
	BrokerAddr             string
	ClusterName            string
	HAServerAddr           string
	BrokerID               int64
	HeartbeatTimeoutMillis int64
	EnableActingMaster     bool
	Compressed             bool
	BodyCrc32              int32
}

// Fields names the fields.
func (h *RegisterBrokerRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Required)
	v.Name("brokerAddr", &h.BrokerAddr, Required)
	v.Name("clusterName", &h.ClusterName, Required)
	v.Name("haServerAddr", &h.HAServerAddr, Required)
	v.Int64("brokerId", &h.BrokerID, Required)
	v.Int64("heartbeatTimeoutMillis", &h.HeartbeatTimeoutMillis, Optional)
	v.Bool("enableActingMaster", &h.EnableActingMaster, Optional)
	v.Bool("compressed", &h.Compressed, Optional)
	v.Int32("bodyCrc32", &h.BodyCrc32, Optional)
}

// RegisterBrokerResponse answers REGISTER_BROKER.
type RegisterBrokerResponse struct {
	HAServerAddr string
	MasterAddr   string
}

// Fields names the fields.
func (h *RegisterBrokerResponse) Fields(v *Visitor) {
	v.Name("haServerAddr", &h.HAServerAddr, Optional)
	v.Name("masterAddr", &h.MasterAddr, Optional)
}

// UnregisterBrokerRequest is the header of UNREGISTER_BROKER.
type UnregisterBrokerRequest struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerID    int64
}

// Fields names the fields.
func (h *UnregisterBrokerRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Required)
	v.Name("brokerAddr", &h.BrokerAddr, Required)
	v.Name("clusterName", &h.ClusterName, Required)
	v.Int64("brokerId", &h.BrokerID, Required)
}

// GetRouteInfoByTopicRequest is the header of GET_ROUTEINFO_BY_TOPIC.
type GetRouteInfoByTopicRequest struct {
	Topic                  string
	AcceptStandardJsonOnly bool
}

// Fields names the fields.
func (h *GetRouteInfoByTopicRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Bool("acceptStandardJsonOnly", &h.AcceptStandardJsonOnly, Optional)
}

// WipeWritePermOfBrokerRequest is the header of WIPE_WRITE_PERM_OF_BROKER.
type WipeWritePermOfBrokerRequest struct {
	BrokerName string
}

// Fields names the fields.
func (h *WipeWritePermOfBrokerRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Required)
}

// WipeWritePermOfBrokerResponse answers WIPE_WRITE_PERM_OF_BROKER.
type WipeWritePermOfBrokerResponse struct {
	WipeTopicCount int32
}

// Fields names the fields.
func (h *WipeWritePermOfBrokerResponse) Fields(v *Visitor) {
	v.Int32("wipeTopicCount", &h.WipeTopicCount, Required)
}

// AddWritePermOfBrokerRequest is the header of ADD_WRITE_PERM_OF_BROKER.
type AddWritePermOfBrokerRequest struct {
	BrokerName string
}

// Fields names the fields.
func (h *AddWritePermOfBrokerRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Required)
}

// AddWritePermOfBrokerResponse answers ADD_WRITE_PERM_OF_BROKER.
type AddWritePermOfBrokerResponse struct {
	AddTopicCount int32
}

// Fields names the fields.
func (h *AddWritePermOfBrokerResponse) Fields(v *Visitor) {
	v.Int32("addTopicCount", &h.AddTopicCount, Required)
}

// DeleteTopicInNamesrvRequest is the header of DELETE_TOPIC_IN_NAMESRV.
type DeleteTopicInNamesrvRequest struct {
	Topic       string
	ClusterName string
}

// Fields names the fields.
func (h *DeleteTopicInNamesrvRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
	v.Name("clusterName", &h.ClusterName, Optional)
}

// RegisterTopicInNamesrvRequest is the header of REGISTER_TOPIC_IN_NAMESRV.
type RegisterTopicInNamesrvRequest struct {
	Topic string
}

// Fields names the fields.
func (h *RegisterTopicInNamesrvRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Required)
}

// GetKVListByNamespaceRequest is the header of GET_KVLIST_BY_NAMESPACE.
type GetKVListByNamespaceRequest struct {
	Namespace string
}

// Fields names the fields.
func (h *GetKVListByNamespaceRequest) Fields(v *Visitor) {
	v.Name("namespace", &h.Namespace, Required)
}

// GetTopicsByClusterRequest is the header of GET_TOPICS_BY_CLUSTER.
type GetTopicsByClusterRequest struct {
	Cluster string
}

// Fields names the fields.
func (h *GetTopicsByClusterRequest) Fields(v *Visitor) {
	v.Name("cluster", &h.Cluster, Required)
}

// QueryDataVersionRequest is the header of QUERY_DATA_VERSION.
type QueryDataVersionRequest struct {
	BrokerName  string
	BrokerAddr  string
	ClusterName string
	BrokerID    int64
}

// Fields names the fields.
func (h *QueryDataVersionRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Required)
	v.Name("brokerAddr", &h.BrokerAddr, Required)
	v.Name("clusterName", &h.ClusterName, Required)
	v.Int64("brokerId", &h.BrokerID, Required)
}

// QueryDataVersionResponse answers QUERY_DATA_VERSION.
type QueryDataVersionResponse struct {
	Changed bool
}

// Fields names the fields.
func (h *QueryDataVersionResponse) Fields(v *Visitor) {
	v.Bool("changed", &h.Changed, Required)
}

// GetBrokerMemberGroupRequest is the header of GET_BROKER_MEMBER_GROUP.
type GetBrokerMemberGroupRequest struct {
	ClusterName string
	BrokerName  string
}

// Fields names the fields.
func (h *GetBrokerMemberGroupRequest) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Required)
	v.Name("brokerName", &h.BrokerName, Required)
}

// BrokerHeartbeatRequest is the header of BROKER_HEARTBEAT.
type BrokerHeartbeatRequest struct {
	ClusterName           string
	BrokerAddr            string
	BrokerName            string
	BrokerID              int64
	Epoch                 int32
	MaxOffset             int64
	ConfirmOffset         int64
	HeartbeatTimeoutMills int64
	ElectionPriority      int32
}

// Fields names the fields.
func (h *BrokerHeartbeatRequest) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Required)
	v.Name("brokerAddr", &h.BrokerAddr, Required)
	v.Name("brokerName", &h.BrokerName, Required)
	v.Int64("brokerId", &h.BrokerID, Optional)
	v.Int32("epoch", &h.Epoch, Optional)
	v.Int64("maxOffset", &h.MaxOffset, Optional)
	v.Int64("confirmOffset", &h.ConfirmOffset, Optional)
	v.Int64("heartbeatTimeoutMills", &h.HeartbeatTimeoutMills, Optional)
	v.Int32("electionPriority", &h.ElectionPriority, Optional)
}

// NotifyMinBrokerIDChangeRequest is the header of NOTIFY_MIN_BROKER_ID_CHANGE.
type NotifyMinBrokerIDChangeRequest struct {
	MinBrokerID       int64
	BrokerName        string
	MinBrokerAddr     string
	OfflineBrokerAddr string
	HABrokerAddr      string
}

// Fields names the fields.
func (h *NotifyMinBrokerIDChangeRequest) Fields(v *Visitor) {
	v.Int64("minBrokerId", &h.MinBrokerID, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
	v.Name("minBrokerAddr", &h.MinBrokerAddr, Optional)
	v.Name("offlineBrokerAddr", &h.OfflineBrokerAddr, Optional)
	v.Name("haBrokerAddr", &h.HABrokerAddr, Optional)
}

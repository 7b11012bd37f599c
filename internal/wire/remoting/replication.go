package remoting

// ExchangeBrokerHAInfoRequest is the header of EXCHANGE_BROKER_HA_INFO.
type ExchangeBrokerHAInfoRequest struct {
	MasterHAAddress   string
	MasterFlushOffset int64
	MasterAddress     string
}

// Fields names the fields.
func (h *ExchangeBrokerHAInfoRequest) Fields(v *Visitor) {
	v.Name("masterHaAddress", &h.MasterHAAddress, Optional)
	v.Int64("masterFlushOffset", &h.MasterFlushOffset, Optional)
	v.Name("masterAddress", &h.MasterAddress, Optional)
}

// ExchangeBrokerHAInfoResponse answers EXCHANGE_BROKER_HA_INFO.
type ExchangeBrokerHAInfoResponse struct {
	MasterHAAddress   string
	MasterFlushOffset int64
	MasterAddress     string
}

// Fields names the fields.
func (h *ExchangeBrokerHAInfoResponse) Fields(v *Visitor) {
	v.Name("masterHaAddress", &h.MasterHAAddress, Optional)
	v.Int64("masterFlushOffset", &h.MasterFlushOffset, Optional)
	v.Name("masterAddress", &h.MasterAddress, Optional)
}

// ResetMasterFlushOffsetRequest is the header of RESET_MASTER_FLUSH_OFFSET.
type ResetMasterFlushOffsetRequest struct {
	MasterFlushOffset int64
}

// Fields names the fields.
func (h *ResetMasterFlushOffsetRequest) Fields(v *Visitor) {
	v.Int64("masterFlushOffset", &h.MasterFlushOffset, Required)
}

// ControllerAlterSyncStateSetRequest is the header of CONTROLLER_ALTER_SYNC_STATE_SET.
type ControllerAlterSyncStateSetRequest struct {
	BrokerName     string
	MasterBrokerID int64
	MasterEpoch    int32
	InvokeTime     int64
}

// Fields names the fields.
func (h *ControllerAlterSyncStateSetRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Optional)
	v.Int64("masterBrokerId", &h.MasterBrokerID, Optional)
	v.Int32("masterEpoch", &h.MasterEpoch, Optional)
	v.Int64("invokeTime", &h.InvokeTime, Optional)
}

// ControllerAlterSyncStateSetResponse answers CONTROLLER_ALTER_SYNC_STATE_SET.
type ControllerAlterSyncStateSetResponse struct {
	NewSyncStateSetEpoch int32
}

// Fields names the fields.
func (h *ControllerAlterSyncStateSetResponse) Fields(v *Visitor) {
	v.Int32("newSyncStateSetEpoch", &h.NewSyncStateSetEpoch, Optional)
}

// ControllerElectMasterRequest is the header of CONTROLLER_ELECT_MASTER.
type ControllerElectMasterRequest struct {
	ClusterName    string
	BrokerName     string
	BrokerID       int64
	DesignateElect bool
	InvokeTime     int64
}

// Fields names the fields.
func (h *ControllerElectMasterRequest) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Required)
	v.Name("brokerName", &h.BrokerName, Required)
	v.Int64("brokerId", &h.BrokerID, Required)
	v.Bool("designateElect", &h.DesignateElect, Required)
	v.Int64("invokeTime", &h.InvokeTime, Optional)
}

// ControllerElectMasterResponse answers CONTROLLER_ELECT_MASTER.
type ControllerElectMasterResponse struct {
	MasterBrokerID    int64
	MasterAddress     string
	MasterEpoch       int32
	SyncStateSetEpoch int32
}

// Fields names the fields.
func (h *ControllerElectMasterResponse) Fields(v *Visitor) {
	v.Int64("masterBrokerId", &h.MasterBrokerID, Optional)
	v.Name("masterAddress", &h.MasterAddress, Optional)
	v.Int32("masterEpoch", &h.MasterEpoch, Optional)
	v.Int32("syncStateSetEpoch", &h.SyncStateSetEpoch, Optional)
}

// ControllerRegisterBrokerRequest is the header of CONTROLLER_REGISTER_BROKER.
type ControllerRegisterBrokerRequest struct {
	ClusterName   string
	BrokerName    string
	BrokerID      int64
	BrokerAddress string
	InvokeTime    int64
}

// Fields names the fields.
func (h *ControllerRegisterBrokerRequest) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
	v.Int64("brokerId", &h.BrokerID, Optional)
	v.Name("brokerAddress", &h.BrokerAddress, Optional)
	v.Int64("invokeTime", &h.InvokeTime, Optional)
}

// ControllerRegisterBrokerResponse answers CONTROLLER_REGISTER_BROKER.
type ControllerRegisterBrokerResponse struct {
	ClusterName       string
	BrokerName        string
	MasterBrokerID    int64
	MasterAddress     string
	MasterEpoch       int32
	SyncStateSetEpoch int32
}

// Fields names the fields.
func (h *ControllerRegisterBrokerResponse) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
	v.Int64("masterBrokerId", &h.MasterBrokerID, Optional)
	v.Name("masterAddress", &h.MasterAddress, Optional)
	v.Int32("masterEpoch", &h.MasterEpoch, Optional)
	v.Int32("syncStateSetEpoch", &h.SyncStateSetEpoch, Optional)
}

// ControllerGetReplicaInfoRequest is the header of CONTROLLER_GET_REPLICA_INFO.
type ControllerGetReplicaInfoRequest struct {
	BrokerName string
}

// Fields names the fields.
func (h *ControllerGetReplicaInfoRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Optional)
}

// ControllerGetReplicaInfoResponse answers CONTROLLER_GET_REPLICA_INFO.
type ControllerGetReplicaInfoResponse struct {
	MasterBrokerID int64
	MasterAddress  string
	MasterEpoch    int32
}

// Fields names the fields.
func (h *ControllerGetReplicaInfoResponse) Fields(v *Visitor) {
	v.Int64("masterBrokerId", &h.MasterBrokerID, Optional)
	v.Name("masterAddress", &h.MasterAddress, Optional)
	v.Int32("masterEpoch", &h.MasterEpoch, Optional)
}

// NotifyBrokerRoleChangedRequest is the header of NOTIFY_BROKER_ROLE_CHANGED.
type NotifyBrokerRoleChangedRequest struct {
	MasterAddress     string
	MasterEpoch       int32
	SyncStateSetEpoch int32
	MasterBrokerID    int64
}

// Fields names the fields.
func (h *NotifyBrokerRoleChangedRequest) Fields(v *Visitor) {
	v.Name("masterAddress", &h.MasterAddress, Optional)
	v.Int32("masterEpoch", &h.MasterEpoch, Optional)
	v.Int32("syncStateSetEpoch", &h.SyncStateSetEpoch, Optional)
	v.Int64("masterBrokerId", &h.MasterBrokerID, Optional)
}

// CleanBrokerDataRequest is the header of CLEAN_BROKER_DATA.
type CleanBrokerDataRequest struct {
	ClusterName                string
	BrokerName                 string
	BrokerControllerIdsToClean string
	IsCleanLivingBroker        bool
	InvokeTime                 int64
}

// Fields names the fields.
func (h *CleanBrokerDataRequest) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Optional)
	v.Name("brokerName", &h.BrokerName, Required)
	v.Str("brokerControllerIdsToClean", &h.BrokerControllerIdsToClean, Optional)
	v.Bool("isCleanLivingBroker", &h.IsCleanLivingBroker, Optional)
	v.Int64("invokeTime", &h.InvokeTime, Optional)
}

// ControllerGetNextBrokerIDRequest is the header of CONTROLLER_GET_NEXT_BROKER_ID.
type ControllerGetNextBrokerIDRequest struct {
	ClusterName string
	BrokerName  string
}

// Fields names the fields.
func (h *ControllerGetNextBrokerIDRequest) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
}

// ControllerGetNextBrokerIDResponse answers CONTROLLER_GET_NEXT_BROKER_ID.
type ControllerGetNextBrokerIDResponse struct {
	ClusterName  string
	BrokerName   string
	NextBrokerID int64
}

// Fields names the fields.
func (h *ControllerGetNextBrokerIDResponse) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
	v.Int64("nextBrokerId", &h.NextBrokerID, Optional)
}

// ControllerApplyBrokerIDRequest is the header of CONTROLLER_APPLY_BROKER_ID.
type ControllerApplyBrokerIDRequest struct {
	ClusterName       string
	BrokerName        string
	AppliedBrokerID   int64
	RegisterCheckCode string
}

// Fields names the fields.
func (h *ControllerApplyBrokerIDRequest) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
	v.Int64("appliedBrokerId", &h.AppliedBrokerID, Optional)
	v.Str("registerCheckCode", &h.RegisterCheckCode, Optional)
}

// ControllerApplyBrokerIDResponse answers CONTROLLER_APPLY_BROKER_ID.
type ControllerApplyBrokerIDResponse struct {
	ClusterName string
	BrokerName  string
}

// Fields names the fields.
func (h *ControllerApplyBrokerIDResponse) Fields(v *Visitor) {
	v.Name("clusterName", &h.ClusterName, Optional)
	v.Name("brokerName", &h.BrokerName, Optional)
}

// ControllerGetMetadataInfoResponse answers CONTROLLER_GET_METADATA_INFO.
type ControllerGetMetadataInfoResponse struct {
	Group                   string
	ControllerLeaderID      string
	ControllerLeaderAddress string
	IsLeader                bool
	Peers                   string
}

// Fields names the fields.
func (h *ControllerGetMetadataInfoResponse) Fields(v *Visitor) {
	v.Name("group", &h.Group, Optional)
	v.Name("controllerLeaderId", &h.ControllerLeaderID, Optional)
	v.Name("controllerLeaderAddress", &h.ControllerLeaderAddress, Optional)
	v.Bool("isLeader", &h.IsLeader, Optional)
	v.Str("peers", &h.Peers, Optional)
}

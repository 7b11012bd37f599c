package remoting

// ViewBrokerStatsDataRequest is the header of VIEW_BROKER_STATS_DATA.
type ViewBrokerStatsDataRequest struct {
	StatsName string
	StatsKey  string
}

// Fields names the fields.
func (h *ViewBrokerStatsDataRequest) Fields(v *Visitor) {
	v.Name("statsName", &h.StatsName, Required)
	v.Name("statsKey", &h.StatsKey, Required)
}

// ExportRocksDBConfigToJSONRequest is the header of EXPORT_ROCKSDB_CONFIG_TO_JSON.
type ExportRocksDBConfigToJSONRequest struct {
	TypeName   string
	ConfigType string
}

// Fields names the fields.
func (h *ExportRocksDBConfigToJSONRequest) Fields(v *Visitor) {
	v.Name("typeName", &h.TypeName, Optional)
	v.Name("configType", &h.ConfigType, Required)
}

// AddBrokerRequest is the header of ADD_BROKER.
type AddBrokerRequest struct {
	ConfigPath string
}

// Fields names the fields.
func (h *AddBrokerRequest) Fields(v *Visitor) {
	v.Str("configPath", &h.ConfigPath, Optional)
}

// RemoveBrokerRequest is the header of REMOVE_BROKER.
type RemoveBrokerRequest struct {
	BrokerName        string
	BrokerClusterName string
	BrokerID          int64
}

// Fields names the fields.
func (h *RemoveBrokerRequest) Fields(v *Visitor) {
	v.Name("brokerName", &h.BrokerName, Required)
	v.Name("brokerClusterName", &h.BrokerClusterName, Required)
	v.Int64("brokerId", &h.BrokerID, Required)
}

// GetBrokerConfigResponse answers GET_BROKER_CONFIG.
type GetBrokerConfigResponse struct {
	Version string
}

// Fields names the fields.
func (h *GetBrokerConfigResponse) Fields(v *Visitor) {
	v.Str("version", &h.Version, Required)
}

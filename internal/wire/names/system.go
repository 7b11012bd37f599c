package names

import "strings"

// Topics that the broker makes for itself or treats apart.
const (
	AutoCreate        = "TBW102" // the template of topics created by sending
	Schedule          = "SCHEDULE_TOPIC_XXXX"
	Benchmark         = "BenchmarkTest"
	Half              = "RMQ_SYS_TRANS_HALF_TOPIC"
	OpHalf            = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
	RocksHalf         = "RMQ_SYS_ROCKSDB_TRANS_HALF_TOPIC"
	RocksOpHalf       = "RMQ_SYS_ROCKSDB_TRANS_OP_HALF_TOPIC"
	Trace             = "RMQ_SYS_TRACE_TOPIC"
	TransCheckMaxTime = "TRANS_CHECK_MAX_TIME_TOPIC"
	SelfTest          = "SELF_TEST_TOPIC"
	OffsetMoved       = "OFFSET_MOVED_EVENT"
	Checkpoint        = "CHECKPOINT_TOPIC"
	WheelTimer        = "rmq_sys_wheel_timer"
	ReviveTopicPrefix = "rmq_sys_REVIVE_LOG_" // of POP's check points; the cluster's name follows
)

// Groups that tools and the broker's own parts use.
const (
	ToolsGroup         = "TOOLS_CONSUMER"
	FilterServerGroup  = "FILTERSRV_CONSUMER"
	SelfTestGroup      = "SELF_TEST_C_GROUP"
	HTTPProxyGroup     = "CID_ONS-HTTP-PROXY"
	OnsPullGroup       = "CID_ONSAPI_PULL"
	OnsPermissionGroup = "CID_ONSAPI_PERMISSION"
	OnsOwnerGroup      = "CID_ONSAPI_OWNER"
	TransactionGroup   = "CID_RMQ_SYS_TRANS"
	ReviveGroup        = "CID_RMQ_SYS_REVIVE_GROUP"
)

// OrderedReviveQueue is the revive queue in receipts of ordered deliveries.
const OrderedReviveQueue = 999

// IsSystemTopic reports whether topic belongs to the servers themselves. A cluster's and
// a broker's own name are system topics too, and only they know them.
func IsSystemTopic(topic string) bool {
	switch topic {
	case AutoCreate, Schedule, Benchmark, Half, OpHalf, RocksHalf, RocksOpHalf, Trace,
		TransCheckMaxTime, SelfTest, OffsetMoved, Checkpoint:
		return true
	}
	return strings.HasPrefix(topic, SystemTopicPrefix)
}

// ForbiddenToSend reports whether clients may not send to topic: what arrives there
// would be taken for the broker's own state.
func ForbiddenToSend(topic string) bool {
	switch topic {
	case Schedule, WheelTimer, Half, OpHalf, RocksHalf, RocksOpHalf, TransCheckMaxTime, SelfTest, OffsetMoved:
		return true
	}
	return false
}

// systemGroups are the groups that exist from the start.
var systemGroups = []string{
	ToolsGroup, FilterServerGroup, SelfTestGroup, HTTPProxyGroup,
	OnsPullGroup, OnsPermissionGroup, OnsOwnerGroup, TransactionGroup,
}

// SystemGroups lists the groups that exist from the start; the caller owns the slice.
func SystemGroups() []string { return append([]string(nil), systemGroups...) }

// IsSystemGroup reports whether group belongs to tools or to the servers themselves.
func IsSystemGroup(group string) bool {
	for _, g := range systemGroups {
		if g == group {
			return true
		}
	}
	return strings.HasPrefix(group, SystemGroupPrefix)
}

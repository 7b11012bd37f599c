package remoting

// TopicRouteData answers GET_ROUTEINFO_BY_TOPIC. Which of Marshal and MarshalStandard
// writes it depends on who asks: see StandardRoute.
type TopicRouteData struct {
	BrokerDatas       []BrokerData
	FilterServerTable map[string][]string
	OrderTopicConf    string
	QueueDatas        []QueueData
}

// Members names the members.
func (b *TopicRouteData) Members(m *Members) {
	objects(m, "brokerDatas", &b.BrokerDatas)
	mapOf(m, "filterServerTable", &b.FilterServerTable, stringKey, func(x *[]string) { m.strs(x) })
	m.OptStr("orderTopicConf", &b.OrderTopicConf)
	objects(m, "queueDatas", &b.QueueDatas)
}

// StandardRoute reports whether a route's asker understands keys in quotes only: it said
// so, or its version is one that does. The others include clients that take bare keys
// only.
func StandardRoute(version int32, acceptStandardJSONOnly bool) bool {
	return acceptStandardJSONOnly || version >= Version4_9_4
}

// MarshalRoute returns a route in the form for its asker.
func MarshalRoute(b *TopicRouteData, version int32, acceptStandardJSONOnly bool) []byte {
	return marshal(b, StandardRoute(version, acceptStandardJSONOnly))
}

// BrokerData is one broker name with the addresses of its members by id; 0 is the master.
type BrokerData struct {
	BrokerAddrs        map[int64]string
	BrokerName         string
	Cluster            string
	EnableActingMaster bool
	ZoneName           string
}

// Members names the members.
func (b *BrokerData) Members(m *Members) {
	mapOf(m, "brokerAddrs", &b.BrokerAddrs, numberKey[int64](), m.str)
	m.Str("brokerName", &b.BrokerName)
	m.Str("cluster", &b.Cluster)
	m.Bool("enableActingMaster", &b.EnableActingMaster)
	m.OptStr("zoneName", &b.ZoneName)
}

// QueueData says how many queues a broker has of a topic.
type QueueData struct {
	BrokerName     string
	Perm           int32
	ReadQueueNums  int32
	TopicSysFlag   int32
	WriteQueueNums int32
}

// Members names the members.
func (b *QueueData) Members(m *Members) {
	m.Str("brokerName", &b.BrokerName)
	m.Int32("perm", &b.Perm)
	m.Int32("readQueueNums", &b.ReadQueueNums)
	m.Int32("topicSysFlag", &b.TopicSysFlag)
	m.Int32("writeQueueNums", &b.WriteQueueNums)
}

// ClusterInfo answers GET_BROKER_CLUSTER_INFO.
type ClusterInfo struct {
	BrokerAddrTable  map[string]BrokerData
	ClusterAddrTable map[string][]string
}

// Members names the members.
func (b *ClusterInfo) Members(m *Members) {
	objectMap(m, "brokerAddrTable", &b.BrokerAddrTable)
	mapOf(m, "clusterAddrTable", &b.ClusterAddrTable, stringKey, func(x *[]string) { m.strs(x) })
}

// BrokerMemberGroupBody answers GET_BROKER_MEMBER_GROUP.
type BrokerMemberGroupBody struct{ BrokerMemberGroup BrokerMemberGroup }

// Members names the members.
func (b *BrokerMemberGroupBody) Members(m *Members) {
	m.Object("brokerMemberGroup", &b.BrokerMemberGroup)
}

// BrokerMemberGroup is the members of one broker name.
type BrokerMemberGroup struct {
	BrokerAddrs map[int64]string
	BrokerName  string
	Cluster     string
}

// Members names the members.
func (b *BrokerMemberGroup) Members(m *Members) {
	mapOf(m, "brokerAddrs", &b.BrokerAddrs, numberKey[int64](), m.str)
	m.Str("brokerName", &b.BrokerName)
	m.Str("cluster", &b.Cluster)
}

// DataVersion says which state of a table is meant; the larger counter is the newer of
// two with one state version.
type DataVersion struct {
	Counter      int64
	StateVersion int64
	Timestamp    int64
}

// Members names the members.
func (b *DataVersion) Members(m *Members) {
	m.Int64("counter", &b.Counter)
	m.Int64("stateVersion", &b.StateVersion)
	m.Int64("timestamp", &b.Timestamp)
}

// KVTable answers GET_BROKER_RUNTIME_INFO, GET_KVLIST_BY_NAMESPACE and REGISTER_BROKER.
type KVTable struct{ Table map[string]string }

// Members names the members.
func (b *KVTable) Members(m *Members) { m.StrMap("table", &b.Table) }

// TopicList answers the codes that list topics.
type TopicList struct {
	BrokerAddr string
	TopicList  []string
}

// Members names the members.
func (b *TopicList) Members(m *Members) {
	m.OptStr("brokerAddr", &b.BrokerAddr)
	m.Strs("topicList", &b.TopicList)
}

// GroupList answers QUERY_TOPIC_CONSUME_BY_WHO.
type GroupList struct{ GroupList []string }

// Members names the members.
func (b *GroupList) Members(m *Members) { m.Strs("groupList", &b.GroupList) }

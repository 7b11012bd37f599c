package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// request is one line of the table.
type request struct {
	code   int32
	answer func(*Server, *transport.Request) (answer, error)
	local  bool // from this machine only, until there is access control
}

func (r request) name() string { return remoting.CodeName(r.code) }

// requests is every request that a name server answers. No other place switches over
// codes.
var requests = []request{
	{code: remoting.ReqPutKVConfig, answer: (*Server).putKVConfig},
	{code: remoting.ReqGetKVConfig, answer: (*Server).getKVConfig},
	{code: remoting.ReqDeleteKVConfig, answer: (*Server).deleteKVConfig},
	{code: remoting.ReqGetKVListByNamespace, answer: (*Server).getKVListByNamespace},

	{code: remoting.ReqRegisterBroker, answer: (*Server).registerBroker},
	{code: remoting.ReqUnregisterBroker, answer: (*Server).unregisterBroker},
	{code: remoting.ReqQueryDataVersion, answer: (*Server).queryDataVersion},
	{code: remoting.ReqBrokerHeartbeat, answer: (*Server).brokerHeartbeat},
	{code: remoting.ReqGetBrokerMemberGroup, answer: (*Server).getBrokerMemberGroup},

	{code: remoting.ReqGetRouteInfoByTopic, answer: (*Server).getRouteInfoByTopic},
	{code: remoting.ReqGetBrokerClusterInfo, answer: (*Server).getBrokerClusterInfo},
	{code: remoting.ReqBolideGetGoneBrokers, answer: (*Server).bolideGetGoneBrokers},

	{code: remoting.ReqWipeWritePermOfBroker, answer: (*Server).wipeWritePermOfBroker},
	{code: remoting.ReqAddWritePermOfBroker, answer: (*Server).addWritePermOfBroker},
	{code: remoting.ReqRegisterTopicInNamesrv, answer: (*Server).registerTopicInNamesrv},
	{code: remoting.ReqDeleteTopicInNamesrv, answer: (*Server).deleteTopicInNamesrv},

	{code: remoting.ReqGetAllTopicListFromNameServer, answer: (*Server).getAllTopicListFromNameserver},
	{code: remoting.ReqGetTopicsByCluster, answer: (*Server).getTopicsByCluster},
	{code: remoting.ReqGetSystemTopicListFromNS, answer: (*Server).getSystemTopicListFromNS},
	{code: remoting.ReqGetUnitTopicList, answer: (*Server).getUnitTopicList},
	{code: remoting.ReqGetHasUnitSubTopicList, answer: (*Server).getHasUnitSubTopicList},
	{code: remoting.ReqGetHasUnitSubUnunitTopicList, answer: (*Server).getHasUnitSubUnunitTopicList},

	{code: remoting.ReqUpdateNamesrvConfig, answer: (*Server).updateNamesrvConfig, local: true},
	{code: remoting.ReqGetNamesrvConfig, answer: (*Server).getNamesrvConfig},
}

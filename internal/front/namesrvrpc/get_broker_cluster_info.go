package namesrvrpc

import (
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

func (s *Server) getBrokerClusterInfo(r *transport.Request) (a answer, err error) {
	brokers, clusters := s.table.Cluster()
	info := remoting.ClusterInfo{BrokerAddrTable: make(map[string]remoting.BrokerData, len(brokers)), ClusterAddrTable: clusters}
	for i := range brokers {
		info.BrokerAddrTable[brokers[i].Name] = brokerData(&brokers[i], s.local(r))
	}
	if r.Ext.Is("acceptStandardJsonOnly", "true") {
		a.body = remoting.MarshalStandard(&info)
	} else {
		a.body = remoting.Marshal(&info)
	}
	return a, nil
}

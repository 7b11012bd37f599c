package namesrvrpc

import (
	"net/netip"
	"strings"

	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// Ext fields of clients that want brokers of their own zone.
const (
	zoneName = "__ZONE_NAME"
	zoneMode = "__ZONE_MODE"
)

func (s *Server) getRouteInfoByTopic(r *transport.Request) (a answer, err error) {
	var h remoting.GetRouteInfoByTopicRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	route, ok := s.table.Route(h.Topic)
	if !ok {
		return a, &said{errNoRoute, h.Topic}
	}
	if mode, _ := r.Ext.Get(zoneMode); strings.EqualFold(mode, "true") {
		zone, _ := r.Ext.Get(zoneName)
		route = route.InZone(zone)
	}
	data := routeData(&route, s.local(r))
	a.body = remoting.MarshalRoute(&data, r.Version, h.AcceptStandardJsonOnly)
	return a, nil
}

func routeData(route *namesrv.Route, at netip.AddrPort) remoting.TopicRouteData {
	data := remoting.TopicRouteData{OrderTopicConf: route.OrderConf}
	for i := range route.Brokers {
		data.BrokerDatas = append(data.BrokerDatas, brokerData(&route.Brokers[i], at))
	}
	for _, q := range route.Queues {
		data.QueueDatas = append(data.QueueDatas, remoting.QueueData{BrokerName: q.Broker, Perm: q.Perm,
			ReadQueueNums: q.ReadQueues, WriteQueueNums: q.WriteQueues, TopicSysFlag: q.SysFlag})
	}
	return data
}

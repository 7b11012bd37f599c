package namesrvrpc

import (
	"hash/crc32"
	"slices"
	"time"

	"github.com/bolidemq/bolide/internal/namesrv"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// registerBroker takes over all topics of a broker, or one more, and tells a slave where
// its master is.
func (s *Server) registerBroker(r *transport.Request) (a answer, err error) {
	var h remoting.RegisterBrokerRequest
	if err := r.Decode(&h); err != nil {
		return a, err
	}
	if h.BodyCrc32 != 0 && uint32(h.BodyCrc32) != crc32.ChecksumIEEE(r.Body)&0x7fffffff {
		return a, errCRC
	}
	var body remoting.RegisterBrokerBody
	if len(r.Body) > 0 {
		if err := remoting.UnmarshalRegisterBroker(r.Body, h.Compressed, &body); err != nil {
			return a, err
		}
	}
	told, err := s.table.Register(registration(r, &h, &body))
	if err != nil {
		return a, err
	}
	a.header = &remoting.RegisterBrokerResponse{HAServerAddr: told.MasterHAAddress, MasterAddr: told.MasterAddress}
	if s.table.Config().Get().ReturnOrderTopicConfig {
		if order, ok := s.table.KV().List(namesrv.OrderNamespace); ok {
			a.body = remoting.Marshal(&remoting.KVTable{Table: order})
		}
	}
	return a, nil
}

func registration(r *transport.Request, h *remoting.RegisterBrokerRequest, body *remoting.RegisterBrokerBody) namesrv.Registration {
	t := &body.TopicConfigSerializeWrapper
	zone, _ := r.Ext.Get(zoneName)
	_, knowsActing := r.Ext.Get("enableActingMaster")
	g := namesrv.Registration{
		Cluster: h.ClusterName, Broker: h.BrokerName, ID: h.BrokerID, Address: namesrv.Elsewhere(h.BrokerAddr),
		HAAddress: h.HAServerAddr, Zone: zone, Timeout: time.Duration(h.HeartbeatTimeoutMillis) * time.Millisecond,
		ActingMaster: h.EnableActingMaster, OldBroker: !knowsActing, Version: version(t.DataVersion), Conn: r.Conn,
		Topics: make([]namesrv.Topic, 0, len(t.TopicConfigTable)),
	}
	for name, c := range t.TopicConfigTable {
		g.Topics = append(g.Topics, namesrv.Topic{Name: name, ReadQueues: c.ReadQueueNums, WriteQueues: c.WriteQueueNums,
			Perm: c.Perm, SysFlag: c.TopicSysFlag, Order: c.Order})
	}
	slices.SortFunc(g.Topics, func(a, b namesrv.Topic) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return g
}

func version(v remoting.DataVersion) namesrv.Version {
	return namesrv.Version{State: v.StateVersion, Timestamp: v.Timestamp, Counter: v.Counter}
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// callTimeout bounds one request of a client command.
const callTimeout = 5 * time.Second

// remote is what client commands talk to: the servers behind a name server.
type remote struct {
	namesrv  string   // the one that is asked
	namesrvs []string // all that were named
	client   *transport.Client
}

// flags adds the flag that says where the servers are.
func (r *remote) flags(c *cobra.Command) {
	addressVar(c.PersistentFlags(), &r.namesrv, "namesrv", "n", standardNamesrv(), "`HOST:PORT` of the name server, or any port of a bolide server; NAMESRV_ADDR sets the default")
}

// open connects, as far as there is something to connect to; the caller closes.
func (r *remote) open() {
	r.client = transport.NewClient(transport.ClientOptions{})
	r.namesrvs = config.SplitAddresses(r.namesrv)
	r.namesrv = answering(r.namesrv)
}

func (r *remote) close() { r.client.Close() }

// call sends a request and turns a refusal into an error.
func (r *remote) call(ctx context.Context, addr string, code int32, h remoting.Header, body []byte) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := r.client.Call(ctx, addr, code, h, body)
	if err != nil {
		return nil, silence{addr, err}
	}
	if answer.Code != remoting.ResSuccess {
		return answer, &refusal{addr: addr, code: answer.Code, remark: answer.Remark, namesrv: addr == r.namesrv}
	}
	return answer, nil
}

// silence is that a server did not answer: it is not reached, or takes too long.
type silence struct {
	addr string
	error
}

func (s silence) Unwrap() error { return s.error }

// refusal is an answer other than success.
type refusal struct {
	addr    string
	code    int32
	remark  string
	namesrv bool // it was asked as a name server
}

func (e *refusal) Error() string {
	remark := strings.TrimSpace(e.remark) // that of an unknown code begins with a blank
	switch {
	case remark == "":
		remark = "no reason given"
	case e.namesrv && e.code == remoting.ResRequestCodeNotSupported:
		remark += "; is a name server there?"
	}
	return fmt.Sprintf("%s answers %s (%d): %s", e.addr, remoting.ResponseName(e.code), e.code, remark)
}

func refusedWith(err error, code int32) bool {
	var r *refusal
	return errors.As(err, &r) && r.code == code
}

// noTopic is the error of a topic that no broker has; one that is missing may have it.
type noTopic struct {
	topic   string
	missing error // says who is
}

func (t noTopic) Error() string {
	if t.missing != nil {
		return t.missing.Error()
	}
	return fmt.Sprintf("topic %s does not exist; bolide admin topic create %s makes it", t.topic, t.topic)
}

// known refuses a consumer group that no broker has; one that is missing may have it.
func (r *remote) known(ctx context.Context, all *census, group string) error {
	found := false
	err := all.each(ctx, func(b master) error {
		if found {
			return nil
		}
		table, err := r.groups(ctx, b.addr)
		_, found = table[group]
		return err
	})
	if err != nil || found {
		return err
	}
	if err := all.incomplete("no broker that answers has group " + group); err != nil {
		return err
	}
	return fmt.Errorf("group %s does not exist; bolide admin group list lists those that do", group)
}

// groups asks a broker for its consumer groups. To ask for a single one would make it.
func (r *remote) groups(ctx context.Context, addr string) (map[string]remoting.SubscriptionGroupConfig, error) {
	answer, err := r.call(ctx, addr, remoting.ReqGetAllSubscriptionGroupConfig, &remoting.GetAllSubscriptionGroupConfigRequest{}, nil)
	if err != nil {
		return nil, err
	}
	var table remoting.SubscriptionGroupTable
	if err := remoting.Unmarshal(answer.Body, &table); err != nil {
		return nil, fmt.Errorf("groups of %s: %w", addr, err)
	}
	return table.SubscriptionGroupTable, nil
}

// queues are the queues of one broker.
type queues struct {
	broker, addr string
	read, write  int32
}

// route asks where a topic is.
func (r *remote) route(ctx context.Context, topic string) ([]queues, error) {
	answer, err := r.call(ctx, r.namesrv, remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: topic}, nil)
	if refusedWith(err, remoting.ResTopicNotExist) {
		all, err := r.census(ctx)
		if err != nil {
			return nil, err
		}
		return nil, noTopic{topic, all.incomplete("no broker that is there has topic " + topic)}
	}
	if err != nil {
		return nil, err
	}
	var data remoting.TopicRouteData
	if err := remoting.Unmarshal(answer.Body, &data); err != nil {
		return nil, fmt.Errorf("route of %s: %w", topic, err)
	}
	var all []queues
	for _, q := range data.QueueDatas {
		for _, b := range data.BrokerDatas {
			addr, ok := b.BrokerAddrs[0]
			if b.BrokerName != q.BrokerName || !ok {
				continue
			}
			one := queues{broker: q.BrokerName, addr: addr}
			if q.Perm&permRead != 0 {
				one.read = q.ReadQueueNums
			}
			if q.Perm&permWrite != 0 {
				one.write = q.WriteQueueNums
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b queues) int { return strings.Compare(a.broker, b.broker) })
	return all, nil
}

const (
	permWrite = 2
	permRead  = 4
)

// cluster asks which clusters and brokers there are.
func (r *remote) cluster(ctx context.Context) (info remoting.ClusterInfo, err error) {
	answer, err := r.call(ctx, r.namesrv, remoting.ReqGetBrokerClusterInfo, nil, nil)
	if err != nil {
		return info, err
	}
	if err := remoting.Unmarshal(answer.Body, &info); err != nil {
		return info, fmt.Errorf("cluster info: %w", err)
	}
	return info, nil
}

// topics lists the name server's topics, in order.
func (r *remote) topics(ctx context.Context) ([]string, error) {
	answer, err := r.call(ctx, r.namesrv, remoting.ReqGetAllTopicListFromNameServer, nil, nil)
	if err != nil {
		return nil, err
	}
	var list remoting.TopicList
	if err := remoting.Unmarshal(answer.Body, &list); err != nil {
		return nil, fmt.Errorf("topic list: %w", err)
	}
	slices.Sort(list.TopicList)
	return list.TopicList, nil
}

// master is a broker that takes changes.
type master struct{ broker, addr string }

// masters are the brokers that take changes, in the order of their names.
func (r *remote) masters(ctx context.Context) ([]master, error) {
	info, err := r.cluster(ctx)
	if err != nil {
		return nil, err
	}
	all, _ := mastersOf(info)
	if len(all) == 0 {
		return nil, fmt.Errorf("name server %s knows no broker", r.namesrv)
	}
	return all, nil
}

// mastersOf are the masters of a cluster, in the order of their names, and the names without one.
func mastersOf(info remoting.ClusterInfo) (all []master, without []string) {
	for _, name := range slices.Sorted(maps.Keys(info.BrokerAddrTable)) {
		if addr, ok := info.BrokerAddrTable[name].BrokerAddrs[0]; ok {
			all = append(all, master{name, addr})
		} else {
			without = append(without, name)
		}
	}
	return all, without
}

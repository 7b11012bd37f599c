package register

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

const (
	spreadMost  = 1000            // topics that wait to be spread; what is more stays here
	spreadLimit = 2 * time.Second // for each request to another broker
)

// Spread has the brokers that take messages for new topics, as this one does, make topics
// that a send has just made here (R109): else all later messages would come to this broker
// alone, since clients know a topic's own route from then on. It does not wait; a broker
// that can't be reached makes the topic when a message comes to it.
func (r *Registration) Spread(topics []string) {
	r.mu.Lock()
	if len(r.mu.made) < spreadMost {
		r.mu.made = append(r.mu.made, topics...)
	}
	r.mu.Unlock()
	select {
	case r.spreads <- struct{}{}:
	default:
	}
}

// spreading is the loop behind Spread.
func (r *Registration) spreading(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.spreads:
		}
		r.mu.Lock()
		topics := r.mu.made
		r.mu.made = nil
		r.mu.Unlock()
		others, err := r.others(ctx)
		if err != nil {
			r.o.Log.Info("other brokers are not told of new topics", "topics", len(topics), "err", err)
			continue
		}
		for _, addr := range others {
			for _, name := range topics {
				if err := r.make(ctx, addr, name); err != nil {
					r.o.Log.Info("another broker did not make a new topic", "broker", addr, "topic", name, "err", err)
					break // of this one; the others may answer
				}
			}
		}
	}
}

// others lists the masters that make topics from the template, other than this broker.
func (r *Registration) others(ctx context.Context) (addresses []string, err error) {
	if r.o.Others != nil {
		addresses = r.o.Others(names.AutoCreate)
	}
	r.mu.Lock()
	var links []*link
	for _, l := range r.mu.links {
		if l.isUp() {
			links = append(links, l)
		}
	}
	r.mu.Unlock()
	var errs []error
	for _, l := range links {
		found, err := r.ask(ctx, l.addr)
		if err == nil {
			return append(addresses, found...), nil // name servers know the same
		}
		errs = append(errs, err)
	}
	return addresses, errors.Join(errs...)
}

func (r *Registration) ask(ctx context.Context, namesrv string) (addresses []string, err error) {
	a, err := r.call(ctx, namesrv, remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: names.AutoCreate}, nil)
	if err != nil {
		return nil, err
	}
	if a.Code == remoting.ResTopicNotExist {
		return nil, nil
	}
	var route remoting.TopicRouteData
	if err := remoting.Unmarshal(a.Body, &route); err != nil {
		return nil, fmt.Errorf("route of %s from %s: %w", names.AutoCreate, namesrv, err)
	}
	own := r.o.Config.Get().BrokerName
	for _, b := range route.BrokerDatas {
		if addr := b.BrokerAddrs[0]; b.BrokerName != own && addr != "" {
			addresses = append(addresses, addr)
		}
	}
	return addresses, nil
}

// make makes a topic of this broker on another one that does not have it.
func (r *Registration) make(ctx context.Context, addr, name string) error {
	t, ok := r.o.Topics.Get(name)
	if !ok {
		return nil // deleted meanwhile
	}
	a, err := r.call(ctx, addr, remoting.ReqGetTopicConfig, &remoting.GetTopicConfigRequest{Topic: name}, nil)
	if err != nil || a.Code != remoting.ResTopicNotExist {
		return err
	}
	a, err = r.call(ctx, addr, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{Topic: name, DefaultTopic: names.AutoCreate,
		ReadQueueNums: t.ReadQueues, WriteQueueNums: t.WriteQueues, Perm: t.Perm, TopicFilterType: t.FilterType, TopicSysFlag: t.SysFlag}, nil)
	if err == nil && a.Code != remoting.ResSuccess {
		err = fmt.Errorf("%s: %s", remoting.ResponseName(a.Code), strings.TrimSpace(a.Remark))
	}
	return err
}

func (r *Registration) call(ctx context.Context, addr string, code int32, h remoting.Header, body []byte) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, spreadLimit)
	defer cancel()
	return r.o.Client.Call(ctx, addr, code, h, body)
}

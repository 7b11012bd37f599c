package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// errNoStream: a client that is there by its heartbeats alone can't be asked.
var errNoStream = errors.New("the client has no telemetry stream")

// Ask implements clients.Asked: what Remoting clients answer to an administrator, as far
// as gRPC clients have words for it.
func (c *channel) Ask(q clients.Question, done func(clients.Answer, error)) {
	m := &c.backend.members
	m.Lock()
	client := c.client
	if client == nil || client.Stream == nil || m.closing {
		m.Unlock()
		done(clients.Answer{}, errNoStream)
		return
	}
	// Waits for the client, so not on the caller's goroutine.
	c.backend.tasks.Go("ask "+client.ID, func() {
		ctx, cancel := context.WithTimeout(context.Background(), q.Timeout)
		defer cancel()
		answer, err := ask(ctx, client, q)
		if errors.Is(err, context.DeadlineExceeded) {
			err = clients.ErrNoAnswer
		}
		done(answer, err)
	})
	m.Unlock()
}

func ask(ctx context.Context, c *proxy.Client, q clients.Question) (clients.Answer, error) {
	switch h := q.Header.(type) {
	case *remoting.GetConsumerRunningInfoRequest:
		info := runningInfo(c)
		if h.JstackEnable {
			text, err := c.Stream.StackTrace(ctx)
			if err != nil {
				return clients.Answer{}, err
			}
			info.Jstack = text
		}
		return clients.Answer{Body: remoting.Marshal(info)}, nil
	case *remoting.ConsumeMessageDirectlyRequest:
		verdict, err := c.Stream.Verify(ctx, h.Topic, q.Body)
		if err != nil {
			return clients.Answer{}, err
		}
		return clients.Answer{Body: remoting.Marshal(directly(verdict))}, nil
	}
	return clients.Answer{}, fmt.Errorf("gRPC clients do not understand %s", remoting.CodeName(q.Code))
}

// runningInfo is what the proxy knows of a client, in the words of a Remoting client.
func runningInfo(c *proxy.Client) *remoting.ConsumerRunningInfo {
	h := heartbeat(c, nil)
	info := &remoting.ConsumerRunningInfo{Properties: map[string]string{
		"PROP_CLIENT_VERSION":           c.Version,
		"PROP_CONSUMER_START_TIMESTAMP": fmt.Sprint(c.Settings.Since),
		"PROP_CONSUMEORDERLY":           "false",
		"PROP_THREADPOOL_CORE_SIZE":     "0",
		"PROP_NAMESERVER_ADDR":          c.Local.String(),
	}}
	for i := range h.Consumers {
		info.Properties["PROP_CONSUME_TYPE"] = h.Consumers[i].Type
		for _, s := range h.Consumers[i].Subscriptions {
			info.SubscriptionSet = append(info.SubscriptionSet, remoting.SubscriptionData{Topic: s.Topic, SubString: s.Expression,
				ExpressionType: s.Kind, TagsSet: s.Tags, CodeSet: s.Codes, SubVersion: s.Version})
		}
	}
	return info
}

func directly(v proxy.Verdict) *remoting.ConsumeMessageDirectlyResult {
	r := &remoting.ConsumeMessageDirectlyResult{AutoCommit: true}
	switch v {
	case proxy.VerdictConsumed:
		r.ConsumeResult = "CR_SUCCESS"
	case proxy.VerdictFailed:
		r.ConsumeResult = "CR_LATER"
	case proxy.VerdictCorrupted:
		r.ConsumeResult, r.Remark = "CR_THROW_EXCEPTION", "the client says that the message is corrupted"
	default:
		r.ConsumeResult = "CR_RETURN_NULL"
	}
	return r
}

// Run waits until the broker stops and then for the clients that are being asked; their
// streams have ended by then.
func (b *Backend) Run(ctx context.Context) error {
	<-ctx.Done()
	b.members.Lock()
	b.members.closing = true
	b.members.Unlock()
	b.tasks.Wait()
	return ctx.Err()
}

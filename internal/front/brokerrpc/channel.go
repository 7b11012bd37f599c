package brokerrpc

import (
	"errors"
	"net/netip"
	"strconv"

	"github.com/bolidemq/bolide/internal/broker/clients"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/txn"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// channel is a connection as the registry of clients knows it.
type channel struct {
	conn   *transport.Conn
	holder string // the client's id, or its address before its first heartbeat
	peer   longpoll.Peer
}

type channelKey struct{}

// channelOf returns the one channel of a connection. It is called on the connection's
// reader only, so there is no second one.
func channelOf(c *transport.Conn) *channel {
	if ch, ok := c.Value(channelKey{}).(*channel); ok {
		return ch
	}
	ch := &channel{conn: c, holder: c.RemoteAddr().String()}
	c.SetValue(channelKey{}, ch)
	return ch
}

// RemoteAddr is the client's address.
func (c *channel) RemoteAddr() netip.AddrPort { return c.conn.RemoteAddr() }

// ConsumersChanged sends NOTIFY_CONSUMER_IDS_CHANGED.
func (c *channel) ConsumersChanged(group string) {
	// A client that is gone hears nothing; its connection's end is handled elsewhere.
	_ = c.conn.Oneway(remoting.ReqNotifyConsumerIDsChanged, &remoting.NotifyConsumerIDsChangedRequest{ConsumerGroup: group}, nil)
}

// Ask puts a question to the client.
func (c *channel) Ask(q clients.Question, done func(clients.Answer, error)) {
	err := c.conn.CallAsync(q.Code, q.Header, q.Body, q.Timeout, func(a *remoting.Command, err error) {
		switch {
		case errors.Is(err, transport.ErrTimeout):
			done(clients.Answer{}, clients.ErrNoAnswer)
		case err != nil:
			done(clients.Answer{}, err)
		default:
			done(clients.Answer{Code: a.Code, Remark: a.Remark, Body: a.Body}, nil)
		}
	})
	if err != nil {
		done(clients.Answer{}, err)
	}
}

// CheckTransaction sends CHECK_TRANSACTION_STATE.
func (c *channel) CheckTransaction(q txn.Check) error {
	return c.conn.Oneway(remoting.ReqCheckTransactionState, &remoting.CheckTransactionStateRequest{Topic: q.Topic, TranStateTableOffset: q.QueueOffset,
		CommitLogOffset: q.LogOffset, MsgID: q.UniqueID, TransactionID: q.UniqueID, OffsetMsgID: q.OffsetID}, q.Record)
}

// Close cuts the connection.
func (c *channel) Close() { c.conn.Close() }

func itoa(n int32) string { return strconv.Itoa(int(n)) }

package grpcv2

import (
	"math"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/wire/h2"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// sendCall is one SendMessage: its request, its work and its answer. It is pooled; the
// request's bytes, which its strings alias, live until the call is answered.
type sendCall struct {
	s        *Service
	call     *h2.Call
	messages []sentMessage
	tooMany  bool   // more than maxMessages or maxElements: the rest was not read
	text     []byte // property texts of the messages
	stored   []message.Message
	pointers []*message.Message

	complete func(proxy.Sent, error) // is finish; made once, so that a send allocates none
	sent     proxy.Sent

	code    v2.Code
	message string // of the status
}

var sendCalls sync.Pool

func newSendCall() *sendCall {
	c, _ := sendCalls.Get().(*sendCall)
	if c == nil {
		c = &sendCall{}
		c.complete = c.finish
	}
	return c
}

// release gives the call back; nothing that aliases it may be used after it.
func (c *sendCall) release() {
	c.s, c.call = nil, nil
	if len(c.messages) > 64 || cap(c.text) > 64<<10 {
		return // an exceptional call's memory is not kept
	}
	for i := range c.messages {
		m := &c.messages[i]
		clear(m.properties)
		clear(m.keys)
		if cap(m.keys) > 1024 {
			m.keys = nil
		}
		m.reset()
	}
	clear(c.stored)
	c.sent = proxy.Sent{}
	sendCalls.Put(c)
}

// sendMessage serves the RPC.
func (s *Service) sendMessage(call *h2.Call) {
	c := newSendCall()
	if err := c.read(call.Message()); err != nil {
		c.release()
		call.Fail(codes.Internal, "the request can't be read: "+err.Error())
		s.calls.end()
		return
	}
	c.s, c.call = s, call
	if err := s.trySend(c); err != nil {
		c.finish(proxy.Sent{}, err)
	}
}

// finish answers the call. It runs where the send ended, for a good one on the log's
// writer.
func (c *sendCall) finish(sent proxy.Sent, err error) {
	s, call := c.s, c.call
	c.sent = sent
	c.code, c.message = s.codeOf("SendMessage", err)
	b := h2.NewBuffer()
	at := b.Begin()
	b.B = c.appendAnswer(b.B)
	b.End(at)
	c.release()
	call.Answer(b, nil)
	s.calls.end()
}

// trySend hands the messages on, or says why not; then it is not completed.
func (s *Service) trySend(c *sendCall) error {
	if _, err := clientID(c.call); err != nil {
		return err
	}
	if c.tooMany {
		return refuse(v2.Code_BAD_REQUEST, "a request has at most %d messages with %d keys and properties", maxMessages, maxElements)
	}
	if len(c.messages) == 0 {
		return refuse(v2.Code_MESSAGE_CORRUPTED, "no message to send")
	}
	first := &c.messages[0]
	if err := checkTopic(first.topic); err != nil {
		return err
	}
	remote := c.call.RemoteAddr()
	c.stored, c.pointers, c.text = c.stored[:0], c.pointers[:0], c.text[:0]
	for i := range c.messages {
		m := &c.messages[i]
		if m.topic != first.topic || m.namespace != first.namespace {
			return refuse(v2.Code_MESSAGE_CORRUPTED, "topic in message is not same")
		}
		if err := s.checkMessage(m); err != nil {
			return err
		}
		c.stored = append(c.stored, message.Message{BornHost: remote, Body: m.body})
	}
	route, err := s.proxy.Route(c.call.Context(), first.topic)
	if err != nil {
		return err
	}
	for i := range c.messages {
		m := &c.messages[i]
		kind := m.derivedKind()
		if s.limits.EnableTopicMessageTypeCheck && !route.Kind.Takes(kind) {
			return wrongKind(first.topic, route.Kind, kind)
		}
		c.fill(&c.stored[i], m, s.clock.NowMilli())
		c.pointers = append(c.pointers, &c.stored[i])
	}
	group := first.group
	if group == "" {
		group = first.liteTopic
	}
	// The store answers within its own deadline; until then it may read the body, which
	// lies in the request. So the caller's deadline is not looked at here.
	s.proxy.Send(route, group, c.pointers, c.complete)
	return nil
}

// checkMessage applies the rules for what a client may send, in Apache RocketMQ's order.
func (s *Service) checkMessage(m *sentMessage) error {
	if len(m.body) == 0 {
		return refuse(v2.Code_MESSAGE_BODY_EMPTY, "message body cannot be empty")
	}
	if most := int(s.limits.MaxMessageSize); len(m.body) > most {
		return refuse(v2.Code_MESSAGE_BODY_TOO_LARGE, "message body has %d bytes, the most is %d", len(m.body), most)
	}
	if most := int(s.limits.UserPropertyMaxNum); len(m.properties) > most {
		return refuse(v2.Code_MESSAGE_PROPERTIES_TOO_LARGE, "too many user properties, max is %d", most)
	}
	if len(m.keys) > maxKeys {
		return refuse(v2.Code_MESSAGE_PROPERTIES_TOO_LARGE, "too many keys, max is %d", maxKeys)
	}
	size := 0
	for i := range m.properties {
		p := &m.properties[i]
		switch {
		case message.Reserved(p.name):
			return refuse(v2.Code_ILLEGAL_MESSAGE_PROPERTY_KEY, "property is used by system: %s", p.name)
		case hasControl(p.name):
			return refuse(v2.Code_ILLEGAL_MESSAGE_PROPERTY_KEY, "the key of property cannot contain control character")
		case hasControl(p.value):
			return refuse(v2.Code_ILLEGAL_MESSAGE_PROPERTY_KEY, "the value of property cannot contain control character")
		}
		size += len(p.name) + len(p.value)
	}
	if err := checkTag(m.tag); err != nil {
		return err
	}
	size += len(m.tag)
	for _, key := range m.keys {
		if err := checkKey(key); err != nil {
			return err
		}
		size += len(key)
	}
	if most := int(s.limits.MaxUserPropertySize); size > most {
		return refuse(v2.Code_MESSAGE_PROPERTIES_TOO_LARGE, "user properties, tag and keys have %d bytes, the most is %d", size, most)
	}
	if isBlank(m.id) || hasControl(m.id) {
		return refuse(v2.Code_ILLEGAL_MESSAGE_ID, "message id cannot be empty")
	}
	return s.checkKind(m)
}

// checkKind is the part of checkMessage about what only some kinds of messages have.
func (s *Service) checkKind(m *sentMessage) error {
	if m.kind == v2.MessageType_TRANSACTION && m.hasRecoverAfter && m.recoverAfter > int64(maxRecovery.Seconds()) {
		return refuse(v2.Code_BAD_REQUEST, "the transaction recovery time is %d s, the most is %d", m.recoverAfter, int64(maxRecovery.Seconds()))
	}
	if m.hasDeliver {
		// How far ahead it may be is for the broker to say, which has one limit for everybody.
		if !m.deliver.valid() {
			return refuse(v2.Code_ILLEGAL_DELIVERY_TIME, "delivery_timestamp is %d s and %d ns, which is no time", m.deliver.seconds, m.deliver.nanos)
		}
	}
	if m.hasPriority && m.priority < 0 {
		return refuse(v2.Code_BAD_REQUEST, "the message's priority is %d, want a number from 0 to %d", m.priority, math.MaxInt32)
	}
	if m.group != "" {
		if err := checkMessageGroup(m.group, s.limits.MaxMessageGroupSize); err != nil {
			return err
		}
	}
	if m.liteTopic != "" {
		if err := checkLiteTopic(m.liteTopic); err != nil {
			return err
		}
	}
	if hasControl(m.traceContext) || hasControl(m.bornHost) {
		return refuse(v2.Code_BAD_REQUEST, "trace context and born host cannot contain control characters")
	}
	return nil
}

// derivedKind is what the message is, by what it carries, not by what it calls itself.
func (m *sentMessage) derivedKind() proxy.Kind {
	switch {
	case m.kind == v2.MessageType_TRANSACTION:
		return proxy.KindTransaction
	case m.hasDeliver:
		return proxy.KindDelay
	case m.group != "" || m.hasProperty(message.PropertyShardingKey):
		return proxy.KindFIFO
	case m.hasPriority:
		return proxy.KindPriority
	case m.liteTopic != "":
		return proxy.KindLite
	default:
		return proxy.KindNormal
	}
}

func (m *sentMessage) hasProperty(name string) bool {
	for i := range m.properties {
		if m.properties[i].name == name {
			return true
		}
	}
	return false
}

// wrongKind begins as Apache RocketMQ's sentence does, and says what to do.
func wrongKind(name string, topic, message proxy.Kind) error {
	return refuse(v2.Code_MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
		"TopicMessageType validate failed, the expected type is %s, but actual type is %s: send it to a topic of type %[2]s, or make %[3]s one (mqadmin updateTopic -t %[3]s -a +message.type=%[2]s)",
		topic, message, name)
}

// fill writes the flags, times and properties of the message that is stored.
func (c *sendCall) fill(to *message.Message, m *sentMessage, now int64) {
	to.BornTimestamp = now
	if m.hasBorn && m.born.valid() {
		to.BornTimestamp = m.born.milli()
	}
	if m.encoding == v2.Encoding_GZIP {
		to.SysFlag |= message.SysCompressed
	}
	from := len(c.text)
	for i := range m.properties {
		c.put(m.properties[i].name, m.properties[i].value)
	}
	c.put(message.PropertyTags, m.tag)
	c.putKeys(m.keys)
	c.put(message.PropertyUniqKey, m.id)
	if m.kind == v2.MessageType_TRANSACTION {
		to.SysFlag |= message.SysTransactionPrepared
		c.put(message.PropertyTransaction, "true")
		if m.hasRecoverAfter {
			c.putNumber(message.PropertyCheckImmunitySeconds, m.recoverAfter)
		}
	}
	if m.hasDeliver {
		c.putNumber(message.PropertyTimerDeliverMs, m.deliver.milliUp())
	}
	if m.hasPriority {
		c.putNumber(message.PropertyPriority, int64(m.priority))
	}
	c.putNumber(message.PropertyReconsumeTime, int64(m.attempt))
	c.put(message.PropertyProducerGroup, m.topic)
	c.put(message.PropertyShardingKey, m.group)
	c.put(message.PropertyLiteTopic, m.liteTopic)
	c.put(message.PropertyTraceContext, m.traceContext)
	if isBlank(m.bornHost) {
		if to.BornHost.IsValid() {
			c.putAddr(message.PropertyBornHost, to.BornHost)
		}
	} else {
		c.put(message.PropertyBornHost, m.bornHost)
	}
	if m.hasBorn && m.born.valid() {
		c.putNumber(message.PropertyBornTimestamp, m.born.milli())
	}
	b := c.text[from:]
	to.Properties = message.Properties(unsafe.String(unsafe.SliceData(b), len(b)))
}

// put adds a property to the text; one without a value is left out, as readers would not
// see it.
func (c *sendCall) put(name, value string) {
	if value != "" {
		c.text = message.AppendProperty(c.text, name, value)
	}
}

func (c *sendCall) putNumber(name string, n int64) {
	var digits [20]byte
	c.text = message.AppendProperty(c.text, name, string(strconv.AppendInt(digits[:0], n, 10)))
}

func (c *sendCall) putKeys(keys []string) {
	switch len(keys) {
	case 0:
	case 1:
		c.put(message.PropertyKeys, keys[0])
	default:
		c.put(message.PropertyKeys, strings.Join(keys, " "))
	}
}

// putAddr adds a property with an address as its value.
func (c *sendCall) putAddr(name string, a netip.AddrPort) {
	var digits [64]byte
	c.text = message.AppendProperty(c.text, name, string(a.AppendTo(digits[:0])))
}

// appendAnswer encodes the SendMessageResponse. Several messages of one request get one
// entry, as from Apache RocketMQ: their ids joined, the first one's offset.
func (c *sendCall) appendAnswer(b []byte) []byte {
	b = appendStatusField(b, 1, c.code, c.message)
	if c.code == v2.Code_OK {
		id := c.messages[0].id
		ids := id
		if len(c.messages) > 1 {
			all := make([]string, len(c.messages))
			for i := range c.messages {
				all[i] = c.messages[i].id
			}
			ids = strings.Join(all, ",")
		}
		transaction := c.sent.TransactionID
		if transaction == "" {
			transaction = id
		}
		size := statusFieldSize(1, v2.Code_OK, "OK") + stringSize(2, ids) + stringSize(3, transaction) +
			varintSize(4, uint64(c.sent.Offset)) + stringSize(5, c.sent.RecallHandle)
		b = protowire.AppendTag(b, 2, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(size))
		b = appendStatusField(b, 1, v2.Code_OK, "OK")
		b = appendString(b, 2, ids)
		b = appendString(b, 3, transaction)
		b = appendVarint(b, 4, uint64(c.sent.Offset))
		b = appendString(b, 5, c.sent.RecallHandle)
	}
	return b
}

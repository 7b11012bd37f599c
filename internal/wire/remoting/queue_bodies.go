package remoting

import (
	"cmp"
	"encoding/base64"
	"math/bits"
)

// MessageQueue names one queue of one broker.
type MessageQueue struct {
	Topic      string
	BrokerName string
	QueueID    int32
}

// Members names the members.
func (q *MessageQueue) Members(m *Members) {
	m.Str("brokerName", &q.BrokerName)
	m.Int32("queueId", &q.QueueID)
	m.Str("topic", &q.Topic)
}

// Compare orders queues by topic, broker and number.
func (q MessageQueue) Compare(o MessageQueue) int {
	return cmp.Or(cmp.Compare(q.Topic, o.Topic), cmp.Compare(q.BrokerName, o.BrokerName), cmp.Compare(q.QueueID, o.QueueID))
}

// LockBatchBody is the body of LOCK_BATCH_MQ and UNLOCK_BATCH_MQ.
type LockBatchBody struct {
	ClientID       string
	ConsumerGroup  string
	MQSet          []MessageQueue
	OnlyThisBroker bool
}

// Members names the members.
func (b *LockBatchBody) Members(m *Members) {
	m.Str("clientId", &b.ClientID)
	m.Str("consumerGroup", &b.ConsumerGroup)
	objects(m, "mqSet", &b.MQSet)
	m.Bool("onlyThisBroker", &b.OnlyThisBroker)
}

// LockBatchResponseBody answers LOCK_BATCH_MQ with the queues that are locked.
type LockBatchResponseBody struct{ LockOKMQSet []MessageQueue }

// Members names the members.
func (b *LockBatchResponseBody) Members(m *Members) { objects(m, "lockOKMQSet", &b.LockOKMQSet) }

// The two request modes of a consumer group on a topic.
const (
	ModePull = "PULL"
	ModePop  = "POP"
)

var requestModes = []string{ModePull, ModePop}

// QueryAssignmentRequestBody is the body of QUERY_ASSIGNMENT.
type QueryAssignmentRequestBody struct {
	ClientID      string
	ConsumerGroup string
	MessageModel  string
	StrategyName  string
	Topic         string
}

// Members names the members.
func (b *QueryAssignmentRequestBody) Members(m *Members) {
	m.Str("clientId", &b.ClientID)
	m.Str("consumerGroup", &b.ConsumerGroup)
	m.Enum("messageModel", &b.MessageModel, messageModels)
	m.Str("strategyName", &b.StrategyName)
	m.Str("topic", &b.Topic)
}

// QueryAssignmentResponseBody answers QUERY_ASSIGNMENT. Without the list (Known false)
// it is the answer to a client that is not registered.
type QueryAssignmentResponseBody struct {
	Known                   bool
	MessageQueueAssignments []MessageQueueAssignment
}

// Members names the members.
func (b *QueryAssignmentResponseBody) Members(m *Members) {
	if m.Writing() && !b.Known {
		return
	}
	objects(m, "messageQueueAssignments", &b.MessageQueueAssignments)
	b.Known = b.Known || b.MessageQueueAssignments != nil
}

// MessageQueueAssignment is one queue for one client.
type MessageQueueAssignment struct {
	Attachments  map[string]string
	MessageQueue MessageQueue
	Mode         string
}

// Members names the members.
func (b *MessageQueueAssignment) Members(m *Members) {
	if !m.Writing() || len(b.Attachments) > 0 {
		m.StrMap("attachments", &b.Attachments)
	}
	m.Object("messageQueue", &b.MessageQueue)
	m.Enum("mode", &b.Mode, requestModes)
}

// SetMessageRequestModeBody is the body of SET_MESSAGE_REQUEST_MODE and an entry of the
// table that GET_ALL_MESSAGE_REQUEST_MODE answers.
type SetMessageRequestModeBody struct {
	ConsumerGroup    string
	Mode             string
	PopShareQueueNum int32
	Topic            string
}

// Members names the members.
func (b *SetMessageRequestModeBody) Members(m *Members) {
	m.Str("consumerGroup", &b.ConsumerGroup)
	m.Enum("mode", &b.Mode, requestModes)
	m.Int32("popShareQueueNum", &b.PopShareQueueNum)
	m.Str("topic", &b.Topic)
}

// MessageRequestModes answers GET_ALL_MESSAGE_REQUEST_MODE: topic, then group.
type MessageRequestModes struct {
	Modes map[string]map[string]SetMessageRequestModeBody
}

// Members names the members.
func (b *MessageRequestModes) Members(m *Members) {
	mapOf(m, "messageRequestModeMap", &b.Modes, stringKey, func(groups *map[string]SetMessageRequestModeBody) {
		mapValue(m, groups, stringKey, func(x *SetMessageRequestModeBody) { m.object(x) })
	})
}

// BatchAckBody is the body of BATCH_ACK_MESSAGE.
type BatchAckBody struct {
	Acks       []BatchAck
	BrokerName string
}

// Members names the members.
func (b *BatchAckBody) Members(m *Members) {
	objects(m, "acks", &b.Acks)
	m.Str("brokerName", &b.BrokerName)
}

// BatchAck acknowledges messages of one popped batch: bit i of Bits, counted from the
// lowest of the first byte, is the message at StartOffset + i.
type BatchAck struct {
	Bits          []byte
	ConsumerGroup string
	InvisibleTime int64
	PopTime       int64
	QueueID       int32
	Retry         string
	ReviveQueueID int32
	StartOffset   int64
	Topic         string
}

// Members names the members, which have a short and a long name.
func (b *BatchAck) Members(m *Members) {
	text := ""
	if m.Writing() {
		text = base64.StdEncoding.EncodeToString(b.Bits)
	}
	m.Str("b", &text)
	m.Str("c", &b.ConsumerGroup)
	m.Int64("it", &b.InvisibleTime)
	m.Int64("pt", &b.PopTime)
	m.Int32("q", &b.QueueID)
	m.Str("r", &b.Retry)
	m.Int32("rq", &b.ReviveQueueID)
	m.Int64("so", &b.StartOffset)
	m.Str("t", &b.Topic)
	if m.Writing() {
		return
	}
	m.Str("bitSet", &text)
	m.Str("consumerGroup", &b.ConsumerGroup)
	m.Int64("invisibleTime", &b.InvisibleTime)
	m.Int64("popTime", &b.PopTime)
	m.Int32("queueId", &b.QueueID)
	m.Str("retry", &b.Retry)
	m.Int32("reviveQueueId", &b.ReviveQueueID)
	m.Int64("startOffset", &b.StartOffset)
	m.Str("topic", &b.Topic)
	if text != "" {
		bitset, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			m.read.fail("a bit set in Base64")
		}
		b.Bits = bitset
	}
}

// Offsets yields the offsets whose bits are set, in ascending order.
func (b *BatchAck) Offsets(yield func(offset int64) bool) {
	for i, by := range b.Bits {
		for ; by != 0; by &= by - 1 {
			if !yield(b.StartOffset + int64(i)*8 + int64(bits.TrailingZeros8(by))) {
				return
			}
		}
	}
}

// Set sets the bit of offset, which is not below StartOffset.
func (b *BatchAck) Set(offset int64) {
	i := offset - b.StartOffset
	for int64(len(b.Bits)) <= i/8 {
		b.Bits = append(b.Bits, 0)
	}
	b.Bits[i/8] |= 1 << (i % 8)
}

// ResetOffsetBody is the body of RESET_CONSUMER_CLIENT_OFFSET and answers
// INVOKE_BROKER_TO_RESET_OFFSET.
type ResetOffsetBody struct{ OffsetTable map[MessageQueue]int64 }

// Members names the members.
func (b *ResetOffsetBody) Members(m *Members) {
	mapOf(m, "offsetTable", &b.OffsetTable, queueKey, m.int)
}

// ConsumerStatusBody answers GET_CONSUMER_STATUS_FROM_CLIENT (MessageQueueTable) and
// INVOKE_BROKER_TO_GET_CONSUMER_STATUS (ConsumerTable, by client id).
type ConsumerStatusBody struct {
	ConsumerTable     map[string]map[MessageQueue]int64
	MessageQueueTable map[MessageQueue]int64
}

// Members names the members.
func (b *ConsumerStatusBody) Members(m *Members) {
	mapOf(m, "consumerTable", &b.ConsumerTable, stringKey, func(x *map[MessageQueue]int64) {
		mapValue(m, x, queueKey, m.int)
	})
	mapOf(m, "messageQueueTable", &b.MessageQueueTable, queueKey, m.int)
}

// QueryCorrectionOffsetBody answers QUERY_CORRECTION_OFFSET, by queue id.
type QueryCorrectionOffsetBody struct{ CorrectionOffsets map[int32]int64 }

// Members names the members.
func (b *QueryCorrectionOffsetBody) Members(m *Members) {
	mapOf(m, "correctionOffsets", &b.CorrectionOffsets, numberKey[int32](), m.int)
}

package grpcv2

import (
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"crypto/md5"
	"encoding/hex"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/bolidemq/bolide/internal/proxy"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// Fields of ReceiveMessageResponse, Message and SystemProperties.
const (
	responseStatus    = 1
	responseMessage   = 2
	responseTimestamp = 3

	messageTopic      = 1
	messageProperties = 2
	messageSystem     = 3
	messageBody       = 4
)

// deliveryEncoder encodes the ReceiveMessageResponse of one stored record, straight from
// the record's bytes. It is set to one record after the other.
type deliveryEncoder struct {
	topic  *v2.Resource
	digest digestKind
	popped *proxy.Popped

	m        message.Message
	batch    *proxy.PopBatch
	k        int
	system   []byte // scratch: SystemProperties
	user     []byte // scratch: the map entries
	head     []byte // scratch: the topic field
	handle   []byte
	kind     kindHints
	deadFrom string // DLQ_ORIGIN_TOPIC
	deadID   string // DLQ_ORIGIN_MESSAGE_ID
}

// kindHints are the properties that say what kind of message it is.
type kindHints struct{ transaction, delay, fifo, priority, lite bool }

func (h *kindHints) kind() v2.MessageType {
	switch {
	case h.transaction:
		return v2.MessageType_TRANSACTION
	case h.delay:
		return v2.MessageType_DELAY
	case h.fifo:
		return v2.MessageType_FIFO
	case h.priority:
		return v2.MessageType_PRIORITY
	case h.lite:
		return v2.MessageType_LITE
	default:
		return v2.MessageType_NORMAL
	}
}

// set makes the k-th record of b the one to encode.
func (e *deliveryEncoder) set(b *proxy.PopBatch, k int) error {
	e.batch, e.k = b, k
	_, err := message.DecodeStored(b.Records[k].Bytes, &e.m)
	return err
}

// append appends the message.
func (e *deliveryEncoder) append(b []byte) []byte {
	if e.head == nil {
		size := stringSize(1, e.topic.GetResourceNamespace()) + stringSize(2, e.topic.GetName())
		e.head = protowire.AppendTag(e.head, messageTopic, protowire.BytesType)
		e.head = protowire.AppendVarint(e.head, uint64(size))
		e.head = appendString(e.head, 1, e.topic.GetResourceNamespace())
		e.head = appendString(e.head, 2, e.topic.GetName())
	}
	e.system, e.user, e.kind = e.system[:0], e.user[:0], kindHints{}
	e.deadFrom, e.deadID = "", ""
	e.properties()
	e.rest()

	inner := len(e.head) + len(e.user) + protowire.SizeTag(messageSystem) + protowire.SizeBytes(len(e.system))
	if len(e.m.Body) > 0 {
		inner += protowire.SizeTag(messageBody) + protowire.SizeBytes(len(e.m.Body))
	}
	b = slices.Grow(b, protowire.SizeTag(responseMessage)+protowire.SizeBytes(inner))
	b = protowire.AppendTag(b, responseMessage, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(inner))
	b = append(b, e.head...)
	b = append(b, e.user...)
	b = protowire.AppendTag(b, messageSystem, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(len(e.system)))
	b = append(b, e.system...)
	if len(e.m.Body) > 0 {
		b = protowire.AppendTag(b, messageBody, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(len(e.m.Body)))
		b = append(b, e.m.Body...)
	}
	return b
}

// properties goes through the message's properties once: those that gRPC has fields for
// into the system properties, those that are the server's own nowhere, the others into
// the user's.
func (e *deliveryEncoder) properties() {
	var id, bornHost string
	for name, value := range e.m.Properties.All() {
		switch name {
		case message.PropertyTags:
			e.system = appendString(e.system, 1, value)
		case message.PropertyKeys:
			e.keys(value)
		case message.PropertyUniqKey:
			id = value
		case message.PropertyBornHost:
			bornHost = value
		case message.PropertyTransaction:
			e.kind.transaction = value == "true"
		case message.PropertyDelay:
			e.kind.delay = true
		case message.PropertyTimerDelaySec:
			e.kind.delay = true
			if n, err := strconv.ParseInt(value, 10, 32); err == nil {
				e.system = appendTime(e.system, 11, e.m.StoreTimestamp+n*1000)
			}
		case message.PropertyTimerDeliverMs:
			e.kind.delay = true
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				e.system = appendTime(e.system, 11, n)
			}
		case message.PropertyPriority:
			if n, err := strconv.ParseInt(value, 10, 32); err == nil && n >= 0 {
				e.kind.priority = true
				e.system = protowire.AppendVarint(protowire.AppendTag(e.system, 22, protowire.VarintType), uint64(n))
			}
		case message.PropertyShardingKey:
			e.kind.fifo = true
			e.system = appendString(e.system, 17, value)
			e.entry(name, value)
		case message.PropertyLiteTopic:
			e.kind.lite = true
			e.system = appendString(e.system, 21, value)
		case message.PropertyTraceContext:
			e.system = appendString(e.system, 18, value)
			e.entry(name, value)
		case message.PropertyDeadLetterOriginTopic:
			e.deadFrom = value
		case message.PropertyDeadLetterOriginMessageID:
			e.deadID = value
		default:
			if !message.Reserved(name) {
				e.entry(name, value)
			}
		}
	}
	if id == "" {
		id = e.m.OffsetID()
	}
	e.system = appendString(e.system, 3, id)
	if bornHost == "" {
		bornHost = e.m.BornHost.Addr().String()
	}
	e.system = appendString(e.system, 8, bornHost)
}

// entry appends one entry of the user properties' map.
func (e *deliveryEncoder) entry(name, value string) {
	e.user = protowire.AppendTag(e.user, messageProperties, protowire.BytesType)
	e.user = protowire.AppendVarint(e.user, uint64(stringSize(1, name)+stringSize(2, value)))
	e.user = appendString(e.user, 1, name)
	e.user = appendString(e.user, 2, value)
}

func (e *deliveryEncoder) keys(value string) {
	for value != "" {
		var key string
		key, value, _ = strings.Cut(value, " ")
		e.system = appendString(e.system, 2, key)
	}
}

// rest appends the system properties that are no properties of the message.
func (e *deliveryEncoder) rest() {
	m := &e.m
	b := e.system
	b = appendDigest(b, e.digest, m.Body)
	encoding := v2.Encoding_IDENTITY
	if m.SysFlag&message.SysCompressed != 0 {
		encoding = v2.Encoding_GZIP
	}
	b = appendVarint(b, 5, uint64(encoding))
	b = appendVarint(b, 6, uint64(e.kind.kind()))
	b = appendTime(b, 7, m.BornTimestamp)
	b = appendTime(b, 9, m.StoreTimestamp)
	var addr [64]byte
	b = appendBytes(b, 10, m.StoreHost.AppendTo(addr[:0]))
	e.handle = handleOf(e.popped, e.batch, e.k).AppendTo(e.handle[:0])
	b = appendBytes(b, 12, e.handle)
	queue, offset := m.QueueID, m.QueueOffset
	if e.batch.Lite != "" { // where it is in its lite topic, not in the parent
		queue, offset = e.batch.QueueID, e.batch.Records[e.k].QueueOffset
	}
	b = appendVarint(b, 13, uint64(queue))
	b = protowire.AppendVarint(protowire.AppendTag(b, 14, protowire.VarintType), uint64(offset))
	attempts := m.ReconsumeTimes
	if e.batch.Attempts != nil {
		attempts = e.batch.Attempts[e.k]
	}
	b = appendVarint(b, 16, uint64(attempts+1))
	if e.deadFrom != "" && e.deadID != "" {
		b = protowire.AppendTag(b, 20, protowire.BytesType)
		b = protowire.AppendVarint(b, uint64(stringSize(1, e.deadFrom)+stringSize(2, e.deadID)))
		b = appendString(b, 1, e.deadFrom)
		b = appendString(b, 2, e.deadID)
	}
	e.system = b
}

// digestKind is how the body's digest is made.
type digestKind byte

const (
	digestMD5 digestKind = iota
	// digestCRC is CRC32 where all clients write it alike, which they do if it begins
	// with no zero, else MD5.
	digestCRC
)

// digestFor is the digest for a client of the language: CRC32 costs a fifteenth of MD5
// and is read by the Go and Java clients; of the others some compare it in decimal.
// docs/decisions/0041-body-digest.md
func digestFor(language string) digestKind {
	switch language {
	case "GO", "JAVA": // as those clients write it in their headers
		return digestCRC
	default:
		return digestMD5
	}
}

func appendDigest(b []byte, kind digestKind, body []byte) []byte {
	const digits = "0123456789ABCDEF"
	if kind == digestCRC {
		if sum := crc32.ChecksumIEEE(body); sum >= 1<<28 {
			var text [8]byte
			for i := range text {
				text[i] = digits[sum>>(28-4*i)&0xf]
			}
			return appendDigestField(b, v2.DigestType_CRC32, text[:])
		}
	}
	sum := md5.Sum(body)
	var text [2 * md5.Size]byte
	hex.Encode(text[:], sum[:])
	for i, c := range text {
		if c >= 'a' {
			text[i] = c - 'a' + 'A'
		}
	}
	return appendDigestField(b, v2.DigestType_MD5, text[:])
}

func appendDigestField(b []byte, kind v2.DigestType, text []byte) []byte {
	b = protowire.AppendTag(b, 4, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(varintSize(1, uint64(kind))+protowire.SizeTag(2)+protowire.SizeBytes(len(text))))
	b = appendVarint(b, 1, uint64(kind))
	return appendBytes(b, 2, text)
}

// messageOf is a stored record as a message of its own, outside a receive.
func messageOf(topic string, record []byte) (*v2.Message, error) {
	p := &proxy.Popped{Batches: []proxy.PopBatch{{Records: []storage.Record{{Bytes: record}}}}}
	e := deliveryEncoder{topic: &v2.Resource{Name: topic}, popped: p}
	if err := e.set(&p.Batches[0], 0); err != nil {
		return nil, err
	}
	var resp v2.ReceiveMessageResponse
	if err := proto.Unmarshal(e.append(nil), &resp); err != nil {
		return nil, err
	}
	resp.GetMessage().SystemProperties.ReceiptHandle = nil
	return resp.GetMessage(), nil
}

package bench

import (
	"strconv"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// shape is what messages have that plain ones don't. What a nil function would add is nothing.
type shape struct {
	kind    string // message.type of a topic that is made for them; NORMAL when empty
	sysFlag int32

	properties func(b []byte, number int64) []byte        // appends some, over Remoting
	fields     func(p *v2.SystemProperties, number int64) // sets some, over gRPC
}

// dueAt are messages with a time before which nobody gets them.
func dueAt(due func(number int64) time.Time) shape {
	return shape{
		kind: "DELAY",
		properties: func(b []byte, number int64) []byte {
			b = append(b, message.PropertyTimerDeliverMs+"\x01"...)
			return append(strconv.AppendInt(b, due(number).UnixMilli(), 10), 2)
		},
		fields: func(p *v2.SystemProperties, number int64) {
			p.MessageType, p.DeliveryTimestamp = v2.MessageType_DELAY, timestamppb.New(due(number))
		},
	}
}

// toLite are messages of lite topics, which are sent over gRPC.
func toLite(name func(number int64) string) shape {
	return shape{kind: "LITE", fields: func(p *v2.SystemProperties, number int64) {
		lite := name(number)
		p.MessageType, p.LiteTopic = v2.MessageType_LITE, &lite
	}}
}

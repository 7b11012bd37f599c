package main

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// scriptText is the property "text" of the scripts' samples.
const scriptText = `größe 消息 / "quoted" {a:1} = ; , 🚀`

// sendPacked sends the scripts' samples 0, 1 and 2, packed by gzip, packed by zlib, and plain:
// clients that read packed bodies send none.
func (h *harness) sendPacked(ctx context.Context, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	for n, pack := range []func(io.Writer) io.WriteCloser{
		func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
		nil,
	} {
		body, flag := scriptBody(n), int32(0)
		if pack != nil {
			var b bytes.Buffer
			w := pack(&b)
			w.Write(body)
			w.Close()
			body, flag = b.Bytes(), message.SysCompressed
		}
		properties := message.Properties("").With(message.PropertyUniqKey, message.NewUniqueID()).With(message.PropertyTags, fmt.Sprint("tag", n)).
			With(message.PropertyKeys, fmt.Sprint("key-", n)).With("text", scriptText).With("number", fmt.Sprint(n))
		r, err := c.Call(ctx, h.target.Broker, remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: topic,
			DefaultTopic: "TBW102", DefaultTopicQueueNums: 8, SysFlag: flag, BornTimestamp: time.Now().UnixMilli(), Properties: string(properties)}, body)
		if err != nil || r.Code != remoting.ResSuccess {
			return fmt.Errorf("send a packed body: %v, %+v", err, r)
		}
	}
	return nil
}

// scriptBody is the body of the scripts' sample.
func scriptBody(n int) []byte {
	body := fmt.Appendf(nil, "%d:", n)
	for b := range 256 {
		body = append(body, byte(b))
	}
	return body
}

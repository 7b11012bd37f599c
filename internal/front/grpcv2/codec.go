package grpcv2

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// wireReader decodes itself. It owns buf from then on and frees it when nothing aliases
// it any more; it does so also when it returns an error.
type wireReader interface{ readWire(buf mem.Buffer) error }

// wireWriter encodes itself. grpc-go frees what it returns when it is on the wire.
type wireWriter interface {
	appendWire() (mem.BufferSlice, error)
}

// codec is the protobuf codec with a way round for the messages of the hot RPCs, which
// read and write the wire format themselves: no object per field, no copy of a body.
type codec struct {
	proto   encoding.CodecV2
	buffers mem.BufferPool
}

func newCodec() encoding.CodecV2 {
	return codec{proto: encoding.GetCodecV2(proto.Name), buffers: mem.DefaultBufferPool()}
}

// Name implements encoding.CodecV2.
func (c codec) Name() string { return proto.Name }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if w, ok := v.(wireWriter); ok {
		return w.appendWire()
	}
	return c.proto.Marshal(v)
}

// maxPlain is the largest message of an RPC that carries no bodies. Only sends may be as
// large as maxInbound; in others that much would be millions of empty elements, each of
// them many times its size in memory.
const maxPlain = 4 << 20

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(wireReader); ok {
		return r.readWire(data.MaterializeToBuffer(c.buffers))
	}
	if n := data.Len(); n > maxPlain {
		return fmt.Errorf("the message has %d bytes, the most is %d", n, maxPlain)
	}
	return c.proto.Unmarshal(data, v)
}

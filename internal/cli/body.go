package cli

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// maxUnpacked bounds what a compressed body may become.
const maxUnpacked = 64 << 20

// unpacked is the body as its sender gave it to the client.
func unpacked(m *message.Message) ([]byte, error) {
	var from io.Reader
	switch message.Compression(m.SysFlag) {
	case 0:
		return m.Body, nil
	case message.SysLZ4:
		from = lz4.NewReader(bytes.NewReader(m.Body))
	case message.SysZSTD:
		z, err := zstd.NewReader(bytes.NewReader(m.Body), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		from = z
	case message.SysZLIB:
		z, err := zlib.NewReader(bytes.NewReader(m.Body))
		if err != nil {
			return nil, err
		}
		defer z.Close()
		from = z
	default:
		return nil, fmt.Errorf("message %s is compressed in an unknown way (system flag %#x)", m.UniqueID(), m.SysFlag)
	}
	body, err := io.ReadAll(io.LimitReader(from, maxUnpacked+1))
	if err == nil && len(body) > maxUnpacked {
		err = fmt.Errorf("more than %d bytes", maxUnpacked)
	}
	if err != nil {
		return nil, fmt.Errorf("body of message %s: %w", m.UniqueID(), err)
	}
	return body, nil
}

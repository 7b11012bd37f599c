package remoting

import (
	"encoding/binary"
	"errors"
	"math"
)

var errBinaryShort = errors.New("binary header ends within a field")

// binaryFixed is code 2, language 1, version 2, opaque 4, flag 4.
const binaryFixed = 13

// parseBinary reads the ROCKETMQ encoding. A string of length 0 reads as absent.
func (c *Command) parseBinary(b []byte) error {
	if len(b) < binaryFixed {
		return errBinaryShort
	}
	c.Code = int32(int16(binary.BigEndian.Uint16(b)))
	c.Language = Language(b[2])
	c.Version = int32(int16(binary.BigEndian.Uint16(b[3:])))
	c.Opaque = int32(binary.BigEndian.Uint32(b[5:]))
	c.Flag = int32(binary.BigEndian.Uint32(b[9:]))
	remark, b, err := binaryBytes(b[binaryFixed:])
	if err != nil {
		return err
	}
	c.Remark = string(remark)
	ext, _, err := binaryBytes(b)
	if err != nil {
		return err
	}
	for len(ext) > 0 {
		if len(ext) < 2 {
			return errBinaryShort
		}
		n := int(binary.BigEndian.Uint16(ext))
		if n > math.MaxInt16 || n > len(ext)-2 {
			return errBinaryShort
		}
		var f field
		f.name, ext = ext[2:2+n], ext[2+n:]
		if f.value, ext, err = binaryBytes(ext); err != nil {
			return err
		}
		if len(f.name) > 0 && len(f.value) > 0 {
			if len(c.Ext.list) == maxFields {
				return errFields
			}
			c.Ext.list = append(c.Ext.list, f)
		}
	}
	return nil
}

// binaryBytes takes a 4-byte length and that many bytes.
func binaryBytes(b []byte) (value, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errBinaryShort
	}
	n := int64(int32(binary.BigEndian.Uint32(b)))
	if n < 0 || n > int64(len(b)-4) {
		return nil, nil, errBinaryShort
	}
	return b[4 : 4+n], b[4+n:], nil
}

// AppendBinary appends c as a whole frame with a ROCKETMQ header. We never answer so;
// it is here for callers that imitate such a client. A code beyond 16 bits is cut, as
// the encoding cannot carry it.
func (c *Command) AppendBinary(dst []byte) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Code))
	dst = append(dst, byte(c.Language))
	dst = binary.BigEndian.AppendUint16(dst, uint16(c.Version))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Opaque))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Flag))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(c.Remark)))
	dst = append(dst, c.Remark...)
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	for _, f := range c.Ext.list {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(f.name)))
		dst = append(dst, f.name...)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(f.value)))
		dst = append(dst, f.value...)
	}
	binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	size := len(dst) - start - LengthSize - minFrame
	binary.BigEndian.PutUint32(dst[start+LengthSize:], uint32(Binary)<<24|uint32(size))
	dst = append(dst, c.Body...)
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-LengthSize))
	return dst
}

package message

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// ErrIllegalID is what a refused message id wraps.
var ErrIllegalID = errors.New("illegal message id")

// OffsetID is the message id made of where the message is: store host and log offset.
func OffsetID(storeHost netip.AddrPort, physicalOffset int64) string {
	var text [56]byte
	return string(AppendOffsetID(text[:0], storeHost, physicalOffset))
}

// AppendOffsetID appends an OffsetID to dst.
func AppendOffsetID(dst []byte, storeHost netip.AddrPort, physicalOffset int64) []byte {
	var raw [28]byte
	id := appendHost(raw[:0], storeHost, isV6(storeHost.Addr(), 0))
	id = binary.BigEndian.AppendUint64(id, uint64(physicalOffset))
	return appendUpperHex(dst, id)
}

// ParseOffsetID takes an OffsetID apart.
func ParseOffsetID(text string) (storeHost netip.AddrPort, physicalOffset int64, err error) {
	if len(text) != 32 && len(text) != 56 {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %.64q has %d characters, not 32 or 56", ErrIllegalID, text, len(text))
	}
	var raw [28]byte
	n, err := hex.Decode(raw[:], []byte(text))
	if err != nil {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %.64q is not hexadecimal", ErrIllegalID, text)
	}
	return decodeHost(raw[:n-8]), int64(binary.BigEndian.Uint64(raw[n-8:])), nil
}

// unique is what all ids of this process share, and their counter. The first bytes are
// random instead of an address: two servers in one process or behind one address must
// never make the same id.
var unique = struct {
	prefix  [10]byte
	counter atomic.Uint32
}{prefix: uniquePrefix()}

func uniquePrefix() (p [10]byte) {
	_, _ = rand.Read(p[:])
	binary.BigEndian.PutUint16(p[4:], uint16(os.Getpid()))
	return p
}

// NewUniqueID makes a UNIQ_KEY for a message that came without one. Clients read its time
// back to narrow a search, in the machine's time zone.
func NewUniqueID() string {
	now := time.Now()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	var raw [16]byte
	copy(raw[:], unique.prefix[:])
	binary.BigEndian.PutUint32(raw[10:], uint32(now.Sub(month).Milliseconds()))
	binary.BigEndian.PutUint16(raw[14:], uint16(unique.counter.Add(1)))
	return upperHex(raw[:])
}

func upperHex(raw []byte) string {
	var text [56]byte
	return string(appendUpperHex(text[:0], raw))
}

func appendUpperHex(dst, raw []byte) []byte {
	const digits = "0123456789ABCDEF"
	for _, c := range raw {
		dst = append(dst, digits[c>>4], digits[c&15])
	}
	return dst
}

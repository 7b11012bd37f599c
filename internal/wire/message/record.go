package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"strings"
	"unsafe"
)

// The second word of a record.
const (
	MagicV1    uint32 = 0xDAA320A7 // topic length in one byte
	MagicV2    uint32 = 0xDAA320AB // topic length in two bytes
	MagicBlank uint32 = 0xCBD43194 // nothing more in this file
)

// Positions of the fields that do not move.
const (
	atSize           = 0
	atMagic          = 4
	atBodyCRC        = 8
	atQueueID        = 12
	atFlag           = 16
	atQueueOffset    = 20
	atPhysicalOffset = 28
	atSysFlag        = 36
	atBornTimestamp  = 40
	atBornHost       = 48

	// HeaderSize is how much of a record PeekHeader wants to see.
	HeaderSize = 76
	// BlankSize is the size of an end-of-file record, and the room that must stay behind
	// every record for one.
	BlankSize = 8

	hostV4, hostV6 = 8, 20
	fixedSize      = 91 // two IPv4 hosts, one byte of topic length
	maxTopicV1     = 127
	crcSize        = len(PropertyCRC) + 1 + 10 + 1

	// CRCRoom is what AppendStoredCRC may add to the properties.
	CRCRoom = crcSize + 1
)

// Errors of decoding and encoding.
var (
	// ErrBlank: an end-of-file record; DecodeStored's n is what is left of the file.
	ErrBlank = errors.New("end of the log file")
	// ErrTorn: the bytes end before the record does, or no record was written here.
	ErrTorn = errors.New("torn record")
	// ErrCorrupt: the fields contradict each other.
	ErrCorrupt = errors.New("corrupt record")
	// ErrChecksum: the bytes are not those that were written.
	ErrChecksum = errors.New("record checksum does not match")

	// ErrPropertiesTooLarge: the properties' length does not fit its field.
	ErrPropertiesTooLarge = errors.New("message properties too large")
	// ErrTopicTooLong: the topic's length does not fit its field.
	ErrTopicTooLong = errors.New("topic too long")
	// ErrBodyTooLarge: the record's length does not fit its field. Servers have a lower
	// limit of their own.
	ErrBodyTooLarge = errors.New("message body too large")
)

// StoredSize is the size of the record that AppendStored makes of m.
func StoredSize(m *Message) (int, error) {
	properties := cleanProperties(m.Properties)
	length := len(properties)
	if length > 0 && properties[length-1] == 0 {
		length++
	}
	return storedSize(m, length)
}

func storedSize(m *Message, properties int) (int, error) {
	size := fixedSize + len(m.Body) + len(m.Topic) + properties
	if isV6(m.BornHost.Addr(), m.SysFlag&SysBornHostV6) {
		size += hostV6 - hostV4
	}
	if isV6(m.StoreHost.Addr(), m.SysFlag&SysStoreHostV6) {
		size += hostV6 - hostV4
	}
	if len(m.Topic) > maxTopicV1 {
		size++
	}
	switch {
	case len(m.Topic) > math.MaxInt16:
		return 0, fmt.Errorf("%w: the topic has %d bytes, the limit is %d", ErrTopicTooLong, len(m.Topic), math.MaxInt16)
	case properties > MaxProperties:
		return 0, fmt.Errorf("%w: the properties have %d bytes, the limit is %d", ErrPropertiesTooLarge, properties, MaxProperties)
	case size > math.MaxInt32:
		return 0, fmt.Errorf("%w: the record has %d bytes, the limit is %d", ErrBodyTooLarge, size, math.MaxInt32)
	}
	return size, nil
}

// AppendStored appends the record of m to dst. The queue offset, the physical offset and
// the store time are m's; the log that only learns them later calls Patch. The two host
// bits of the system flag follow the hosts. A CRC property that came with m is left out:
// it speaks of other bytes, and a reader would take this record for damaged.
func AppendStored(dst []byte, m *Message) ([]byte, error) {
	return appendRecord(dst, m, cleanProperties(m.Properties), false)
}

// AppendStoredCRC is AppendStored with room for a checksum of the whole record at the end
// of the properties, which Patch fills in.
func AppendStoredCRC(dst []byte, m *Message) ([]byte, error) {
	return appendRecord(dst, m, cleanProperties(m.Properties), true)
}

func appendRecord(dst []byte, m *Message, properties Properties, withCRC bool) ([]byte, error) {
	length := len(properties)
	closing := length > 0 && (properties[length-1] == 0 || withCRC && properties[length-1] != valueEnd)
	if closing {
		length++
	}
	if withCRC {
		length += crcSize
	}
	size, err := storedSize(m, length)
	if err != nil {
		return dst, err
	}
	bornV6 := isV6(m.BornHost.Addr(), m.SysFlag&SysBornHostV6)
	storeV6 := isV6(m.StoreHost.Addr(), m.SysFlag&SysStoreHostV6)
	flag := m.SysFlag &^ (SysBornHostV6 | SysStoreHostV6)
	if bornV6 {
		flag |= SysBornHostV6
	}
	if storeV6 {
		flag |= SysStoreHostV6
	}
	magic := MagicV1
	if len(m.Topic) > maxTopicV1 {
		magic = MagicV2
	}

	start := len(dst)
	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(size))
	dst = be.AppendUint32(dst, magic)
	dst = be.AppendUint32(dst, bodyCRC(m.Body))
	dst = be.AppendUint32(dst, uint32(m.QueueID))
	dst = be.AppendUint32(dst, uint32(m.Flag))
	dst = be.AppendUint64(dst, uint64(m.QueueOffset))
	dst = be.AppendUint64(dst, uint64(m.PhysicalOffset))
	dst = be.AppendUint32(dst, uint32(flag))
	dst = be.AppendUint64(dst, uint64(m.BornTimestamp))
	dst = appendHost(dst, m.BornHost, bornV6)
	dst = be.AppendUint64(dst, uint64(m.StoreTimestamp))
	dst = appendHost(dst, m.StoreHost, storeV6)
	dst = be.AppendUint32(dst, uint32(m.ReconsumeTimes))
	dst = be.AppendUint64(dst, uint64(m.PreparedTransactionOffset))
	dst = be.AppendUint32(dst, uint32(len(m.Body)))
	dst = append(dst, m.Body...)
	if magic == MagicV2 {
		dst = be.AppendUint16(dst, uint16(len(m.Topic)))
	} else {
		dst = append(dst, byte(len(m.Topic)))
	}
	dst = append(dst, m.Topic...)
	dst = be.AppendUint16(dst, uint16(length))
	dst = append(dst, properties...)
	if closing {
		dst = append(dst, valueEnd)
	}
	if withCRC {
		dst = append(dst, PropertyCRC+"\x010000000000\x02"...)
		patchCRC(dst[start:])
	}
	return dst, nil
}

// cleanProperties leaves out what only the store itself may write.
func cleanProperties(p Properties) Properties {
	if strings.Contains(string(p), PropertyCRC) {
		return p.Without(PropertyCRC)
	}
	return p
}

// AppendBlank appends an end-of-file record saying that remaining bytes of the file, its
// own eight included, hold nothing.
func AppendBlank(dst []byte, remaining int32) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(remaining))
	return binary.BigEndian.AppendUint32(dst, MagicBlank)
}

// Patch writes into a whole record what the log knows only when it places it, and redoes
// the CRC property where there is one.
func Patch(record []byte, queueOffset, physicalOffset, storeTimestamp int64) {
	be := binary.BigEndian
	be.PutUint64(record[atQueueOffset:], uint64(queueOffset))
	be.PutUint64(record[atPhysicalOffset:], uint64(physicalOffset))
	be.PutUint64(record[atStoreTimestamp(record):], uint64(storeTimestamp))
	patchCRC(record)
}

func atStoreTimestamp(record []byte) int {
	if int32(binary.BigEndian.Uint32(record[atSysFlag:]))&SysBornHostV6 != 0 {
		return atBornHost + hostV6
	}
	return atBornHost + hostV4
}

// Header is what the first HeaderSize bytes of a record tell.
type Header struct {
	Size           int32
	Magic          uint32
	QueueID        int32
	QueueOffset    int64
	PhysicalOffset int64
	SysFlag        int32
	StoreTimestamp int64
}

// PeekHeader reads the head of a record without looking at the rest. It reports false
// when there are not enough bytes or they are no record's; an end-of-file record has Size
// and Magic only, and needs no more than BlankSize bytes.
func PeekHeader(record []byte) (h Header, ok bool) {
	if len(record) < BlankSize {
		return Header{}, false
	}
	be := binary.BigEndian
	h.Size = int32(be.Uint32(record[atSize:]))
	h.Magic = be.Uint32(record[atMagic:])
	if h.Magic == MagicBlank {
		return h, h.Size >= BlankSize
	}
	if (h.Magic != MagicV1 && h.Magic != MagicV2) || h.Size < fixedSize || len(record) < HeaderSize {
		return h, false
	}
	h.QueueID = int32(be.Uint32(record[atQueueID:]))
	h.QueueOffset = int64(be.Uint64(record[atQueueOffset:]))
	h.PhysicalOffset = int64(be.Uint64(record[atPhysicalOffset:]))
	h.SysFlag = int32(be.Uint32(record[atSysFlag:]))
	h.StoreTimestamp = int64(be.Uint64(record[atStoreTimestamp(record):]))
	return h, true
}

// IsOf reports whether a stored record is in a queue of a topic, and has that offset there.
func IsOf(record []byte, topic string, queueID int32, offset int64) bool {
	be := binary.BigEndian
	if len(record) < fixedSize || int32(be.Uint32(record[atQueueID:])) != queueID || int64(be.Uint64(record[atQueueOffset:])) != offset {
		return false
	}
	at, ok := atTopic(record)
	width := int64(1)
	if be.Uint32(record[atMagic:]) == MagicV2 {
		width = 2
	}
	from, end := at+width, at+width+int64(len(topic))
	if !ok || end > int64(len(record)) {
		return false
	}
	length := int(record[from-1])
	if width == 2 {
		length |= int(record[at]) << 8
	}
	return length == len(topic) && string(record[from:end]) == topic
}

// atTopic is where the length of a record's topic is; false when the record does not reach so far.
func atTopic(record []byte) (int64, bool) {
	be := binary.BigEndian
	born, store := hostSizes(int32(be.Uint32(record[atSysFlag:])))
	atBody := int64(atBornHost + born + 8 + store + 4 + 8)
	if int64(len(record)) < atBody+4 {
		return 0, false
	}
	at := atBody + 4 + int64(int32(be.Uint32(record[atBody:])))
	return at, at >= atBody+4 && at <= int64(len(record))
}

// DecodeStored reads the record at the start of record into m and returns its size. All
// fields of m are set; topic, properties and body alias record. It checks that sizes and
// lengths agree, not the checksums. n is also valid with ErrBlank, and it is what the
// record would need with ErrTorn, if that is known.
func DecodeStored(record []byte, m *Message) (n int, err error) {
	be := binary.BigEndian
	if len(record) < BlankSize {
		return 0, ErrTorn
	}
	size := int32(be.Uint32(record[atSize:]))
	magic := be.Uint32(record[atMagic:])
	switch {
	case magic == MagicBlank && size >= BlankSize:
		return int(size), ErrBlank
	case magic == 0 && size == 0:
		return 0, ErrTorn
	case (magic != MagicV1 && magic != MagicV2) || size < fixedSize:
		return 0, ErrCorrupt
	case int(size) > len(record):
		return int(size), ErrTorn
	}
	record = record[:size:size]

	m.StoreSize = size
	m.BodyCRC = int32(be.Uint32(record[atBodyCRC:]))
	m.QueueID = int32(be.Uint32(record[atQueueID:]))
	m.Flag = int32(be.Uint32(record[atFlag:]))
	m.QueueOffset = int64(be.Uint64(record[atQueueOffset:]))
	m.PhysicalOffset = int64(be.Uint64(record[atPhysicalOffset:]))
	m.SysFlag = int32(be.Uint32(record[atSysFlag:]))
	m.BornTimestamp = int64(be.Uint64(record[atBornTimestamp:]))

	bornSize, storeSize := hostSizes(m.SysFlag)
	rest := record[atBornHost:]
	if len(rest) < bornSize+8+storeSize+4+8+4 {
		return 0, ErrCorrupt
	}
	m.BornHost, rest = decodeHost(rest[:bornSize]), rest[bornSize:]
	m.StoreTimestamp, rest = int64(be.Uint64(rest)), rest[8:]
	m.StoreHost, rest = decodeHost(rest[:storeSize]), rest[storeSize:]
	m.ReconsumeTimes, rest = int32(be.Uint32(rest)), rest[4:]
	m.PreparedTransactionOffset, rest = int64(be.Uint64(rest)), rest[8:]

	var ok bool
	if m.Body, rest, ok = cut(rest[4:], int64(int32(be.Uint32(rest)))); !ok {
		return 0, ErrCorrupt
	}
	if m.Topic, m.Properties, ok = decodeTail(rest, magic == MagicV2); !ok {
		return 0, ErrCorrupt
	}
	return int(size), nil
}

// PropertiesOf is the properties of a whole stored record, aliasing it, without looking at
// the rest: what a filter has to know.
func PropertiesOf(record []byte) (Properties, bool) {
	if len(record) < fixedSize {
		return "", false
	}
	at, ok := atTopic(record)
	if !ok {
		return "", false
	}
	_, properties, ok := decodeTail(record[at:], binary.BigEndian.Uint32(record[atMagic:]) == MagicV2)
	return properties, ok
}

// decodeTail reads topic and properties, which must fill rest exactly.
func decodeTail(rest []byte, wide bool) (topic string, properties Properties, ok bool) {
	var length int64
	switch {
	case wide && len(rest) >= 2:
		length, rest = int64(int16(binary.BigEndian.Uint16(rest))), rest[2:]
	case !wide && len(rest) >= 1:
		length, rest = int64(rest[0]), rest[1:]
	default:
		return "", "", false
	}
	name, rest, ok := cut(rest, length)
	if !ok || len(rest) < 2 {
		return "", "", false
	}
	length = int64(int16(binary.BigEndian.Uint16(rest)))
	text, rest, ok := cut(rest[2:], length)
	if !ok || len(rest) != 0 {
		return "", "", false
	}
	return aliased(name), Properties(aliased(text)), true
}

// CheckCRC reports whether a whole record still has the bytes that were written: the
// checksum of the body, and the one of the whole record where it carries one.
func CheckCRC(record []byte) error {
	var m Message
	n, err := DecodeStored(record, &m)
	if err != nil {
		return err
	}
	if uint32(m.BodyCRC) != bodyCRC(m.Body) {
		return fmt.Errorf("%w: body", ErrChecksum)
	}
	if len(m.Properties) > 0 && endsUnwritten(record[:n], m.PhysicalOffset) {
		// What it would say of its checksum is missing with the rest.
		return fmt.Errorf("%w: properties", ErrTorn)
	}
	digits, ok := crcDigits(record[:n])
	if !ok {
		return nil
	}
	var want [10]byte
	putDigits(want[:], bodyCRC(record[:n-crcSize]))
	if string(digits) != string(want[:]) {
		return fmt.Errorf("%w: whole record", ErrChecksum)
	}
	return nil
}

// sector is what a disk writes whole: what a power cut has kept from being written begins
// at the multiple of one.
const sector = 512

// endsUnwritten reports whether the end of a record at this place of the log looks like what
// was never written: zeros from a sector's beginning on. No record of ours ends with a zero;
// one of another server may, with a value that does.
func endsUnwritten(record []byte, physicalOffset int64) bool {
	written := len(bytes.TrimRight(record, "\x00"))
	return written < len(record) && (physicalOffset+int64(written))%sector == 0
}

// crcDigits are the ten digits of a CRC property at the very end of the record.
func crcDigits(record []byte) ([]byte, bool) {
	if len(record) < fixedSize+crcSize {
		return nil, false
	}
	tail := record[len(record)-crcSize:]
	if tail[crcSize-1] != valueEnd || string(tail[:len(PropertyCRC)+1]) != PropertyCRC+"\x01" {
		return nil, false
	}
	return tail[len(PropertyCRC)+1 : crcSize-1], true
}

func patchCRC(record []byte) {
	if digits, ok := crcDigits(record); ok {
		putDigits(digits, bodyCRC(record[:len(record)-crcSize]))
	}
}

// putDigits writes v in decimal, the least significant digit first, filled up with zeros.
func putDigits(dst []byte, v uint32) {
	for i := range dst {
		dst[i] = '0' + byte(v%10)
		v /= 10
	}
}

// bodyCRC is CRC-32 (IEEE) without its sign bit.
func bodyCRC(data []byte) uint32 { return crc32.ChecksumIEEE(data) & math.MaxInt32 }

// isV6 reports whether addr takes 16 bytes. An IPv4 address inside an IPv6 one does only
// where it was read so, or rewriting a record would change its bytes.
func isV6(addr netip.Addr, flagged int32) bool {
	return addr.Is6() && (!addr.Is4In6() || flagged != 0)
}

func hostSizes(sysFlag int32) (born, store int) {
	born, store = hostV4, hostV4
	if sysFlag&SysBornHostV6 != 0 {
		born = hostV6
	}
	if sysFlag&SysStoreHostV6 != 0 {
		store = hostV6
	}
	return born, store
}

func appendHost(dst []byte, host netip.AddrPort, v6 bool) []byte {
	switch addr := host.Addr(); {
	case v6:
		ip := addr.As16()
		dst = append(dst, ip[:]...)
	case addr.IsValid():
		ip := addr.Unmap().As4()
		dst = append(dst, ip[:]...)
	default:
		dst = append(dst, 0, 0, 0, 0)
	}
	return binary.BigEndian.AppendUint32(dst, uint32(host.Port()))
}

// decodeHost reads an address and a port; of the port's four bytes two can mean anything.
func decodeHost(raw []byte) netip.AddrPort {
	port := uint16(binary.BigEndian.Uint32(raw[len(raw)-4:]))
	if len(raw) == hostV6 {
		return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[:16])), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[:4])), port)
}

func cut(b []byte, n int64) (head, rest []byte, ok bool) {
	if n < 0 || n > int64(len(b)) {
		return nil, nil, false
	}
	return b[:n:n], b[n:], true
}

// aliased is b as a string without a copy.
func aliased(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

package pop

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"strings"

	"github.com/bolidemq/bolide/internal/storage/state"
)

// The layout of keys and values is drawn in docs/formats/state.md.

var errValue = errors.New("malformed POP state")

// appendWindowKey is group 0 topic 0 queue.
func appendWindowKey(dst []byte, k windowKey) []byte {
	dst = append(dst, k.group...)
	dst = append(dst, 0)
	dst = append(dst, k.topic...)
	dst = append(dst, 0)
	return binary.BigEndian.AppendUint32(dst, uint32(k.queue))
}

func parseWindowKey(key []byte) (windowKey, error) {
	if len(key) < 6 {
		return windowKey{}, errValue
	}
	names, queue := string(key[:len(key)-4]), key[len(key)-4:]
	group, rest, ok := strings.Cut(names, "\x00")
	topic, ok2 := strings.CutSuffix(rest, "\x00")
	if !ok || !ok2 {
		return windowKey{}, errValue
	}
	return windowKey{group: group, topic: topic, queue: int32(binary.BigEndian.Uint32(queue))}, nil
}

// windowRow is what the state database has of a window.
type windowRow struct {
	id    uint32
	next  int64
	floor int64 // of one that may be let go of, else 0
}

func appendWindowValue(dst []byte, r windowRow) []byte {
	dst = binary.BigEndian.AppendUint32(dst, r.id)
	dst = binary.BigEndian.AppendUint64(dst, uint64(r.next))
	if r.floor > 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.floor))
	}
	return dst
}

func parseWindowValue(v []byte) (r windowRow, err error) {
	if len(v) != 12 && len(v) != 20 {
		return r, errValue
	}
	r.id, r.next = binary.BigEndian.Uint32(v), int64(binary.BigEndian.Uint64(v[4:]))
	if len(v) == 20 {
		r.floor = int64(binary.BigEndian.Uint64(v[12:]))
	}
	return r, nil
}

// appendRecordKey is window, first offset, popTime: the name of the batch's first message.
func appendRecordKey(dst []byte, id uint32, first, popTime int64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, id)
	dst = binary.BigEndian.AppendUint64(dst, uint64(first))
	return binary.BigEndian.AppendUint64(dst, uint64(popTime))
}

// Flags of a record's value beside recordFlags: which optional parts follow.
const (
	partFailures = 1 << 4
	partOrder    = 1 << 5
	partUntil    = 1 << 6
)

// appendRecordValue writes what a record is beside its name. Times are relative to popTime.
func appendRecordValue(dst []byte, r *record, holder string) []byte {
	flags := byte(r.flags & persistent)
	m := r.more
	if m != nil {
		if m.failures > 0 {
			flags |= partFailures
		}
		if m.group != 0 || m.attempts != 0 {
			flags |= partOrder
		}
		if m.until != 0 {
			flags |= partUntil
		}
	}
	dst = append(dst, flags)
	dst = binary.AppendUvarint(dst, r.live>>r.first)
	dst = binary.AppendUvarint(dst, uint64(r.invisible))
	dst = binary.AppendVarint(dst, r.due-r.popTime)
	dst = binary.AppendUvarint(dst, uint64(len(holder)))
	dst = append(dst, holder...)
	if flags&partFailures != 0 {
		dst = binary.AppendUvarint(dst, uint64(m.failures))
	}
	if flags&partOrder != 0 {
		dst = binary.BigEndian.AppendUint64(dst, m.group)
		dst = binary.AppendUvarint(dst, uint64(m.attempts))
	}
	if flags&partUntil != 0 {
		dst = binary.AppendVarint(dst, m.until-r.popTime)
	}
	return dst
}

// parseRecord is the inverse of appendRecordKey and appendRecordValue; it returns the
// window's number and the holder's name beside the record.
func parseRecord(key, value []byte) (id uint32, r *record, holder string, err error) {
	if len(key) != 20 || len(value) == 0 {
		return 0, nil, "", errValue
	}
	first := int64(binary.BigEndian.Uint64(key[4:]))
	r = &record{
		base:    first &^ 63,
		first:   uint8(first & 63),
		popTime: int64(binary.BigEndian.Uint64(key[12:])),
		flags:   recordFlags(value[0]) & persistent,
		heapPos: -1,
	}
	in := state.ReadValue(value[1:])
	live := in.Uvarint()
	r.live = live << r.first
	r.invisible = int64(in.Uvarint())
	r.due = r.popTime + in.Varint()
	holder = string(in.Bytes(in.Uvarint()))
	if value[0]&partFailures != 0 {
		r.extra().failures = int(in.Uvarint())
	}
	if value[0]&partOrder != 0 {
		if g := in.Bytes(8); g != nil {
			r.extra().group = binary.BigEndian.Uint64(g)
		}
		r.extra().attempts = int32(in.Uvarint())
	}
	if value[0]&partUntil != 0 {
		r.extra().until = r.popTime + in.Varint()
	}
	if !in.Whole() || first < 0 || r.live == 0 || bits.LeadingZeros64(live) < int(r.first) {
		return 0, nil, "", errValue
	}
	return binary.BigEndian.Uint32(key), r, holder, nil
}

func appendAsideKey(dst []byte, id uint32, offset int64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, id)
	return binary.BigEndian.AppendUint64(dst, uint64(offset))
}

const asideAnyTag = 1

func appendAsideValue(dst []byte, e asideEntry) []byte {
	flags := byte(0)
	if e.anyTag {
		flags = asideAnyTag
	}
	dst = append(dst, flags)
	dst = binary.BigEndian.AppendUint64(dst, uint64(e.tagsCode))
	dst = binary.BigEndian.AppendUint64(dst, e.group)
	dst = binary.AppendUvarint(dst, uint64(e.attempts))
	return binary.AppendUvarint(dst, uint64(e.lastPop))
}

func parseAside(key, value []byte) (id uint32, e asideEntry, err error) {
	if len(key) != 12 || len(value) < 17 {
		return 0, e, errValue
	}
	e = asideEntry{
		offset:   int64(binary.BigEndian.Uint64(key[4:])),
		anyTag:   value[0]&asideAnyTag != 0,
		tagsCode: int64(binary.BigEndian.Uint64(value[1:])),
		group:    binary.BigEndian.Uint64(value[9:]),
	}
	in := state.ReadValue(value[17:])
	e.attempts = int32(in.Uvarint())
	e.lastPop = int64(in.Uvarint())
	if !in.Whole() || e.offset < 0 || e.attempts < 0 || e.lastPop < 0 {
		return 0, e, errValue
	}
	return binary.BigEndian.Uint32(key), e, nil
}

package storage

import (
	"errors"
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/keyindex"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// maxQuery is Apache's maxMsgsNumBatch.
const maxQuery = 64

// QueryKey finds records of topic by unique key or by a word of their KEYS, newest first,
// stored between begin and end (ms, inclusive). The records are copies.
func (e *Engine) QueryKey(topic, key string, max int, begin, end int64) ([]Record, error) {
	if max <= 0 || max > maxQuery {
		max = maxQuery
	}
	if key == "" {
		return nil, nil
	}
	birth := e.opt.Birth(topic)
	var found []Record
	var failed error
	err := e.index.Query(keyindex.Hash(keyindex.TopicHash(topic), key), begin, end, func(offset int64) bool {
		if offset < e.log.Min() || offset < birth || slices.ContainsFunc(found, func(r Record) bool { return r.PhysicalOffset == offset }) {
			return true
		}
		rec, err := e.log.ReadAt(offset)
		if errors.Is(err, commitlog.ErrNoRecord) {
			return true
		}
		if err != nil {
			failed = err
			return false
		}
		var m message.Message
		if _, err := message.DecodeStored(rec, &m); err != nil || m.Topic != topic || m.StoreTimestamp < begin || m.StoreTimestamp > end || !hasKey(&m, key) {
			return true
		}
		found = append(found, Record{QueueOffset: m.QueueOffset, PhysicalOffset: offset, TagsCode: message.TagsCode(m.Properties.Value(message.PropertyTags)), Bytes: rec})
		return len(found) < max
	})
	if err == nil {
		err = failed
	}
	return found, err
}

func hasKey(m *message.Message, key string) bool {
	if m.Properties.Value(message.PropertyUniqKey) == key {
		return true
	}
	for word := range strings.FieldsFuncSeq(m.Properties.Value(message.PropertyKeys), isSpace) {
		if word == key {
			return true
		}
	}
	return false
}

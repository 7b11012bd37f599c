package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// compileTags reads "A || B"; "*" and nothing mean every message.
func compileTags(text string) (*Expression, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed == matchAll {
		return all, nil
	}
	e := &Expression{kind: KindTag, text: text}
	for part := range strings.SplitSeq(trimmed, "||") {
		tag := strings.TrimSpace(part)
		if tag == "" || slices.Contains(e.tags, tag) {
			continue
		}
		e.tags = append(e.tags, tag)
		e.codes = append(e.codes, message.JavaHash(tag))
	}
	if e.tags == nil {
		return nil, fmt.Errorf("%w: %.64q names no tag", ErrIllegal, text)
	}
	slices.Sort(e.codes)
	e.codes = slices.Compact(e.codes)
	return e, nil
}

package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// fewTags is how many tags are looked through rather than looked up.
const fewTags = 16

// compileTags reads "A || B"; "*" and nothing mean every message.
func compileTags(text string) (*Expression, error) {
	trimmed := strings.TrimSpace(text)
	if trimmed == "" || trimmed == matchAll {
		return all, nil
	}
	e := &Expression{kind: KindTag, text: text}
	var seen map[string]bool // instead of the list where that is long
	for part := range strings.SplitSeq(trimmed, "||") {
		tag := strings.TrimSpace(part)
		if tag == "" || seen[tag] || seen == nil && slices.Contains(e.tags, tag) {
			continue
		}
		if seen == nil && len(e.tags) == fewTags {
			seen = make(map[string]bool)
			for _, t := range e.tags {
				seen[t] = true
			}
		}
		if seen != nil {
			seen[tag] = true
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

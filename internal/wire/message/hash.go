package message

import "unicode/utf8"

// JavaHash is String.hashCode of Java: over UTF-16 units, in 32-bit arithmetic.
func JavaHash(s string) int32 {
	var h int32
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			h = 31*h + int32(c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		if r >= 0x10000 {
			r -= 0x10000
			h = 31*h + 0xD800 + r>>10
			h = 31*h + 0xDC00 + r&0x3FF
			continue
		}
		h = 31*h + r
	}
	return h
}

// TagsCode is what a consume queue keeps of a tag: its hash, 0 for no tag.
func TagsCode(tag string) int64 { return int64(JavaHash(tag)) }

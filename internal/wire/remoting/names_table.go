package remoting

// Names makes strings out of header bytes without allocating for those seen before:
// topics, groups and client ids repeat on a connection. It is bounded, belongs to one
// connection's reader and is not safe for concurrent use. A nil *Names only copies.
type Names struct {
	recent [8]string // by the field's place in its header: most often it is the same again
	seen   map[string]string
}

const (
	maxNames      = 512
	maxNameLength = 255
)

// String returns b, which stood at place in its header, as a string of its own.
func (n *Names) String(place int, b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if n == nil || len(b) > maxNameLength {
		return string(b)
	}
	recent := &n.recent[place&7]
	if *recent == string(b) {
		return *recent
	}
	s, ok := n.seen[string(b)]
	if !ok {
		s = string(b)
		switch {
		case n.seen == nil:
			n.seen = make(map[string]string)
		case len(n.seen) >= maxNames:
			// What is in use comes back at once; what was a passing flood does not.
			clear(n.seen)
		}
		n.seen[s] = s
	}
	*recent = s
	return s
}

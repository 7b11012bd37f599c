package remoting

// Names makes strings out of header bytes without allocating for those seen before:
// topics, groups and client ids repeat on a connection. It is bounded, belongs to one
// connection's reader and is not safe for concurrent use. A nil *Names only copies.
type Names struct{ seen map[string]string }

const (
	maxNames      = 512
	maxNameLength = 255
)

// String returns b as a string of its own.
func (n *Names) String(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if n == nil || len(b) > maxNameLength {
		return string(b)
	}
	if s, ok := n.seen[string(b)]; ok {
		return s
	}
	s := string(b)
	switch {
	case n.seen == nil:
		n.seen = make(map[string]string)
	case len(n.seen) >= maxNames:
		// What is in use comes back at once; what was a passing flood does not.
		clear(n.seen)
	}
	n.seen[s] = s
	return s
}

package proxy

// Kind is what a topic takes, and what a message is.
type Kind byte

// The kinds of messages and topics.
const (
	KindUnspecified Kind = iota
	KindNormal
	KindFIFO
	KindDelay
	KindTransaction
	KindLite
	KindPriority
	KindMixed // topics only: takes normal, FIFO, delayed and transactional messages
)

var kindNames = [...]string{"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "LITE", "PRIORITY", "MIXED"}

// String is the name that the topic attribute message.type uses.
func (k Kind) String() string { return kindNames[k] }

// KindNamed is the kind with that name; a topic without the attribute is normal, an
// unknown name unspecified.
func KindNamed(name string) Kind {
	if name == "" {
		return KindNormal
	}
	for k, n := range kindNames {
		if n == name {
			return Kind(k)
		}
	}
	return KindUnspecified
}

// Takes reports whether a topic of kind k takes a message of kind m.
func (k Kind) Takes(m Kind) bool {
	switch k {
	case KindUnspecified:
		return false
	case KindMixed:
		return m != KindUnspecified
	default:
		return k == m
	}
}

// Route is where the queues of one topic are. It is shared and never changed.
type Route struct {
	Topic   string
	Kind    Kind
	Brokers []BrokerQueues
}

// BrokerQueues are the queues of a topic on one broker.
type BrokerQueues struct {
	Broker             string
	Read, Write        int32 // numbers of queues, whatever the permission says
	Readable, Writable bool  // the permission
}

func (b *BrokerQueues) writable() int {
	if !b.Writable {
		return 0
	}
	return int(b.Write)
}

// Writable is the number of queues that take messages.
func (r *Route) Writable() int {
	n := 0
	for i := range r.Brokers {
		n += r.Brokers[i].writable()
	}
	return n
}

// writeQueue is the i-th writable queue, counted broker by broker.
func (r *Route) writeQueue(i int) (broker string, queue int32) {
	for k := range r.Brokers {
		b := &r.Brokers[k]
		if n := b.writable(); i < n {
			return b.Broker, int32(i)
		} else {
			i -= n
		}
	}
	return "", -1
}

// readBroker is the named broker if it may be read from, else the turn-th of those that
// may, else "".
func (r *Route) readBroker(name string, turn int) string {
	n := 0
	for i := range r.Brokers {
		b := &r.Brokers[i]
		if !b.Readable || b.Read == 0 {
			continue
		}
		if b.Broker == name {
			return name
		}
		n++
	}
	if n == 0 {
		return ""
	}
	turn %= n
	for i := range r.Brokers {
		b := &r.Brokers[i]
		if !b.Readable || b.Read == 0 {
			continue
		}
		if turn == 0 {
			return b.Broker
		}
		turn--
	}
	return ""
}

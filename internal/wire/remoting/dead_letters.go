package remoting

// RedriveDeadLetterRequest is the header of BOLIDE_REDRIVE_DEAD_LETTER, a request of Bolide's own.
type RedriveDeadLetterRequest struct {
	Group   string
	QueueID int32 // of the dead-letter topic
	Offset  int64
	ToTopic bool // to the topic that it came from, for all of its groups, instead of to the group's retry topic
	Ask     bool // only tells whether it was redriven
}

// Fields names the fields.
func (h *RedriveDeadLetterRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
	v.Int32("queueId", &h.QueueID, Required)
	v.Int64("offset", &h.Offset, Required)
	v.Bool("toTopic", &h.ToTopic, Optional)
	v.Bool("ask", &h.Ask, Optional)
}

// RedriveDeadLetterResponse answers BOLIDE_REDRIVE_DEAD_LETTER.
type RedriveDeadLetterResponse struct {
	Before bool   // it was redriven by an earlier request
	Topic  string // where it went with this one
}

// Fields names the fields.
func (h *RedriveDeadLetterResponse) Fields(v *Visitor) {
	v.Bool("before", &h.Before, Required)
	v.Name("topic", &h.Topic, Optional)
}

// DeadLetterCounts is how many dead letters there are: the answer to
// BOLIDE_COUNT_DEAD_LETTERS.
type DeadLetterCounts struct{ Groups []DeadLetterCount }

// Members names the members.
func (b *DeadLetterCounts) Members(m *Members) { objects(m, "groups", &b.Groups) }

// DeadLetterCount is that of one group.
type DeadLetterCount struct {
	Count    int64
	Group    string
	Last     int64 // when the newest was stored, ms
	Redriven int64 // of Count
}

// Members names the members.
func (b *DeadLetterCount) Members(m *Members) {
	m.Int64("count", &b.Count)
	m.Str("group", &b.Group)
	m.Int64("last", &b.Last)
	m.Int64("redriven", &b.Redriven)
}

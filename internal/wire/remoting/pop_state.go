package remoting

// GetPopStateRequest is the header of BOLIDE_GET_POP_STATE.
type GetPopStateRequest struct {
	Group string
	Topic string // empty: all that the group pops
	Limit int32  // batches in flight to list for each queue
	// With Offset, of Topic's queue QueueID, the batch that holds that message is listed alone.
	QueueID int32
	Offset  Opt[int64]
}

// Fields names the fields.
func (h *GetPopStateRequest) Fields(v *Visitor) {
	v.Name("group", &h.Group, Required)
	v.Name("topic", &h.Topic, Optional)
	v.Int32("limit", &h.Limit, Optional)
	v.Int32("queueId", &h.QueueID, Optional)
	v.OptInt64("offset", &h.Offset)
}

// PopState is what a group pops: the answer to BOLIDE_GET_POP_STATE.
type PopState struct {
	Now    int64 // the broker's time, ms
	Queues []PopQueue
}

// Members names the members.
func (b *PopState) Members(m *Members) {
	m.Int64("now", &b.Now)
	objects(m, "queues", &b.Queues)
}

// PopQueue is what a group has of one queue.
type PopQueue struct {
	Aside     int64 // messages set aside
	Blocked   []PopBlocked
	End       int64
	Held      []PopHeld
	InFlight  int64
	Lowest    int64 // the lowest message that is not done
	Next      int64
	Oldest    int64 // popTime of what is longest in flight, 0: nothing is
	QueueID   int32
	Ready     int64
	Throttled bool // requests get nothing: too many are in flight
	Topic     string
}

// Members names the members.
func (b *PopQueue) Members(m *Members) {
	m.Int64("aside", &b.Aside)
	objects(m, "blocked", &b.Blocked)
	m.Int64("end", &b.End)
	objects(m, "held", &b.Held)
	m.Int64("inFlight", &b.InFlight)
	m.Int64("lowest", &b.Lowest)
	m.Int64("next", &b.Next)
	m.Int64("oldest", &b.Oldest)
	m.Int32("queueId", &b.QueueID)
	m.Int64("ready", &b.Ready)
	m.Bool("throttled", &b.Throttled)
	m.Str("topic", &b.Topic)
}

// PopHeld is one batch in flight.
type PopHeld struct {
	Attempts     int32 // earlier deliveries, of an ordered batch
	Claimed      bool  // it has lapsed and its copies are on their way
	Due          int64
	Failures     int32 // of writing copies
	Holder       string
	Invisible    int64
	MessageGroup string
	Offsets      []int64
	PopTime      int64
	Renewed      bool // for as long as its holder is there
	Suspended    bool
}

// Members names the members.
func (b *PopHeld) Members(m *Members) {
	m.Int32("attempts", &b.Attempts)
	m.Bool("claimed", &b.Claimed)
	m.Int64("due", &b.Due)
	m.Int32("failures", &b.Failures)
	m.Str("holder", &b.Holder)
	m.Int64("invisible", &b.Invisible)
	m.Str("messageGroup", &b.MessageGroup)
	m.Int64s("offsets", &b.Offsets)
	m.Int64("popTime", &b.PopTime)
	m.Bool("renewed", &b.Renewed)
	m.Bool("suspended", &b.Suspended)
}

// PopBlocked is a message group that waits for one of its messages.
type PopBlocked struct {
	Due          int64
	Holder       string
	MessageGroup string
	Offset       int64 // of the message that it waits for
	Waiting      int32 // messages that wait
}

// Members names the members.
func (b *PopBlocked) Members(m *Members) {
	m.Int64("due", &b.Due)
	m.Str("holder", &b.Holder)
	m.Str("messageGroup", &b.MessageGroup)
	m.Int64("offset", &b.Offset)
	m.Int32("waiting", &b.Waiting)
}

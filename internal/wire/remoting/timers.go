package remoting

// GetTimersRequest is the header of BOLIDE_GET_TIMERS.
type GetTimersRequest struct {
	Topic string // empty: all
	Limit int32  // messages to list, the next ones
}

// Fields names the fields.
func (h *GetTimersRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Optional)
	v.Int32("limit", &h.Limit, Optional)
}

// TimerCounts is how many messages wait for their time, by the topic that they go to: the
// answer to GET_TIMER_METRICS, and the file timermetrics.
type TimerCounts struct {
	DataVersion DataVersion
	TimingCount map[string]WaitingCount
}

// Members names the members.
func (b *TimerCounts) Members(m *Members) {
	m.Object("dataVersion", &b.DataVersion)
	objectMap(m, "timingCount", &b.TimingCount)
}

// TransactionCounts is how many half messages are open, by the topic that they are for: the
// file transactionMetrics.
type TransactionCounts struct {
	DataVersion      DataVersion
	TransactionCount map[string]WaitingCount
}

// Members names the members.
func (b *TransactionCounts) Members(m *Members) {
	m.Object("dataVersion", &b.DataVersion)
	objectMap(m, "transactionCount", &b.TransactionCount)
}

// WaitingCount is how many messages wait to go to a topic.
type WaitingCount struct {
	Count     int64
	TimeStamp int64 // of the last change, ms
}

// Members names the members.
func (b *WaitingCount) Members(m *Members) {
	m.Int64("count", &b.Count)
	m.Int64("timeStamp", &b.TimeStamp)
}

// Timers is what waits for a time of its own: the answer to BOLIDE_GET_TIMERS.
type Timers struct {
	Now    int64 // the broker's time, ms
	Next   []Timer
	Topics []TimerTopic
}

// Members names the members.
func (b *Timers) Members(m *Members) {
	m.Int64("now", &b.Now)
	objects(m, "next", &b.Next)
	objects(m, "topics", &b.Topics)
}

// TimerTopic is how many messages wait to go to a topic.
type TimerTopic struct {
	Count int64
	Topic string
}

// Members names the members.
func (b *TimerTopic) Members(m *Members) {
	m.Int64("count", &b.Count)
	m.Str("topic", &b.Topic)
}

// Timer is one message that waits.
type Timer struct {
	Due      int64 // ms
	MsgID    string
	Recalled bool // it is being taken back
	Size     int32
	Topic    string
}

// Members names the members.
func (b *Timer) Members(m *Members) {
	m.Int64("due", &b.Due)
	m.Str("msgId", &b.MsgID)
	m.Bool("recalled", &b.Recalled)
	m.Int32("size", &b.Size)
	m.Str("topic", &b.Topic)
}

package remoting

// EndTransactionRequest is the header of END_TRANSACTION.
type EndTransactionRequest struct {
	Topic                string
	ProducerGroup        string
	TranStateTableOffset int64
	CommitLogOffset      int64
	CommitOrRollback     int32
	FromTransactionCheck bool
	MsgID                string
	TransactionID        string
}

// Fields names the fields.
func (h *EndTransactionRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Optional)
	v.Name("producerGroup", &h.ProducerGroup, Required)
	v.Int64("tranStateTableOffset", &h.TranStateTableOffset, Required)
	v.Int64("commitLogOffset", &h.CommitLogOffset, Required)
	v.Int32("commitOrRollback", &h.CommitOrRollback, Required)
	v.Bool("fromTransactionCheck", &h.FromTransactionCheck, Optional)
	v.Str("msgId", &h.MsgID, Required)
	v.Str("transactionId", &h.TransactionID, Optional)
}

// CheckTransactionStateRequest is the header of CHECK_TRANSACTION_STATE.
type CheckTransactionStateRequest struct {
	Topic                string
	TranStateTableOffset int64
	CommitLogOffset      int64
	MsgID                string
	TransactionID        string
	OffsetMsgID          string
}

// Fields names the fields.
func (h *CheckTransactionStateRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Optional)
	v.Int64("tranStateTableOffset", &h.TranStateTableOffset, Required)
	v.Int64("commitLogOffset", &h.CommitLogOffset, Required)
	v.Str("msgId", &h.MsgID, Optional)
	v.Str("transactionId", &h.TransactionID, Optional)
	v.Str("offsetMsgId", &h.OffsetMsgID, Optional)
}

// ResumeCheckHalfMessageRequest is the header of RESUME_CHECK_HALF_MESSAGE.
type ResumeCheckHalfMessageRequest struct {
	Topic string
	MsgID string
}

// Fields names the fields.
func (h *ResumeCheckHalfMessageRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Optional)
	v.Str("msgId", &h.MsgID, Optional)
}

// ListTransactionsRequest is the header of BOLIDE_LIST_TRANSACTIONS, a request of Bolide's own.
type ListTransactionsRequest struct {
	Topic, Group string // empty: any
	Limit        int32
}

// Fields names the fields.
func (h *ListTransactionsRequest) Fields(v *Visitor) {
	v.Name("topic", &h.Topic, Optional)
	v.Name("group", &h.Group, Optional)
	v.Int32("limit", &h.Limit, Optional)
}

// TransactionList is the open half messages of a broker, the oldest first: the answer to
// BOLIDE_LIST_TRANSACTIONS.
type TransactionList struct {
	Now          int64 // the broker's time, ms
	Total        int64
	Transactions []OpenTransaction
}

// Members names the members.
func (b *TransactionList) Members(m *Members) {
	m.Int64("now", &b.Now)
	m.Int64("total", &b.Total)
	objects(m, "transactions", &b.Transactions)
}

// OpenTransaction is one of them, with what a decision has to name.
type OpenTransaction struct {
	Checks               int32
	CommitLogOffset      int64
	Due                  int64 // of the next check
	Group                string
	MsgID                string
	Size                 int32
	StoreTime            int64
	Topic                string
	TranStateTableOffset int64
}

// Members names the members.
func (b *OpenTransaction) Members(m *Members) {
	m.Int32("checks", &b.Checks)
	m.Int64("commitLogOffset", &b.CommitLogOffset)
	m.Int64("due", &b.Due)
	m.Str("group", &b.Group)
	m.Str("msgId", &b.MsgID)
	m.Int32("size", &b.Size)
	m.Int64("storeTime", &b.StoreTime)
	m.Str("topic", &b.Topic)
	m.Int64("tranStateTableOffset", &b.TranStateTableOffset)
}

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

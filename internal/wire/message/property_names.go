package message

import "strings"

// Names of properties, with the meaning that servers and clients give them.
const (
	PropertyTraceOn                   = "TRACE_ON"
	PropertyRegion                    = "MSG_REGION"
	PropertyKeys                      = "KEYS"
	PropertyTags                      = "TAGS"
	PropertyWait                      = "WAIT"
	PropertyDelay                     = "DELAY"
	PropertyRetryTopic                = "RETRY_TOPIC"
	PropertyOriginGroup               = "ORIGIN_GROUP"
	PropertyRealTopic                 = "REAL_TOPIC"
	PropertyRealQueue                 = "REAL_QID"
	PropertyTransaction               = "TRAN_MSG"
	PropertyProducerGroup             = "PGROUP"
	PropertyMinOffset                 = "MIN_OFFSET"
	PropertyMaxOffset                 = "MAX_OFFSET"
	PropertyBuyerID                   = "BUYER_ID"
	PropertyOriginMessageID           = "ORIGIN_MESSAGE_ID"
	PropertyTransferFlag              = "TRANSFER_FLAG"
	PropertyCorrectionFlag            = "CORRECTION_FLAG"
	PropertyMQ2Flag                   = "MQ2_FLAG"
	PropertyReconsumeTime             = "RECONSUME_TIME"
	PropertyUniqKey                   = "UNIQ_KEY"
	PropertyMaxReconsumeTimes         = "MAX_RECONSUME_TIMES"
	PropertyConsumeStartTime          = "CONSUME_START_TIME"
	PropertyPopCheckpoint             = "POP_CK"
	PropertyPopCheckpointOffset       = "POP_CK_OFFSET"
	PropertyFirstPopTime              = "1ST_POP_TIME"
	PropertyTransactionPreparedOffset = "TRAN_PREPARED_QUEUE_OFFSET"
	PropertyDuplicationInfo           = "DUP_INFO"
	PropertyExtendUniqInfo            = "EXTEND_UNIQ_INFO"
	PropertyInstanceID                = "INSTANCE_ID"
	PropertyCorrelationID             = "CORRELATION_ID"
	PropertyReplyToClient             = "REPLY_TO_CLIENT"
	PropertyTTL                       = "TTL"
	PropertyArriveTime                = "ARRIVE_TIME"
	PropertyPushReplyTime             = "PUSH_REPLY_TIME"
	PropertyCluster                   = "CLUSTER"
	PropertyMessageType               = "MSG_TYPE"
	PropertyInnerMultiQueueOffset     = "INNER_MULTI_QUEUE_OFFSET"
	PropertyTimerDelayMs              = "TIMER_DELAY_MS"
	PropertyTimerDelaySec             = "TIMER_DELAY_SEC"
	PropertyTimerDeliverMs            = "TIMER_DELIVER_MS"
	PropertyTimerEnqueueMs            = "TIMER_ENQUEUE_MS"
	PropertyTimerDequeueMs            = "TIMER_DEQUEUE_MS"
	PropertyTimerRollTimes            = "TIMER_ROLL_TIMES"
	PropertyTimerOutMs                = "TIMER_OUT_MS"
	PropertyTimerDeleteUniqKey        = "TIMER_DEL_UNIQKEY"
	PropertyTimerDelayLevel           = "TIMER_DELAY_LEVEL"
	PropertyBornHost                  = "__BORNHOST"
	PropertyBornTimestamp             = "BORN_TIMESTAMP"
	PropertyDeadLetterOriginTopic     = "DLQ_ORIGIN_TOPIC"
	PropertyDeadLetterOriginMessageID = "DLQ_ORIGIN_MESSAGE_ID"
	PropertyCRC                       = "__CRC32#"
	PropertyPriority                  = "_SYS_MSG_PRIORITY_"
	PropertyLiteTopic                 = "__LITE_TOPIC"
)

// Names that mean something as well, but pass through gRPC as user properties.
const (
	PropertyShardingKey           = "__SHARDINGKEY"
	PropertyTransactionID         = "__transactionId__"
	PropertyTransactionOffset     = "TRANS_OFFSET"
	PropertyCheckImmunitySeconds  = "CHECK_IMMUNITY_TIME_IN_SECONDS"
	PropertyTransactionCheckTimes = "TRANSACTION_CHECK_TIMES"
	PropertyTraceContext          = "TRACE_CONTEXT"
	PropertyInnerNum              = "INNER_NUM"
	PropertyInnerBase             = "INNER_BASE"
	PropertyInnerMultiDispatch    = "INNER_MULTI_DISPATCH"
	PropertyRedirect              = "REDIRECT"
	PropertyForwardQueueID        = "PROPERTY_FORWARD_QUEUE_ID"
	PropertyTimerRollLabel        = "TIMER_ROLL_LABEL"
	PropertyTransientPrefix       = "__RMQ.TRANSIENT."
	propertyBolidePrefix          = "__BOLIDE_"
	// PropertySource names the state that a message was born from: a lapsed delivery, a
	// timer, a half message. Dispatching the copy deletes that state. Never from a client,
	// never to one.
	PropertySource = propertyBolidePrefix + "SRC"
)

// Reserved reports whether clients may not use name for a property of their own: gRPC
// refuses it in a send and hides it in a delivery.
func Reserved(name string) bool {
	_, ok := reserved[name]
	return ok || strings.HasPrefix(name, propertyBolidePrefix)
}

var reserved = func() map[string]struct{} {
	set := map[string]struct{}{}
	for _, name := range []string{
		PropertyTraceOn, PropertyRegion, PropertyKeys, PropertyTags, PropertyWait, PropertyDelay,
		PropertyRetryTopic, PropertyOriginGroup, PropertyRealTopic, PropertyRealQueue,
		PropertyTransaction, PropertyProducerGroup, PropertyMinOffset, PropertyMaxOffset,
		PropertyBuyerID, PropertyOriginMessageID, PropertyTransferFlag, PropertyCorrectionFlag,
		PropertyMQ2Flag, PropertyReconsumeTime, PropertyUniqKey, PropertyMaxReconsumeTimes,
		PropertyConsumeStartTime, PropertyPopCheckpoint, PropertyPopCheckpointOffset,
		PropertyFirstPopTime, PropertyTransactionPreparedOffset, PropertyDuplicationInfo,
		PropertyExtendUniqInfo, PropertyInstanceID, PropertyCorrelationID, PropertyReplyToClient,
		PropertyTTL, PropertyArriveTime, PropertyPushReplyTime, PropertyCluster,
		PropertyMessageType, PropertyInnerMultiQueueOffset, PropertyTimerDelayMs,
		PropertyTimerDelaySec, PropertyTimerDeliverMs, PropertyTimerEnqueueMs,
		PropertyTimerDequeueMs, PropertyTimerRollTimes, PropertyTimerOutMs,
		PropertyTimerDeleteUniqKey, PropertyTimerDelayLevel, PropertyBornHost,
		PropertyBornTimestamp, PropertyDeadLetterOriginTopic, PropertyDeadLetterOriginMessageID,
		PropertyCRC, PropertyPriority, PropertyLiteTopic,
	} {
		set[name] = struct{}{}
	}
	return set
}()

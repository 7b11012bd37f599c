package publish

// Decision is what becomes of a message that a delivery did not get rid of.
type Decision struct {
	DeadLetter bool
	Level      int32 // delay level of the next delivery where the path has one
}

// firstRetryLevel is the delay level of the first retry: 10 s.
const firstRetryLevel = 3

// Decide is the one table of attempts, for consumers' send-backs, for plain sends to a
// retry topic, for lapsed deliveries of POP and for message groups in order.
//
// spent is the number of deliveries that the group has had of the message, and so the
// reconsumeTimes of its next copy; limit is retryMaxTimes. A limit of N allows N+1
// deliveries: when N+1 are spent, the message is dead. level is what the consumer asked
// for: 0 leaves it to the table, which grows by one level with each delivery; below 0
// asks for the dead-letter topic at once.
func Decide(spent, limit, level int32) Decision {
	switch {
	case level < 0, spent > limit:
		return Decision{DeadLetter: true}
	case level == 0:
		return Decision{Level: firstRetryLevel + spent - 1}
	}
	return Decision{Level: level}
}

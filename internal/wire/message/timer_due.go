package message

import "strconv"

// timerGrain is what Apache RocketMQ rounds delivery times to, in milliseconds.
const timerGrain = 1000

// TimerOut is the value of TIMER_OUT_MS of a message that is due at a time: the last
// millisecond before it. Apache's wheel, whose slots are whole seconds, then delivers it with
// the end of the second that this lies in: no earlier than due.
func TimerOut(due int64) int64 { return due - 1 }

// TimerDue is when a message of the timers' topic is due, in milliseconds since 1970. Where
// another server has rounded the time to its grain, the sender's own time counts if that is
// known, else the end of the grain.
func TimerDue(p Properties) (due int64, ok bool) {
	out, err := strconv.ParseInt(p.Value(PropertyTimerOutMs), 10, 64)
	if err != nil {
		return 0, false
	}
	if out%timerGrain != 0 {
		return out + 1, true
	}
	if !TimerDelayed(p) {
		exact, err := strconv.ParseInt(p.Value(PropertyTimerDeliverMs), 10, 64)
		if err == nil && exact > out && exact <= out+timerGrain {
			return exact, true
		}
	}
	return out + timerGrain, true
}

// TimerExact moves a time by the millisecond that TimerDue needs to tell it from a rounded
// one, where the sender has given a delay and no time.
func TimerExact(due int64) int64 {
	if TimerOut(due)%timerGrain == 0 {
		return due + 1
	}
	return due
}

// TimerDelayed reports whether the sender of a message of the timers' topic has given a delay,
// and no time.
func TimerDelayed(p Properties) bool {
	return p.Has(PropertyTimerDelaySec) || p.Has(PropertyTimerDelayMs)
}

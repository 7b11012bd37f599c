package broker

// BeginRound says that the caller reads requests and will end the round when it has handled
// them. It is transport.Round and h2.Round.
func (b *Broker) BeginRound() { b.rounds.Begin() }

// EndRound settles what the requests of a round have caused: what they stored is written
// and told to who waits for it, who was woken by that gets it, and what has changed by all
// this is committed.
func (b *Broker) EndRound() {
	b.settleRound() // what this causes is held back too
	b.rounds.End()
	b.settleRound() // what others left lying meanwhile
}

// loopRound runs a part of what a loop has to do as a round. At its end the loop, for which nobody
// waits, does all that it has caused, however much that is: others write meanwhile, and no
// further goroutine takes a processor from them.
func (b *Broker) loopRound(f func()) {
	b.BeginRound()
	defer b.EndRound()
	f()
	b.Store.SettleAll()
}

func (b *Broker) settleRound() {
	b.Store.Settle()
	b.Pop.Settle()
	b.State.Settle()
}

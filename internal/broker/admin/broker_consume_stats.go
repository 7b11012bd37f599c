package admin

// GroupStats is how far one group has come in one topic.
type GroupStats struct {
	Group, Topic string
	Progress     []Progress
	Rate         float64 // messages a second, over the last minute
}

// BrokerConsumeStats returns how far every group has come, in all topics or in those
// that are marked as ordered. Each group of the table is there, those that have come
// nowhere with an empty topic.
func (a *Admin) BrokerConsumeStats(ordered bool) []GroupStats {
	var out []GroupStats
	popped := a.popped(nil)
	topics := a.consumed(popped)
	for _, g := range a.o.Groups.All() {
		before := len(out)
		online, subscribes := a.subscriptions(g.Name)
		for _, name := range topics[g.Name] {
			t, ok := a.o.Topics.Get(name)
			if !ok || ordered && !t.Order || online && !subscribes[name] {
				continue
			}
			s := GroupStats{Group: g.Name, Topic: name, Rate: a.Counters.Rate(GroupGetNums, name, g.Name)}
			for q := range t.WriteQueues {
				s.Progress = append(s.Progress, a.progress(windowKey{g.Name, name, q}, popped))
			}
			out = append(out, s)
		}
		if len(out) == before {
			out = append(out, GroupStats{Group: g.Name})
		}
	}
	return out
}

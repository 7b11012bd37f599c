package remoting

// GoneBrokers is who a name server misses: the answer to BOLIDE_GET_GONE_BROKERS.
type GoneBrokers struct{ Brokers []GoneBroker }

// Members names the members.
func (b *GoneBrokers) Members(m *Members) { objects(m, "brokers", &b.Brokers) }

// GoneBroker is a broker that was registered and is not any more.
type GoneBroker struct {
	Address string // the last one that it had
	Cluster string
	Name    string
	Since   int64 // ms
	Stopped bool  // it said goodbye
}

// Members names the members.
func (b *GoneBroker) Members(m *Members) {
	m.Str("address", &b.Address)
	m.Str("cluster", &b.Cluster)
	m.Str("name", &b.Name)
	m.Int64("since", &b.Since)
	m.Bool("stopped", &b.Stopped)
}

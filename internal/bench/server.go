package bench

// Server is what can be seen of the server's processes by who knows them.
type Server interface {
	// Watch looks at them until stop is called. Usage is nil where nothing can be seen.
	Watch() (stop func() *Usage)
	// Memory is what they hold now, or nil.
	Memory() *Memory
}

// Usage is what the server's processes used during the measured part.
type Usage struct {
	CPUSeconds           float64 `json:"cpu_seconds"`
	CPUSecondsPerMillion float64 `json:"cpu_seconds_per_million"`
	CPUPercent           float64 `json:"cpu_percent"` // of a core
	PeakResidentMB       float64 `json:"peak_resident_mb"`
	PeakPrivateMB        float64 `json:"peak_private_mb"`  // anonymous memory: without mapped files
	GrownPrivateMB       float64 `json:"grown_private_mb"` // from the beginning to the peak
}

// Memory is what the server's processes hold.
type Memory struct {
	ResidentMB float64 `json:"resident_mb"`
	PrivateMB  float64 `json:"private_mb"`
}

// Moment is the server's memory at some moment of a run.
type Moment struct {
	Name string `json:"name"`
	Memory
}

// usage says what was used per message.
func (m measured) usage(messages int64) *Usage {
	if m.server == nil {
		return nil
	}
	u := *m.server
	u.CPUSecondsPerMillion = u.CPUSeconds / float64(messages) * 1e6
	u.CPUPercent = u.CPUSeconds / m.took.Seconds() * 100
	return &u
}

// moments are the moments of a run until now.
type moments struct {
	server Server
	all    []Moment
}

// look notes the server's memory, if it can be seen.
func (m *moments) look(name string) {
	if now := m.server.Memory(); now != nil {
		m.all = append(m.all, Moment{Name: name, Memory: *now})
	}
}

// unseen is a server that nothing is known of.
type unseen struct{}

// Watch implements Server.
func (unseen) Watch() (stop func() *Usage) { return func() *Usage { return nil } }

// Memory implements Server.
func (unseen) Memory() *Memory { return nil }

//go:build !unix

package pop

func cpuSeconds() float64 { return 0 }

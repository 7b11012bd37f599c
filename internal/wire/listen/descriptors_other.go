//go:build !unix

package listen

import "math"

// mostSockets is without a limit where descriptors have no numbers.
func mostSockets() int { return math.MaxInt }

func tooManySockets(uintptr, int) bool { return false }

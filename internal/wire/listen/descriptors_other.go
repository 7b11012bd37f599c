//go:build !unix

package listen

import "math"

// mostDescriptors is without a limit where descriptors have no numbers.
func mostDescriptors() int { return math.MaxInt }

// nextDescriptor is not asked for anything.
func nextDescriptor(uintptr) int { return 0 }

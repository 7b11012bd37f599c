//go:build unix

package listen

import (
	"math"

	"golang.org/x/sys/unix"
)

// forFiles is how many descriptors connections leave to the files of queues, index, log and state,
// or three quarters of all where those are fewer.
const forFiles = 768

// mostDescriptors is how many may be in use when a connection is taken.
func mostDescriptors() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	all := int(min(uint64(limit.Cur), math.MaxInt32))
	return max(all-forFiles, all/4)
}

// nextDescriptor is the lowest that is free, of which fd is none.
func nextDescriptor(fd uintptr) int {
	next, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return math.MaxInt
	}
	unix.Close(next)
	return next
}

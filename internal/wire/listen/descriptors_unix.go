//go:build unix

package listen

import (
	"math"

	"golang.org/x/sys/unix"
)

// forFiles is how many descriptors connections leave to the files of queues, index, log and state,
// or three quarters of all where those are fewer.
const forFiles = 768

// mostSockets is how many may be open when a connection is taken.
func mostSockets() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return math.MaxInt
	}
	all := int(min(uint64(limit.Cur), math.MaxInt32))
	return max(all-forFiles, all/4)
}

// tooManySockets reports whether most are open, of which fd is one, or no descriptor is left. The
// system gives the lowest number that is free, so only where that is not below most can so many be
// open. Then they are counted, and files are not: those have what was left to them.
func tooManySockets(fd uintptr, most int) bool {
	next, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return true
	}
	unix.Close(next)
	if next < most {
		return false
	}
	sockets := 0
	for fd := range next {
		var s unix.Stat_t
		if unix.Fstat(fd, &s) == nil && s.Mode&unix.S_IFMT == unix.S_IFSOCK {
			sockets++
		}
	}
	return sockets >= most
}

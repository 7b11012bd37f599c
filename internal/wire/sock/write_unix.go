//go:build unix

package sock

import "syscall"

const canTry = true

// write writes to a socket that does not block, as all of Go's are; less than 0 is an
// error.
func write(fd uintptr, b []byte) int {
	n, err := syscall.Write(int(fd), b)
	if err != nil {
		return -1
	}
	return n
}

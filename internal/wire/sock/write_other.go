//go:build !unix

package sock

const canTry = false

func write(uintptr, []byte) int { return -1 }

package timer

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// yield lets other threads of the system go first that wait for this one's processor.
func yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// nap is a sleep of less than a millisecond that takes no longer. The runtime waits for its own timers
// in whole milliseconds when it has nothing else to do, but for a file no longer than it has to.
func nap(ctx context.Context, d time.Duration) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil { // of descriptors there may be none left
		sleep(ctx, d)
		return
	}
	f := os.NewFile(uintptr(fd), "timer")
	defer f.Close()
	end := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if err := unix.TimerfdSettime(fd, 0, &end, nil); err != nil {
		sleep(ctx, d)
		return
	}
	var ends [8]byte
	_, _ = f.Read(ends[:])
}

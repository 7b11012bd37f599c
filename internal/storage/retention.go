package storage

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// deleteBatch is how many log files one pass deletes at most.
const deleteBatch = 10

// retain deletes old log files, and those of queues and index that only point to them,
// watches the disk, and sees to it that memory keeps nothing of the log for readers who have
// gone.
func (e *Engine) retain(ctx context.Context) error {
	timer := time.NewTimer(e.retention().CheckInterval)
	defer timer.Stop()
	for {
		if err := e.clean(ctx, false); err != nil && ctx.Err() == nil {
			e.opt.Log.Warn("deleting old log files failed", "err", err)
		}
		e.log.Trim()
		timer.Reset(e.retention().CheckInterval)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// retention is what counts now: it may change while the server runs.
func (e *Engine) retention() Retention {
	r := e.opt.Retention()
	r.setDefaults()
	return r
}

// DeleteExpired deletes the log files past their age now, whatever the hour, and watches
// the disk.
func (e *Engine) DeleteExpired() error { return e.clean(context.Background(), true) }

// DeletePassed deletes the files of queues and index that only point to log files that are
// gone. Retention does the same after each log file that it deletes.
func (e *Engine) DeletePassed() error {
	e.retaining.Lock()
	defer e.retaining.Unlock()
	logMin := e.log.Min()
	return errors.Join(e.queues.RemoveBefore(logMin), e.index.RemoveBefore(logMin), e.save(true))
}

// DiskUsage says how full the disk is. The percentage is that of df and of Apache: what the
// file system keeps for itself counts neither as used nor as free.
type DiskUsage struct {
	Known       bool
	Free, Total int64
	UsedPercent int
}

// DiskUsage asks the file system.
func (e *Engine) DiskUsage() DiskUsage {
	u, err := e.opt.FS.GetDiskUsage(e.opt.Dir)
	ours := u.UsedBytes + u.AvailBytes
	if err != nil || ours == 0 {
		return DiskUsage{}
	}
	return DiskUsage{Known: true, Free: int64(u.AvailBytes), Total: int64(u.TotalBytes),
		UsedPercent: int(100 - u.AvailBytes*100/ours)}
}

// pressure is what the disk asks for.
type pressure struct {
	clean bool // delete what is past its age at any hour
	force bool // delete the oldest, past their age or not
	full  bool // refuse appends
}

// judge is the policy on space: a percentage counts only while less than EnoughFree is
// free, and space that is not known is not scarce.
func (r *Retention) judge(u DiskUsage) pressure {
	if !u.Known || u.Free >= r.EnoughFree {
		return pressure{}
	}
	return pressure{
		clean: u.UsedPercent > r.CleanPercent,
		force: u.UsedPercent > r.ForcePercent && !r.RefuseWhenFull,
		full:  u.UsedPercent > r.FullPercent,
	}
}

func (e *Engine) clean(ctx context.Context, now bool) error {
	r := e.retention()
	usage := e.DiskUsage()
	if !usage.Known && !e.warned.freeUnknown.Swap(true) {
		e.opt.Log.Warn("the file system does not tell its free space; watermarks are off")
	}
	p := r.judge(usage)
	expired := now || p.clean || slices.Contains(r.DeleteWhen, e.opt.Clock.Now().In(r.Location).Hour())
	err := e.deleteFiles(ctx, r.MaxAge, expired, p.force)
	if p.force {
		p = r.judge(e.DiskUsage())
	}
	if e.full.Swap(p.full) != p.full {
		e.opt.Log.Warn("disk", "full", p.full, "free", usage.Free, "used percent", usage.UsedPercent)
		if e.opt.Events.DiskFull != nil {
			e.opt.Events.DiskFull(p.full)
		}
	}
	return err
}

// deleteFiles deletes log files from the oldest on: those past maxAge if expired,
// one whatever its age if force. Age is by what the machine's clock shows: where that was far
// ahead and has been put right, nothing goes for it. The newest file, and what the checkpoint does not cover,
// stay.
func (e *Engine) deleteFiles(ctx context.Context, maxAge time.Duration, expired, force bool) error {
	if !expired && !force {
		return nil
	}
	e.retaining.Lock()
	defer e.retaining.Unlock()
	log := e.log.Files()
	horizon := e.opt.Clock.WallMilli() - maxAge.Milliseconds()
	deleted := 0
	for deleted < deleteBatch {
		files := log.Files()
		if len(files) < 2 {
			break
		}
		first, end := files[0].Base, files[0].Base+log.FileSize()
		if end > e.log.Done() || end > e.checkpointed.Load() {
			break
		}
		old, err := e.olderThan(end, horizon)
		if err != nil {
			return err
		}
		forced := force && deleted == 0 && !(expired && old)
		if !(expired && old) && !forced {
			break
		}
		if e.opt.BeforeDelete != nil {
			if err := e.opt.BeforeDelete(ctx, first, end); err != nil {
				return err
			}
		}
		// What was in the file and matters still has gone on in the log, moved just now or copied
		// a moment ago: that is durable before the file goes.
		if err := e.Sync(); err != nil {
			return err
		}
		if _, err := log.RemoveBefore(end, 1); err != nil {
			return err
		}
		deleted++
		e.opt.Log.Info("log file deleted", "first", first, "end", end, "forced", forced)
		if e.opt.Events.SegmentDeleted != nil {
			e.opt.Events.SegmentDeleted(first, end, forced)
		}
	}
	if deleted == 0 {
		return nil
	}
	logMin := e.log.Min()
	// The snapshot must not ask for files that went on purpose.
	return errors.Join(e.queues.RemoveBefore(logMin), e.index.RemoveBefore(logMin), e.save(true))
}

// olderThan reports whether everything before the start of a log file is older than the
// horizon: its first record tells.
func (e *Engine) olderThan(fileStart, horizon int64) (bool, error) {
	var head [message.HeaderSize]byte
	h, err := e.log.Head(fileStart, head[:])
	if err != nil {
		return false, err
	}
	return h.StoreTimestamp < horizon, nil
}

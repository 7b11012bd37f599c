package storage

import (
	"context"
	"time"
)

// flush syncs the log and writes checkpoints. It sleeps while nothing is dispatched.
func (e *Engine) flush(ctx context.Context) error {
	var syncAt, saveAt time.Time // zero: nothing to do
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		if next := earlier(syncAt, saveAt); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.dirty:
			now := time.Now()
			if syncAt.IsZero() && e.opt.Flush == Async {
				syncAt = now.Add(e.opt.FlushInterval)
			}
			if saveAt.IsZero() {
				saveAt = now.Add(e.opt.CheckpointInterval)
			}
			if e.log.Done()-e.checkpointed.Load() < replayMost {
				continue
			}
			saveAt = now
		case <-timer.C:
		}
		now := time.Now()
		if !syncAt.IsZero() && !now.Before(syncAt) {
			syncAt = time.Time{}
			if err := e.syncLog(e.log.Written()); err != nil {
				return err
			}
		}
		if !saveAt.IsZero() && !now.Before(saveAt) {
			saveAt = time.Time{}
			if err := e.save(false); err != nil {
				if e.log.Err() != nil {
					return err
				}
				// Nothing is lost: it is in memory and in the log. Try again later.
				e.opt.Log.Warn("no checkpoint", "err", err)
				saveAt = now.Add(e.opt.CheckpointInterval)
			} else if !e.queues.Idle() {
				saveAt = now.Add(e.opt.CheckpointInterval)
			}
		}
	}
}

// replayMost is how many bytes may be dispatched without a checkpoint: what a start after
// a crash has to read again.
const replayMost = 256 << 20

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}

// Sync makes durable what is written so far, whatever the flush policy.
func (e *Engine) Sync() error { return e.syncLog(e.log.Written()) }

// syncLog makes the log durable up to end. A failed sync is the log's end: what the disk
// holds is not known any more.
func (e *Engine) syncLog(end int64) error {
	err := e.log.SyncTo(end)
	if err != nil {
		e.log.Fail(err)
	}
	return err
}

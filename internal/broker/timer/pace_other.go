//go:build !linux

package timer

import (
	"context"
	"time"
)

func yield() {}

func nap(ctx context.Context, d time.Duration) { sleep(ctx, d) }

package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

func TestPartFailsTheWhole(t *testing.T) {
	whole := New(slog.New(slog.DiscardHandler))
	part := whole.Part()
	part.Go("loop", func(context.Context) error { panic("broken") })
	<-whole.Failed()
	<-part.Failed()
	if err := part.Stop(); err == nil {
		t.Error("the part does not tell its failure")
	}
	whole.Go("other", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if err := whole.Stop(); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the whole: %v", err)
	}
}

package brokerrpc

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// A log that can't be written says so itself, once in a while; the sends that it refuses, very
// many, say nothing more.
func TestRefusedWritesAreNotLogged(t *testing.T) {
	var log strings.Builder
	s := &Server{log: slog.New(slog.NewTextHandler(&log, nil))}
	err := fmt.Errorf("%w: too many open files", storage.ErrWrite)
	if code, remark := s.translate(err); code != remoting.ResServiceNotAvailable || remark != err.Error() || log.Len() > 0 {
		t.Errorf("%d %s, logged %q", code, remark, log.String())
	}
}

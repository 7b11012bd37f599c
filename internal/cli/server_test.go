package cli

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func TestErrorsAreLoggedWithoutStacks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	_, err := vfs.Default.Open(path)
	var out strings.Builder
	newLog(&out, slog.LevelInfo).Warn("a file can not be read", "err", err)
	if line := out.String(); !strings.Contains(line, path) || strings.Contains(line, ".go:") {
		t.Error(line)
	}
}

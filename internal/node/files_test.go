package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A start that can't use a file names it, says why, and takes nothing away.
func TestFilesThatAreInTheWay(t *testing.T) {
	dir := t.TempDir()
	file, folder := filepath.Join(dir, "file"), filepath.Join(dir, "folder")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(*Options)
		says   string
	}{
		{func(o *Options) { o.ReadyFile = folder }, "ready file " + folder + " can't be written: it is a folder"},
		{func(o *Options) { o.ReadyFile = filepath.Join(file, "x") }, "can't be written: not a directory"},
		{func(o *Options) { o.Data = file }, "data folder " + file + " can't be made: it is a file"},
		{func(o *Options) { o.TLSCert, o.TLSKey = file, filepath.Join(dir, "no.key") }, "TLS certificate or key " + filepath.Join(dir, "no.key") + " can't be read: no such file"},
		{func(o *Options) { o.TLSCert, o.TLSKey = folder, file }, "TLS certificate or key " + folder + " can't be read: is a directory"},
		{func(o *Options) { o.TLSCert, o.TLSKey = file, file }, "TLS certificate " + file + " with key " + file + ": tls: failed to find any PEM data"},
		{func(o *Options) { o.TLSCert = file }, "--tls-cert and --tls-key go together"},
	} {
		o := Options{Roles: Roles{Namesrv: true}, Data: filepath.Join(dir, "data"), NamesrvAddr: "127.0.0.1:0"}
		c.change(&o)
		n, err := Start(t.Context(), o)
		if err == nil {
			t.Errorf("%s: it starts", c.says)
			_ = n.Stop(t.Context())
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "x" {
		t.Errorf("the file: %q, %v", text, err)
	}
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		t.Errorf("the folder: %v", err)
	}
}

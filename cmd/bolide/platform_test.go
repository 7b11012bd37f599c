package main_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// smoke starts a server, sends, kills it, starts it again, receives, and stops it in order.
func smoke(t *testing.T, program []string, data string) {
	t.Helper()
	p := serverOf(t, program, data)
	p.run("", "admin", "topic", "create", "orders", "--queues", "2")
	p.run("first\nsecond\nthird", "produce", "orders")
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	p.wait()
	p = serverOf(t, program, data)
	got := strings.Fields(p.run("", "consume", "orders", "--max", "3"))
	slices.Sort(got)
	if !slices.Equal(got, []string{"first", "second", "third"}) {
		t.Errorf("received %q", got)
	}
	p.stop()
}

// R122: one executable, no scripts; it and its data may lie where names have blanks and
// letters beyond ASCII. Here on the system of this machine; make cross builds for all.
func TestFolderNames(t *testing.T) {
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "My Programs", "Größe – 消息")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(dir, filepath.Base(path)+" copy"+filepath.Ext(path))
	if err := os.Link(path, moved); err != nil {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(moved, text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	smoke(t, []string{moved}, filepath.Join(dir, "data of mine"))
}

// R123: there is no native code. The executable for the other architecture, built on this
// one, does its work under QEMU, where that is installed.
func TestOtherArchitecture(t *testing.T) {
	other := map[string][2]string{"amd64": {"arm64", "qemu-aarch64"}, "arm64": {"amd64", "qemu-x86_64"}}[runtime.GOARCH]
	if runtime.GOOS != "linux" || other[0] == "" {
		t.Skip("QEMU runs programs of Linux for the other of amd64 and arm64; runs on Linux on one of them")
	}
	qemu, err := exec.LookPath(other[1] + "-static")
	if errors.Is(err, exec.ErrNotFound) {
		qemu, err = exec.LookPath(other[1])
	}
	if errors.Is(err, exec.ErrNotFound) {
		t.Skipf("no %s in PATH; runs with QEMU's user mode installed", other[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bolide-"+other[0])
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH="+other[0])
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("build: %w\n%s", err, out))
	}
	smoke(t, []string{qemu, path}, t.TempDir())
}

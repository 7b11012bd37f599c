package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait, on the slowest of machines.
const patience = 60 * time.Second

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "bolide-test-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "bolide")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// process is a running bolide.
type process struct {
	t           *testing.T
	cmd         *exec.Cmd
	out, errs   bytes.Buffer
	exited      chan error
	readyFile   string
	ready       readyFile
	data        string
	startedWith []string
	program     []string // the executable, behind what runs it if need be
}

type readyFile struct {
	Namesrv, Broker, GRPC, Proxy string
	PID                          int
}

func command(t *testing.T, args ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return commandOf(t, []string{path}, args...)
}

// commandOf is command with another program than the one of this machine.
func commandOf(t *testing.T, program []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, program: program, exited: make(chan error, 1), startedWith: args}
	args = append(program[1:len(program):len(program)], args...)
	p.cmd = exec.Command(program[0], args...)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.errs
	return p
}

func (p *process) start() {
	p.t.Helper()
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() { p.exited <- p.cmd.Wait() }()
	p.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case err := <-p.exited:
		p.exited <- err
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.t.Fatal(err)
		}
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("%q does not end; it says\n%s%s", p.startedWith, p.out.String(), p.errs.String())
		return -1
	}
}

// server starts `bolide server` on free ports and waits for its ready file.
func server(t *testing.T, data string, more ...string) *process {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return serverOf(t, []string{path}, data, more...)
}

func serverOf(t *testing.T, program []string, data string, more ...string) *process {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	p := commandOf(t, program, append([]string{"server", "--data", data, "--ready-file", ready,
		"--namesrv-addr", "127.0.0.1:0", "--broker-addr", "127.0.0.1:0",
		"--grpc-addr", "127.0.0.1:0", "--proxy-addr", "127.0.0.1:0"}, more...)...)
	p.readyFile, p.data = ready, data
	p.start()
	deadline := time.Now().Add(patience)
	for {
		text, err := os.ReadFile(ready)
		if err == nil {
			if err := json.Unmarshal(text, &p.ready); err != nil {
				t.Fatalf("ready file %q: %v", text, err)
			}
			return p
		}
		select {
		case <-p.exited:
			t.Fatalf("the server ended: %s", p.errs.String())
		case <-time.After(2 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("no ready file")
		}
	}
}

func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		p.t.Fatalf("exit code %d: %s", code, p.errs.String())
	}
}

// run runs a client command against the server and returns its output.
func (p *process) run(in string, args ...string) string {
	p.t.Helper()
	c := commandOf(p.t, p.program, append(args, "--namesrv", p.ready.Namesrv)...)
	c.cmd.Stdin = strings.NewReader(in)
	c.start()
	if code := c.wait(); code != 0 {
		p.t.Fatalf("%q: exit code %d: %s", args, code, c.errs.String())
	}
	return c.out.String()
}

func TestServerStartsAndStops(t *testing.T) {
	p := server(t, t.TempDir())
	for name, addr := range map[string]string{"namesrv": p.ready.Namesrv, "broker": p.ready.Broker, "grpc": p.ready.GRPC, "proxy": p.ready.Proxy} {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.Close()
	}
	if p.ready.PID != p.cmd.Process.Pid {
		t.Errorf("ready file names process %d, it is %d", p.ready.PID, p.cmd.Process.Pid)
	}
	p.stop()
	out := p.out.String()
	for _, want := range []string{
		"listening on " + p.ready.Namesrv, "listening on " + p.ready.Broker,
		"listening on " + p.ready.GRPC, "listening on " + p.ready.Proxy,
		"announces 127.0.0.1:", "data folder " + p.data, "ready in ", " ms\n", "stopped\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("standard output lacks %q:\n%s", want, out)
		}
	}
	if _, err := os.Stat(p.readyFile); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the ready file outlives the server: %v", err)
	}
}

// R127: each start that fails gives one clear line and exit code 1.
func TestStartFailures(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().String()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("noSuchSetting=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	newer := t.TempDir()
	if err := os.WriteFile(filepath.Join(newer, "bolide-format"), []byte("bolide data format 99\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	running := server(t, t.TempDir())
	defer running.stop()

	free := []string{"--namesrv-addr", "127.0.0.1:0", "--broker-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--proxy-addr", "127.0.0.1:0"}
	for _, c := range []struct {
		name string
		args []string // of server, after the free ports, which they override
		says []string
	}{
		{"name server port taken", []string{"--namesrv-addr", port}, []string{port, "in use", "--namesrv-addr"}},
		{"broker port taken", []string{"--broker-addr", port}, []string{port, "in use", "--broker-addr"}},
		{"gRPC port taken", []string{"--grpc-addr", port}, []string{port, "in use", "--grpc-addr"}},
		{"explicit proxy port taken", []string{"--proxy-addr", port}, []string{port, "in use", "--proxy-addr"}},
		{"address without port", []string{"--grpc-addr", "localhost"}, []string{"--grpc-addr", "localhost", "HOST:PORT"}},
		{"folder below a file", []string{"--data", filepath.Join(file, "x")}, []string{file, "can't be made"}},
		{"newer folder", []string{"--data", newer}, []string{newer, "format 99", "newer version"}},
		{"second server on one folder", []string{"--data", running.data}, []string{running.data, "in use by another server", fmt.Sprint(running.ready.PID)}},
		{"unknown setting", []string{"--set", "noSuchSetting=1"}, []string{"unknown setting", "noSuchSetting"}},
		{"illegal setting", []string{"--set", "defaultTopicQueueNums=0"}, []string{"defaultTopicQueueNums", "limit 1"}},
		{"unknown setting in a file", []string{"--config", file}, []string{"unknown setting", "noSuchSetting"}},
		{"no such settings file", []string{"--config", file + "x"}, []string{file + "x"}},
		{"unknown flag", []string{"--no-such-flag"}, []string{"no-such-flag"}},
		{"unknown argument", []string{"extra"}, []string{"extra"}},
		{"certificate without key", []string{"--tls-cert", file}, []string{"--tls-key"}},
		{"certificate that is none", []string{"--tls-cert", file, "--tls-key", file}, []string{file}},
		{"illegal announcement", []string{"--advertise", "host"}, []string{"--advertise", "HOST:PORT"}},
		{"ready file that can't be written", []string{"--ready-file", filepath.Join(file, "x")}, []string{"ready file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"server", "--data", t.TempDir()}, free...)
			p := command(t, append(args, c.args...)...)
			p.start()
			if code := p.wait(); code != 1 {
				t.Errorf("exit code %d", code)
			}
			lines := strings.Split(strings.TrimSuffix(p.errs.String(), "\n"), "\n")
			last := lines[len(lines)-1]
			for _, want := range c.says {
				if !strings.Contains(last, want) {
					t.Errorf("the last line lacks %q: %s", want, p.errs.String())
				}
			}
			if p.out.Len() > 0 || len(lines) != 1 {
				t.Errorf("more than one line: %s%s", p.out.String(), p.errs.String())
			}
		})
	}
}

// A folder that the user may not write to. Root may write everywhere.
func TestFolderNotWritable(t *testing.T) {
	if os.Getuid() <= 0 {
		t.Skip("this user may write to any folder; runs as a user of Unix that is not root")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	p := command(t, "server", "--data", dir)
	p.start()
	if code := p.wait(); code != 1 || !strings.Contains(p.errs.String(), "can't be written: permission denied") {
		t.Errorf("exit code %d: %s", code, p.errs.String())
	}
}

func TestMessagesOutliveTheProcess(t *testing.T) {
	data := t.TempDir()
	p := server(t, data)
	p.run("", "admin", "topic", "create", "orders", "--queues", "4")
	var lines []string
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("order %03d", i))
	}
	ids := strings.Fields(p.run(strings.Join(lines[:150], "\n"), "produce", "orders"))
	if len(ids) != 150 {
		t.Fatalf("%d ids", len(ids))
	}
	if err := p.cmd.Process.Kill(); err != nil { // what was acknowledged survives this
		t.Fatal(err)
	}
	p.wait()

	p = server(t, data)
	p.run(strings.Join(lines[150:], "\n"), "produce", "orders")
	seen := map[string]int{}
	for _, line := range strings.Split(strings.TrimSpace(p.run("", "consume", "orders", "--max", "80")), "\n") {
		seen[line]++
	}
	p.stop() // what was acknowledged by the consumer does not come back after this

	p = server(t, data)
	for _, line := range strings.Split(strings.TrimSpace(p.run("", "consume", "orders", "--max", "120")), "\n") {
		seen[line]++
	}
	for _, line := range lines {
		if seen[line] != 1 {
			t.Errorf("%q came %d times", line, seen[line])
		}
	}
	if len(seen) != len(lines) {
		t.Errorf("%d different messages", len(seen))
	}
	p.stop()
}

// The five-minute tour of the README.
func TestFifoTour(t *testing.T) {
	p := server(t, t.TempDir())
	p.run("", "admin", "topic", "create", "orders", "--type", "fifo")
	if got := strings.Fields(p.run("", "admin", "topic", "list")); !slices.Contains(got, "orders") {
		t.Errorf("topics: %q", got)
	}
	var lines []string
	for i := range 40 {
		lines = append(lines, fmt.Sprintf("step-%02d", i))
	}
	p.run(strings.Join(lines, "\n"), "produce", "orders", "--message-group", "order-1")
	if got := strings.Fields(p.run("", "consume", "orders", "--max", "40")); !slices.Equal(got, lines) {
		t.Errorf("consumed %q", got)
	}
	p.stop()
}

func TestVersion(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, path, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "bolide ") || !strings.Contains(string(out), "data format 1") {
		t.Errorf("%q, %v", out, err)
	}
}

// The parts alone: a broker registers with a name server of another process.
func TestPartsAlone(t *testing.T) {
	ready := func(p *process, path string) readyFile {
		t.Helper()
		p.start()
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			if text, err := os.ReadFile(path); err == nil {
				var r readyFile
				if err := json.Unmarshal(text, &r); err != nil {
					t.Fatal(err)
				}
				return r
			}
			select {
			case <-p.exited:
				t.Fatalf("%q ended: %s", p.startedWith, p.errs.String())
			case <-time.After(2 * time.Millisecond):
			}
		}
		t.Fatalf("%q: no ready file", p.startedWith)
		return readyFile{}
	}
	dir := t.TempDir()
	ns := command(t, "namesrv", "--data", filepath.Join(dir, "ns"), "--namesrv-addr", "127.0.0.1:0", "--ready-file", filepath.Join(dir, "ns.json"))
	at := ready(ns, filepath.Join(dir, "ns.json"))
	b := command(t, "broker", "--data", filepath.Join(dir, "b"), "--broker-addr", "127.0.0.1:0", "--namesrv", at.Namesrv, "--ready-file", filepath.Join(dir, "b.json"))
	if r := ready(b, filepath.Join(dir, "b.json")); r.Broker == "" || r.Namesrv != "" || r.GRPC != "" {
		t.Errorf("the broker's ready file: %+v", r)
	}
	client := &process{t: t, ready: at, program: ns.program}
	for deadline := time.Now().Add(patience); ; { // the registration is not awaited by the start
		c := command(t, "admin", "topic", "create", "orders", "--namesrv", at.Namesrv)
		c.start()
		if c.wait() == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no broker: %s", c.errs.String())
		}
	}
	client.run("one\ntwo", "produce", "orders")
	if got := client.run("", "consume", "orders", "--max", "2"); len(strings.Fields(got)) != 2 {
		t.Errorf("consumed %q", got)
	}
	b.stop()
	ns.stop()
}

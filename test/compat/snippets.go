package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// snippetsPage has the shortest program with each client, below a line with its name.
const snippetsPage = "docs/clients.md"

var snippetOf = regexp.MustCompile("(?s)\n### ([^\n]+)\n.*?\n```(\\w+)\n(.*?\n)```\n")

// runners prepare a program in a folder of its own, by the client's name.
var runners = map[string]func(ctx context.Context, h *harness, dir, program string) (*exec.Cmd, error){
	"Go v5": goSnippet, "Go, classic": goSnippet, "Java": javaSnippet, "Java, classic": javaSnippet,
	"Python": pythonSnippet, "Node": nodeSnippet, "Rust": rustSnippet,
}

// snippetsSuite runs the programs of the page, each with a topic and a group of its own, and
// wants what they send to come back.
func snippetsSuite(ctx context.Context, h *harness) error {
	page, err := os.ReadFile(filepath.Join(h.root, filepath.FromSlash(snippetsPage)))
	if err != nil {
		return err
	}
	missing := len(runners)
	for i, m := range snippetOf.FindAllStringSubmatch(string(page), -1) {
		name, program := m[1], m[3]
		missing--
		if !strings.Contains(name, h.only) {
			continue
		}
		h.report("snippet of "+name, h.snippet(ctx, i, name, program))
	}
	if missing != 0 {
		return fmt.Errorf("%s lacks %d of the programs, or has too many", snippetsPage, missing)
	}
	return nil
}

// longestSnippet is how long one may take, what it installs and builds included.
const longestSnippet = 10 * time.Minute

func (h *harness) snippet(ctx context.Context, i int, name, program string) error {
	ctx, cancel := context.WithTimeout(ctx, longestSnippet)
	defer cancel()
	prepare := runners[name]
	if prepare == nil {
		return errors.New("nothing here runs it")
	}
	topic := fmt.Sprintf("snippet-%d-%d", i, time.Now().UnixNano())
	if err := h.createTopic(ctx, topic, "NORMAL"); err != nil {
		return err
	}
	for _, r := range []struct{ was, is string }{
		{"127.0.0.1:8081", h.target.GRPC}, {"127.0.0.1:9876", h.target.Namesrv}, {"orders", topic}, {"warehouse", topic}, {"shop", topic + "-shop"},
	} {
		program = strings.ReplaceAll(program, r.was, r.is)
	}
	dir := filepath.Join(h.work, topic)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	cmd, err := prepare(ctx, h, dir, program)
	if err != nil {
		return err
	}
	cmd.Env = append(slices.Concat(os.Environ(), cmd.Env), "HOME="+h.work)
	out, err := cmd.CombinedOutput()
	if h.apache && strings.Contains(string(out), `"settings" is null`) {
		fmt.Printf("SKIP %s: Apache's server refuses receives until it has the settings, which this client does not wait for\n", name)
		return nil
	}
	if err == nil && !slices.Contains(strings.Split(string(out), "\n"), "hello") {
		err = errors.New("it does not print what it has sent")
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, last(out, 3000))
	}
	return nil
}

// goSnippet builds in a copy of the Go suite's module, without its tests.
func goSnippet(ctx context.Context, h *harness, dir, program string) (*exec.Cmd, error) {
	if err := h.copyInto(dir, "go/go.mod", "go/go.sum"); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", "snippet", ".")
	return exec.CommandContext(ctx, filepath.Join(dir, "snippet")), built(dir, "main.go", program, build)
}

func javaSnippet(ctx context.Context, h *harness, dir, program string) (*exec.Cmd, error) {
	if err := h.buildJava(ctx); err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, "java", "-Xmx512m", "-Duser.home="+h.work, "-cp", h.javaClasspath, filepath.Join(dir, "Hello.java")),
		built(dir, "Hello.java", program, nil)
}

func pythonSnippet(ctx context.Context, h *harness, dir, program string) (*exec.Cmd, error) {
	python, err := h.pythonClient(ctx)
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, python, filepath.Join(dir, "hello.py")), built(dir, "hello.py", program, nil)
}

func nodeSnippet(ctx context.Context, h *harness, dir, program string) (*exec.Cmd, error) {
	modules, err := h.nodeClient(ctx)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "node", filepath.Join(dir, "hello.js"))
	cmd.Env = []string{"NODE_PATH=" + modules}
	return cmd, built(dir, "hello.js", program, nil)
}

// rustSnippet builds beside the Rust suite, with what was compiled for that.
func rustSnippet(ctx context.Context, h *harness, dir, program string) (*exec.Cmd, error) {
	target, err := clientsCache("rust-5.0.0")
	if err != nil {
		return nil, err
	}
	if err := h.copyInto(dir, "rust/Cargo.toml", "rust/Cargo.lock"); err != nil {
		return nil, err
	}
	for _, name := range []string{"Cargo.toml", "Cargo.lock"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(string(text), "bolide-compat", "bolide-snippet")), 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o755); err != nil {
		return nil, err
	}
	build := exec.CommandContext(ctx, "cargo", "build", "--quiet", "--target-dir", target)
	return exec.CommandContext(ctx, filepath.Join(target, "debug", "bolide-snippet")), built(dir, filepath.Join("src", "main.rs"), program, build)
}

// copyInto copies files of test/compat into a folder.
func (h *harness) copyInto(dir string, files ...string) error {
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(h.root, "test", "compat", filepath.FromSlash(name)))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(name)), text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// built writes a program and builds it, where it is to be built before it runs.
func built(dir, file, program string, build *exec.Cmd) error {
	if err := os.WriteFile(filepath.Join(dir, file), []byte(program), 0o644); err != nil || build == nil {
		return err
	}
	build.Dir = dir
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(build.Args, " "), err, last(out, 3000))
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bolidemq/bolide/test/servers"
)

// buildJava compiles the Java suite once and finds its class path.
func (h *harness) buildJava(ctx context.Context) error {
	if h.javaClasspath != "" {
		return nil
	}
	target := filepath.Join(h.work, "java")
	list := filepath.Join(h.work, "classpath")
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-DbuildDirectory="+target,
		"compile", "dependency:build-classpath", "-Dmdep.outputFile="+list)
	cmd.Dir = filepath.Join(h.root, "test", "compat", "java")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the Java suite: %w\n%s", err, out)
	}
	jars, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	h.javaClasspath = filepath.Join(target, "classes") + string(os.PathListSeparator) + strings.TrimSpace(string(jars))
	return nil
}

// java is a command of the Java suite against a server.
func (h *harness) java(ctx context.Context, at servers.Ready, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "java", append([]string{
		"-Xmx512m", "-Duser.home=" + h.work, "-cp", h.javaClasspath, "dev.bolide.compat.Suite",
	}, args...)...)
	cmd.Env = h.envAt(at, fmt.Sprintf("COMPAT_COUNT=%d", h.count))
	return cmd
}

func javaSuite(ctx context.Context, h *harness) error {
	if err := h.buildJava(ctx); err != nil {
		return err
	}
	// The suite's own count repeats the verdicts, and would be read as the last word on all suites.
	own := func(line string) bool { return strings.Contains(line, " passed, ") }
	return h.stream(h.java(ctx, h.target, h.only), func(line string) bool { return !own(line) })
}

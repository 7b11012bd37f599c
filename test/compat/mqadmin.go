package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/bolidemq/bolide/test/servers"
)

// recordedMQAdmin is what mqadmin prints against Apache's servers, written by
//
//	go run ./test/compat --server apache --suites mqadmin --record
const recordedMQAdmin = "test/compat/testdata/mqadmin-5.5.0.txt"

// mqadminSuite runs Apache's own administration tool, command by command, and compares what
// it prints with what it prints against Apache's servers: the tool prints what the server
// answers. The comparison needs no Apache server, its side is recorded.
func mqadminSuite(ctx context.Context, h *harness) error {
	m := &mqadmin{h: h, values: map[string]string{
		"{broker}": h.target.Broker, "{namesrv}": h.target.Namesrv, "{work}": filepath.Join(h.work, "mqadmin"),
	}}
	recorded, err := readRecorded(filepath.Join(h.root, recordedMQAdmin))
	if err != nil && !h.record {
		return err
	}
	if err := m.prepare(); err != nil {
		return err
	}
	if err := m.start(ctx); err != nil {
		return err
	}
	defer m.stop()
	// R097 is four of the steps: one message is found by its key, its id, its offset id and
	// its place in the queue.
	var out strings.Builder
	again := map[string]int{} // how often a command has been run
	for _, s := range mqadminSteps {
		text, err := m.run(s.line)
		if err != nil {
			return fmt.Errorf("%s: %w", s.line, err)
		}
		m.remember(s.line, text)
		got := m.normal(text)
		title := s.line
		if again[title]++; again[title] > 1 {
			title += fmt.Sprint(" #", again[title])
		}
		fmt.Fprintf(&out, "=== %s\n%s\n", title, got)
		if strings.HasPrefix(s.line, "@") {
			if strings.Contains(text, "Exception") {
				return fmt.Errorf("%s: %s", s.line, text)
			}
			continue
		}
		if h.record {
			h.report("recorded: mqadmin "+title, nil)
			continue
		}
		h.report("mqadmin "+title, s.compare(got, recorded[title]))
	}
	if h.record {
		return os.WriteFile(filepath.Join(h.root, recordedMQAdmin), []byte(out.String()), 0o644)
	}
	return nil
}

// readRecorded reads the sections of a record, by their command.
func readRecorded(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	of := map[string]string{}
	for section := range strings.SplitSeq(string(text), "=== ") {
		line, rest, _ := strings.Cut(section, "\n")
		of[line] = strings.TrimSuffix(rest, "\n")
	}
	return of, nil
}

// mqadmin is the running tool.
type mqadmin struct {
	h      *harness
	values map[string]string // what placeholders in commands stand for

	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

// prepare writes the files that some commands read.
func (m *mqadmin) prepare() error {
	dir := m.values["{work}"]
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"topics.json": `[{"topicName":"adm-list-1","readQueueNums":2,"writeQueueNums":2,"perm":6},{"topicName":"adm-list-2","readQueueNums":3,"writeQueueNums":3,"perm":4}]`,
		"groups.json": `[{"groupName":"adm-group-list-1","retryMaxTimes":3},{"groupName":"adm-group-list-2","consumeEnable":false}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (m *mqadmin) start(ctx context.Context) (err error) {
	classpath, err := servers.ApacheClasspath(ctx)
	if err != nil {
		return err
	}
	work := m.values["{work}"]
	m.cmd = exec.CommandContext(ctx, "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-Duser.home="+work, "-Drocketmq.home.dir="+work,
		"-Drocketmq.namesrv.addr="+m.h.target.Namesrv, "-cp", classpath, filepath.Join(m.h.root, "test", "compat", "mqadmin", "Admin.java"))
	m.cmd.Dir = work // some commands write files
	m.cmd.Stderr = &m.stderr
	if m.in, err = m.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	m.out = bufio.NewReader(out)
	return m.cmd.Start()
}

func (m *mqadmin) stop() {
	m.in.Close()
	m.cmd.Wait()
}

// run runs one command and returns what it printed.
func (m *mqadmin) run(line string) (string, error) {
	words := strings.Fields(line)
	for i, w := range words {
		for name, value := range m.values {
			w = strings.ReplaceAll(w, name, value)
		}
		words[i] = w
	}
	if !strings.HasPrefix(line, "@") && !strings.Contains(line, " -n ") {
		words = append(words, "-n", m.h.target.Namesrv)
	}
	if _, err := fmt.Fprintln(m.in, strings.Join(words, "\t")); err != nil {
		return "", err
	}
	kill := time.AfterFunc(2*time.Minute, func() { m.cmd.Process.Kill() })
	defer kill.Stop()
	length, err := m.out.ReadString('\n')
	if err != nil {
		return "", errors.Join(err, errors.New(m.stderr.String()))
	}
	n, err := strconv.Atoi(strings.TrimSpace(length))
	if err != nil {
		return "", err
	}
	text := make([]byte, n)
	_, err = io.ReadFull(m.out, text)
	return string(text), err
}

// remember keeps what later commands ask for: ids of messages and clients.
func (m *mqadmin) remember(line, text string) {
	words := strings.Fields(text)
	switch {
	case strings.HasPrefix(line, "@send ") && len(words) == 2:
		m.values["{msgid}"], m.values["{offsetid}"] = words[0], words[1]
	case strings.HasPrefix(line, "@consume ") && len(words) == 1:
		m.values["{client}"] = words[0]
	}
}

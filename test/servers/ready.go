// Package servers starts the servers that the suites and benchmarks run against: Apache
// RocketMQ, fetched by its Maven coordinates, and Bolide's built binary. Both are separate
// processes on free ports of the loopback interface, with a data folder of their own, and
// both say where they listen in the same form.
package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// Ready is where a server listens: the content of Bolide's --ready-file, and the same for
// Apache RocketMQ, whose processes are several.
type Ready struct {
	Namesrv string `json:"namesrv"`
	Broker  string `json:"broker"`
	GRPC    string `json:"grpc"`
	Proxy   string `json:"proxy"`
	Metrics string `json:"metrics,omitempty"`
	PID     int    `json:"pid"`
	PIDs    []int  `json:"pids,omitempty"`
}

// Processes lists all processes of the server.
func (r Ready) Processes() []int {
	if len(r.PIDs) > 0 {
		return r.PIDs
	}
	return []int{r.PID}
}

// Env returns the addresses as the environment variables that the suites read.
func (r Ready) Env() []string {
	return []string{
		"COMPAT_NAMESRV=" + r.Namesrv,
		"COMPAT_BROKER=" + r.Broker,
		"COMPAT_GRPC=" + r.GRPC,
		"COMPAT_PROXY=" + r.Proxy,
	}
}

// Write puts the addresses into a file, whole or not at all.
func (r Ready) Write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".part", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

// Server is a running server.
type Server struct {
	Ready
	// Started is how long it took from the start of the first process until it served.
	Started time.Duration
	// Dir is its data folder.
	Dir string

	processes []*process // in the order of their start
	steps     []func(context.Context) (*process, error)
}

// Renew kills or stops one of the processes of Apache RocketMQ, calls gone, and starts it
// again in its place: 0 is the name server, 1 the broker, 2 the proxy.
func (s *Server) Renew(ctx context.Context, i int, kill bool, gone func()) error {
	if old := s.processes[i]; kill {
		old.cmd.Process.Kill()
		<-old.ended
	} else if err := old.stop(40 * time.Second); err != nil {
		return err
	}
	gone()
	p, err := s.steps[i](ctx)
	if p != nil {
		s.processes[i], s.PIDs[i] = p, p.cmd.Process.Pid
	}
	return err
}

// Stop ends the server in order, the last process first, and kills what does not end.
func (s *Server) Stop() error {
	var first error
	for i := len(s.processes) - 1; i >= 0; i-- {
		if err := s.processes[i].stop(40 * time.Second); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Kill ends the server as kill -9 does.
func (s *Server) Kill() {
	for _, p := range s.processes {
		p.cmd.Process.Kill()
	}
	for _, p := range s.processes {
		<-p.ended
	}
}

// Ended is closed when the server's last started process has ended.
func (s *Server) Ended() <-chan struct{} { return s.processes[len(s.processes)-1].ended }

// process is one child with its output in a file.
type process struct {
	name  string
	log   string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // valid when ended is closed
}

func start(name, dir string, cmd *exec.Cmd) (*process, error) {
	log := filepath.Join(dir, name+".log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		out.Close()
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, log: log, cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		out.Close()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) stop(patience time.Duration) error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		return nil
	case <-time.After(patience):
		p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %v", p.name, patience)
	}
}

// await polls try until it succeeds. It gives up when the process ends or the context does,
// and then says what the process wrote last.
func (p *process) await(ctx context.Context, what string, every time.Duration, try func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended while waiting for %s: %v\n%s", p.name, what, p.err, p.tail())
		case <-ctx.Done():
			return fmt.Errorf("%s: waiting for %s: %w (last: %v)\n%s", p.name, what, ctx.Err(), err, p.tail())
		case <-tick.C:
		}
	}
}

func (p *process) tail() string {
	text, _ := os.ReadFile(p.log)
	if len(text) > 4000 {
		text = text[len(text)-4000:]
	}
	return string(text)
}

// FreePlace is a place for a server that is started again and again in it. Ports that the
// system gave could go to somebody's outgoing connection while the server is down.
func FreePlace() (*Ready, error) {
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	return &Ready{Namesrv: at(0), Broker: at(1), GRPC: at(2), Proxy: at(3)}, nil
}

// freePorts finds n different ports that nothing listens on, each with its neighbours free as
// well, since a broker takes the port two below and the one above its own. They lie below the
// range that the kernel gives to outgoing connections, so that none of those is in the way.
func freePorts(n int) ([]int, error) {
	var ports []int
	for tries := 0; len(ports) < n && tries < 1000; tries++ {
		port := 20000 + rand.IntN(12000)
		if apart(ports, port) && allFree(port-2, port+1) {
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		return nil, fmt.Errorf("no %d free ports found", n)
	}
	return ports, nil
}

func apart(ports []int, port int) bool {
	for _, p := range ports {
		if port >= p-4 && port <= p+4 {
			return false
		}
	}
	return true
}

func allFree(from, to int) bool {
	for port := from; port <= to; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

func dial(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"

	"github.com/bolidemq/bolide/internal/bench"
	"github.com/bolidemq/bolide/test/servers"
)

// emptyService answers sends without doing anything: what grpc-go alone costs.
type emptyService struct {
	v2.UnimplementedMessagingServiceServer
}

var done = &v2.Status{Code: v2.Code_OK, Message: "OK"}

// SendMessage answers at once.
func (emptyService) SendMessage(_ context.Context, r *v2.SendMessageRequest) (*v2.SendMessageResponse, error) {
	return &v2.SendMessageResponse{Status: done, Entries: []*v2.SendResultEntry{{
		Status: done, MessageId: r.GetMessages()[0].GetSystemProperties().GetMessageId(),
	}}}, nil
}

// Telemetry sends settings back.
func (emptyService) Telemetry(s grpc.BidiStreamingServer[v2.TelemetryCommand, v2.TelemetryCommand]) error {
	for {
		command, err := s.Recv()
		if err != nil {
			return nil
		}
		if err := s.Send(command); err != nil {
			return err
		}
	}
}

// serveEmpty is this program as the server of the baseline, in a process of its own.
func serveEmpty() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	s := grpc.NewServer()
	v2.RegisterMessagingServiceServer(s, emptyService{})
	s.Serve(l)
}

// emptyHandler measures gRPC sends to it.
func (m *measurer) emptyHandler(ctx context.Context) ([]bench.Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, self, "empty-grpc-server")
	out, err := server.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	defer server.Wait()
	defer server.Process.Kill()
	var addr string
	if _, err := fmt.Fscanln(out, &addr); err != nil {
		return nil, err
	}
	var all []bench.Result
	for i := range m.runs + 1 {
		text, err := exec.CommandContext(ctx, m.binary, "bench", "send", "--protocol", "grpc", "--json", "--quiet",
			"--namesrv", "", "--grpc", addr, "--topic", "nowhere",
			"--count", fmt.Sprint(int(100_000*m.scale)), "--server-pid", fmt.Sprint(server.Process.Pid)).Output()
		if err != nil {
			return nil, err
		}
		var r bench.Result
		if err := json.Unmarshal(text, &r); err != nil {
			return nil, err
		}
		if i > 0 {
			all = append(all, r)
		}
	}
	return all, nil
}

// bigLogStarts is how long Bolide takes to start on a long log.
type bigLogStarts struct{ GiB, CleanMS, KilledMS float64 }

func (m *measurer) bigLog(ctx context.Context, gib int) (*bigLogStarts, error) {
	dir := m.dir("biglog")
	defer os.RemoveAll(dir)
	start := func() (*servers.Server, error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
		defer cancel()
		return servers.StartBolide(ctx, servers.BolideOptions{Binary: m.binary, Dir: dir})
	}
	s, err := start()
	if err != nil {
		return nil, err
	}
	// 4 KiB messages fill the log faster; what a start does depends on its length and on the
	// number of messages behind the checkpoint.
	const stored = 4096 + 200
	w := workload{name: "fill", args: []string{"send", "--size", "4096"}, count: int(float64(gib) * (1 << 30) / stored / m.scale)}
	if _, err := m.bench(ctx, s, w, 1); err != nil {
		s.Kill()
		return nil, err
	}
	if err := s.Stop(); err != nil {
		return nil, err
	}
	big := &bigLogStarts{GiB: float64(gib)}
	if s, err = start(); err != nil {
		return nil, err
	}
	big.CleanMS = float64(s.Started.Milliseconds())
	// Killed right after the last of many sends, so that the tail has to be looked at.
	w.count = int(100_000 / m.scale)
	if _, err := m.bench(ctx, s, w, 1); err != nil {
		s.Kill()
		return nil, err
	}
	s.Kill()
	if s, err = start(); err != nil {
		return nil, err
	}
	big.KilledMS = float64(s.Started.Milliseconds())
	return big, s.Stop()
}

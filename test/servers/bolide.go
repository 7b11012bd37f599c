package servers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// BolideOptions says how Bolide's binary is started.
type BolideOptions struct {
	Binary string   // path of the built binary
	Dir    string   // log and ready file, and data unless Data says otherwise; made when missing
	Data   string   // the data folder; Dir/data when empty
	Args   []string // more arguments of `bolide server`

	// Addresses of an earlier run, or a FreePlace, for restarts in the same place. Empty:
	// any free ports.
	Again *Ready
}

// BuildBolide builds the binary from this module's source into dir.
func BuildBolide(ctx context.Context, dir string) (string, error) {
	binary := filepath.Join(dir, "bolide")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, "github.com/bolidemq/bolide/cmd/bolide")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build bolide: %w\n%s", err, out)
	}
	return binary, nil
}

// StartBolide starts `bolide server` and returns when its ready file stands.
func StartBolide(ctx context.Context, o BolideOptions) (*Server, error) {
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	ready := filepath.Join(o.Dir, "ready.json")
	if err := os.Remove(ready); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	at := Ready{Namesrv: "127.0.0.1:0", Broker: "127.0.0.1:0", GRPC: "127.0.0.1:0", Proxy: "127.0.0.1:0"}
	if o.Again != nil {
		at = *o.Again
	}
	args := append([]string{"server",
		"--data", or(o.Data, filepath.Join(o.Dir, "data")),
		"--namesrv-addr", at.Namesrv,
		"--broker-addr", at.Broker,
		"--grpc-addr", at.GRPC,
		"--proxy-addr", at.Proxy,
		"--ready-file", ready,
	}, o.Args...)
	began := time.Now()
	p, err := start("bolide", o.Dir, exec.Command(o.Binary, args...))
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: o.Dir, processes: []*process{p}}
	err = p.await(ctx, "the ready file", time.Millisecond, func() error {
		text, err := os.ReadFile(ready)
		if err != nil {
			return err
		}
		return json.Unmarshal(text, &s.Ready)
	})
	if err != nil {
		s.Kill()
		return nil, err
	}
	s.Started = time.Since(began)
	return s, nil
}

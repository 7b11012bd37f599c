package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// Ready is where a node serves: the content of the ready file.
type Ready struct {
	Namesrv string `json:"namesrv,omitempty"`
	Broker  string `json:"broker,omitempty"`
	GRPC    string `json:"grpc,omitempty"`
	Proxy   string `json:"proxy,omitempty"`
	Metrics string `json:"metrics,omitempty"`
	PID     int    `json:"pid"`
}

func readyOf(all []*listener) Ready {
	r := Ready{PID: os.Getpid()}
	for _, l := range all {
		addr := dialable(l.addr()).String()
		for _, name := range l.names {
			switch name {
			case listenerNamesrv:
				r.Namesrv = addr
			case listenerBroker:
				r.Broker = addr
			case listenerGRPC:
				r.GRPC = addr
			case listenerProxy:
				r.Proxy = addr
			}
		}
	}
	return r
}

// dialable is an address of this machine behind which the listener is found.
func dialable(a netip.AddrPort) netip.AddrPort {
	if a.Addr().IsUnspecified() {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), a.Port())
	}
	return a
}

// clearReadyFile takes away what an earlier process left, and finds out before anything is
// opened whether the file can be written.
func clearReadyFile(path string) error {
	if path == "" {
		return nil
	}
	// Else an empty folder would be taken away, and this file be in its place.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("ready file %s can't be written: it is a folder, or no file otherwise", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".ready-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err == nil {
		if err = os.Remove(path); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("ready file %s can't be written: %w", path, cause(err))
	}
	return nil
}

func (r Ready) write(path string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := writeFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("ready file %s can't be written: %w", path, cause(err))
	}
	return nil
}

package cli

import (
	"fmt"
	"net"
	"os"
	"time"
)

// What a server tells the supervisor that has started it, in systemd's words.
const (
	supervisorReady    = "READY=1"
	supervisorStopping = "STOPPING=1"
)

// tellSupervisor tells systemd, or who speaks its protocol, how far the server is. Where
// NOTIFY_SOCKET is not set, nobody wants to know.
func tellSupervisor(what string) error {
	socket := os.Getenv("NOTIFY_SOCKET")
	if socket == "" {
		return nil
	}
	if err := sendDatagram(socket, what); err != nil {
		return fmt.Errorf("tell %s to the supervisor at NOTIFY_SOCKET: %w", what, err)
	}
	return nil
}

func sendDatagram(socket, text string) error {
	// "@" begins a name without a file, for Go as for systemd.
	conn, err := net.DialTimeout("unixgram", socket, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(text))
	return err
}

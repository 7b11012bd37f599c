// Command apache runs Apache RocketMQ 5.5.0 on free ports of the loopback interface, with a
// data folder of its own, until it is interrupted:
//
//	go run ./test/apache --dir /tmp/apache --ready-file /tmp/apache/ready.json
//
// It needs Java 17 and Maven, which fetches the jars once.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/bolidemq/bolide/test/servers"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "apache:", err)
		os.Exit(1)
	}
}

func run() error {
	var o servers.ApacheOptions
	var ready, lines string
	flag.StringVar(&o.Dir, "dir", "", "folder for data and logs (default: a new one in the temporary folder)")
	flag.StringVar(&o.Store, "store", "", "folder of the store (default: in --dir)")
	flag.StringVar(&o.NamesrvHeap, "namesrv-heap", "256m", "heap of the name server")
	flag.StringVar(&o.BrokerHeap, "broker-heap", "1g", "heap of the broker")
	flag.StringVar(&o.ProxyHeap, "proxy-heap", "1g", "heap of the proxy")
	flag.BoolVar(&o.NoProxy, "no-proxy", false, "start name server and broker only")
	flag.BoolVar(&o.Metrics, "metrics", false, "with the exporter for Prometheus")
	flag.StringVar(&lines, "broker-config", "", "more lines for the broker's configuration, separated by commas")
	flag.StringVar(&ready, "ready-file", "", "file that gets the addresses when all of it serves")
	flag.Parse()
	if lines != "" {
		o.Broker = strings.Split(lines, ",")
	}
	if o.Dir == "" {
		dir, err := os.MkdirTemp("", "apache-rocketmq-")
		if err != nil {
			return err
		}
		o.Dir = dir
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := servers.StartApache(ctx, o)
	if err != nil {
		return err
	}
	text, _ := json.Marshal(s.Ready)
	fmt.Println(string(text))
	fmt.Fprintf(os.Stderr, "ready in %d ms, data in %s\n", s.Started.Milliseconds(), s.Dir)
	if ready != "" {
		if err := s.Ready.Write(ready); err != nil {
			s.Kill()
			return err
		}
	}
	select {
	case <-ctx.Done():
	case <-s.Ended():
		s.Stop()
		return fmt.Errorf("a server ended by itself; its log is in %s", s.Dir)
	}
	return s.Stop()
}

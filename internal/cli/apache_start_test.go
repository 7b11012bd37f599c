package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// What is in testdata/apache are the keys and values of the files that Apache RocketMQ 5.5.0
// comes with; in all/, every setting that its running broker and name server have, as
// GET_BROKER_CONFIG and GET_NAMESRV_CONFIG print them, with DIR for their folder.

// TestStartsWithApachesFiles: a server really starts with them, serves with what they say,
// names in one warning what means nothing here, and stops in order.
func TestStartsWithApachesFiles(t *testing.T) {
	for _, c := range []struct {
		name    string
		files   []string
		own     bool              // the files say where data and ports are
		want    map[string]string // of the running broker
		warning []string
	}{
		{name: "as shipped", files: []string{"broker.conf", "namesrv.conf", "rmq-proxy.json"},
			want:    map[string]string{"brokerName": "broker-a", "fileReservedTime": "48", "deleteWhen": "04", "flushDiskType": "ASYNC_FLUSH"},
			warning: []string{"enableControllerInNamesrv", "controllerDLegerPeers", "rocketMQClusterName"}},
		{name: "all settings", files: []string{"all/broker.conf", "all/namesrv.conf", "rmq-proxy.json"}, own: true,
			want:    map[string]string{"brokerName": "broker-a", "fileReservedTime": "72", "maxMessageSize": "4194304"},
			warning: []string{"sendMessageThreadPoolNums", "useEpollNativeSelector", "rocketmqHome"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			args := []string{"server", "--ready-file", filepath.Join(dir, "ready.json"), "--grpc-addr", "127.0.0.1:0", "--proxy-addr", "127.0.0.1:0"}
			if !c.own {
				args = append(args, "--data", filepath.Join(dir, "store"), "--namesrv-addr", "127.0.0.1:0", "--broker-addr", "127.0.0.1:0")
			}
			for _, name := range c.files {
				text, err := os.ReadFile(filepath.Join("testdata/apache", name))
				if err != nil {
					t.Fatal(err)
				}
				path := filepath.Join(dir, filepath.Base(name))
				if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("DIR"), []byte(dir)), 0o644); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--apache-config", path)
			}
			ready, stop := serve(t, filepath.Join(dir, "ready.json"), args)
			client := transport.NewClient(transport.ClientOptions{})
			defer client.Close()
			call := func(code int32, h remoting.Header, body []byte) *remoting.Command {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				a, err := client.Call(ctx, ready.Broker, code, h, body)
				if err != nil || a.Code != 0 {
					t.Fatalf("%s: %v %+v", remoting.CodeName(code), err, a)
				}
				return a
			}
			call(remoting.ReqSendMessageV2, &remoting.SendMessageRequest{V2: true, ProducerGroup: "p", Topic: "orders", DefaultTopic: "TBW102", DefaultTopicQueueNums: 4,
				BornTimestamp: time.Now().UnixMilli()}, []byte("x"))
			list, err := config.ParseProperties(call(remoting.ReqGetBrokerConfig, nil, nil).Body)
			if err != nil {
				t.Fatal(err)
			}
			got := make(map[string]string)
			for _, p := range list {
				got[p.Name] = p.Value
			}
			for name, want := range c.want {
				if got[name] != want {
					t.Errorf("%s is %q, the file says %q", name, got[name], want)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "store", "commitlog")); err != nil {
				t.Errorf("the store is not where the file says: %v", err)
			}
			said := stop()
			passed := 0
			for line := range strings.SplitSeq(said, "\n") {
				if strings.Contains(line, "--apache-config") {
					passed++
					for _, name := range c.warning {
						if !strings.Contains(line, name) {
							t.Errorf("%s is not named in %s", name, line)
						}
					}
				}
			}
			if passed != 1 {
				t.Errorf("%d lines about what is passed over:\n%s", passed, said)
			}
		})
	}
}

// serve runs the command line until stop is called, which returns what was said.
func serve(t *testing.T, readyFile string, args []string) (ready struct{ Namesrv, Broker string }, stop func() string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs bytes.Buffer // read when Main has returned
	code := make(chan int, 1)
	go func() { code <- Main(ctx, args, strings.NewReader(""), &out, &errs) }()
	stop = func() string {
		cancel()
		if c := <-code; c != 0 {
			t.Errorf("code %d:\n%s", c, errs.String())
		}
		return errs.String()
	}
	patience := time.After(time.Minute)
	for {
		text, err := os.ReadFile(readyFile)
		if err == nil && json.Unmarshal(text, &ready) == nil {
			return ready, stop
		}
		select {
		case c := <-code:
			t.Fatalf("code %d:\n%s", c, errs.String())
		case <-patience:
			t.Fatalf("not ready after a minute:\n%s", errs.String())
		case <-time.After(time.Millisecond):
		}
	}
}

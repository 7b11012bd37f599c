package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/node"
)

// apacheFlags reads files as `bolide server --apache-config` does, with flags beside it.
func apacheFlags(t *testing.T, flags []string, files ...string) (f *serverFlags, taken config.Options, err error) {
	t.Helper()
	f = &serverFlags{}
	f.Roles, f.settings = node.All, []string{"fileReservedTime=9"}
	c := &cobra.Command{}
	c.Flags().StringVar(&f.Data, "data", node.DefaultData, "")
	for name, target := range map[string]*string{"namesrv-addr": &f.NamesrvAddr, "broker-addr": &f.BrokerAddr, "grpc-addr": &f.GRPCAddr, "proxy-addr": &f.ProxyAddr, "advertise": &f.Advertise} {
		c.Flags().StringVar(target, name, "", "")
	}
	if err := c.ParseFlags(flags); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(t.TempDir(), files[i])
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
		f.apache = append(f.apache, path)
	}
	if err := f.readSettings(c); err != nil {
		return f, taken, err
	}
	taken, found := config.Take(f.Settings)
	return f, taken, found.Err()
}

func TestApacheFilesAreReadAsTheyAre(t *testing.T) {
	f, taken, err := apacheFlags(t, []string{"--proxy-addr", ":7777"},
		"broker.conf", "# a comment\nbrokerClusterName = C1\nbrokerName=b1\nbrokerId=0\ndeleteWhen=04\nfileReservedTime=48\nbrokerRole=ASYNC_MASTER\n"+
			"flushDiskType=SYNC_FLUSH\nlistenPort=20911\nbrokerIP1=10.0.0.5\nnamesrvAddr=10.0.0.1:9876\nstorePathRootDir=/data/mq\nstorePathCommitLog=/data/mq/commitlog\nsendMessageThreadPoolNums=16\n",
		"namesrv.conf", "listenPort=19876\nserverWorkerThreads=8\n",
		"rmq-proxy.json", `{"rocketMQClusterName":"C1","grpcServerPort":18081,"remotingListenPort":18080,"maxMessageSize":2097152}`)
	if err != nil {
		t.Fatal(err)
	}
	if f.Data != "/data/mq" || f.BrokerAddr != ":20911" || f.NamesrvAddr != ":19876" || f.GRPCAddr != ":18081" || f.ProxyAddr != ":7777" || f.Advertise != "10.0.0.5:20911" {
		t.Errorf("%+v", f.Options)
	}
	got := []any{taken.Broker.BrokerName, taken.Broker.BrokerClusterName, taken.Store.FlushDiskType, taken.Store.MaxMessageSize, taken.Store.FileReservedTime}
	if want := []any{"b1", "C1", "SYNC_FLUSH", int32(2097152), int64(9)}; !slices.Equal(got, want) { // what is said elsewhere counts more
		t.Errorf("%v, want %v", got, want)
	}
	if len(f.unguarded) > 0 {
		t.Errorf("access control: %v", f.unguarded)
	}
	if f, _, err := apacheFlags(t, nil, "broker.conf", "authenticationEnabled = true\nauthorizationEnabled=false\n"); err != nil || !slices.Equal(f.unguarded, []string{"authenticationEnabled"}) {
		t.Errorf("access control: %+v, %v", f.unguarded, err)
	}
	if want := []string{"namesrvAddr", "sendMessageThreadPoolNums", "serverWorkerThreads", "rocketMQClusterName"}; !slices.Equal(f.ignored, want) {
		t.Errorf("passed over: %v", f.ignored)
	}
}

func TestApacheFilesThatCanNotBe(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"broker.conf", "brokerRole=SLAVE\nbrokerId=1\n", "no replication"},
		{"broker.conf", "storePathRootDir=/a\nstorePathCommitLog=/b/commitlog\n", "commitlog/ of the data folder"},
		{"rmq-proxy.json", `{"grpcServerPort":`, "rmq-proxy.json:1: the file is not JSON: it ends in the middle"},
		{"rmq-proxy.json", "{\n\"grpcServerPort\": 80810}", "rmq-proxy.json:2: grpcServerPort=80810: that is no port, 0 to 65535"},
		{"broker.conf", "\nlistenPort=10911 # the usual\n", "broker.conf:2: listenPort=10911 # the usual: that is no port"},
		{"broker.conf", "brokerIP1=10.0.0.1:10911\n", "broker.conf:1: brokerIP1=10.0.0.1:10911: that is no address"},
		{"broker.conf", "brokerIP1=10.0.0.1 # eth0\n", "broker.conf:1: brokerIP1=10.0.0.1 # eth0: that is no address"},
		{"namesrv.conf", "bindAddress=eth0:1\n", "namesrv.conf:1: bindAddress=eth0:1: that is no address"},
		{"broker.conf", "storePathRootDir=$HOME/store\n", `broker.conf:1: storePathRootDir=$HOME/store: "$HOME/store" would be a folder of exactly this name`},
		{"broker.conf", "namesrvAddr=ns1\n", `broker.conf:1: namesrvAddr=ns1: "ns1" is not HOST:PORT`},
		{"broker.conf", "brokerRole=SLAVE\nfileReservedTime=x\n", "(and 1 more problem)"},
		{"broker.conf", "enableDLegerCommitLog=true\ndLegerGroup=g\n", "log of DLedger"},
		{"broker.conf", "storeType=defaultRocksDB\n", "RocksDB"},
	} {
		if _, _, err := apacheFlags(t, nil, c.name, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.text, err)
		}
	}
}

// TestConfigPrintsWhatItTakes: the printed file with all its settings in force is sound.
func TestConfigPrintsWhatItTakes(t *testing.T) {
	printed := runLine(t, 0, "config")
	var lines []string
	for line := range strings.SplitSeq(printed, "\n") {
		if strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "# ") {
			line = line[1:]
		}
		lines = append(lines, line)
	}
	file := filepath.Join(t.TempDir(), "bolide.conf")
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := runLine(t, 0, "config", "--check", file); !strings.Contains(got, "all of them sound") {
		t.Error(got)
	}
	if err := os.WriteFile(file, []byte("fileReservedTime=soon\nnosuch=1\ndeleteWhen=25\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := runLine(t, 1, "config", "--check", file); !strings.Contains(got, "fileReservedTime") || !strings.Contains(got, "nosuch") || !strings.Contains(got, "25") {
		t.Error(got)
	}
}

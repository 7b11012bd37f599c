package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/node"
)

// apacheFlags reads files as `bolide server --apache-config` does, with flags beside it.
func apacheFlags(t *testing.T, flags []string, files ...string) (*serverFlags, error) {
	t.Helper()
	f := &serverFlags{}
	f.Roles, f.Settings = node.All, map[string]string{"fileReservedTime": "9"} // as if --config had said so
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
	return f, f.readApache(c)
}

func TestApacheFilesAreReadAsTheyAre(t *testing.T) {
	f, err := apacheFlags(t, []string{"--proxy-addr", ":7777"},
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
	for name, want := range map[string]string{"brokerName": "b1", "brokerClusterName": "C1", "flushDiskType": "SYNC_FLUSH", "maxMessageSize": "2097152",
		"fileReservedTime": "9"} { // what is said elsewhere counts more
		if f.Settings[name] != want {
			t.Errorf("%s: %q, not %q", name, f.Settings[name], want)
		}
	}
	if len(f.unguarded) > 0 {
		t.Errorf("access control: %v", f.unguarded)
	}
	if f, err := apacheFlags(t, nil, "broker.conf", "authenticationEnabled = true\nauthorizationEnabled=false\n"); err != nil || !slices.Equal(f.unguarded, []string{"authenticationEnabled"}) {
		t.Errorf("access control: %+v, %v", f.unguarded, err)
	}
	if want := []string{"sendMessageThreadPoolNums", "serverWorkerThreads", "rocketMQClusterName"}; !slices.Equal(f.ignored, want) {
		t.Errorf("passed over: %v", f.ignored)
	}
}

func TestApacheFilesThatCanNotBe(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"broker.conf", "brokerRole=SLAVE\nbrokerId=1\n", "no replication"},
		{"broker.conf", "storePathRootDir=/a\nstorePathCommitLog=/b/commitlog\n", "commitlog/ of the data folder"},
		{"rmq-proxy.json", `{"grpcServerPort":`, "rmq-proxy.json"},
		{"broker.conf", "enableDLegerCommitLog=true\ndLegerGroup=g\n", "log of DLedger"},
		{"broker.conf", "storeType=defaultRocksDB\n", "RocksDB"},
	} {
		if _, err := apacheFlags(t, nil, c.name, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
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

package servers

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ApacheVersion is the release that everything is compared with.
const ApacheVersion = "5.5.0"

//go:embed pom.xml
var apachePOM []byte

// ApacheOptions says how Apache RocketMQ is started.
type ApacheOptions struct {
	Dir   string // logs, and data unless Store says otherwise; made when missing
	Store string // the store's folder; Dir/store when empty

	// Heaps, in the JVM's own notation. Empty: 256m, 1g, 1g.
	NamesrvHeap, BrokerHeap, ProxyHeap string

	// Broker holds lines for the broker's configuration, for example flushDiskType=SYNC_FLUSH.
	Broker []string

	NoProxy bool // name server and broker only
	Metrics bool // with the exporter for Prometheus
}

// ApacheClasspath fetches Apache's jars by their coordinates, once, into the user's cache and
// returns the class path.
func ApacheClasspath(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "bolide-test", "apache-"+ApacheVersion)
	lib := filepath.Join(dir, "lib")
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return filepath.Join(lib, "*"), nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	pom := filepath.Join(dir, "pom.xml")
	if err := os.WriteFile(pom, apachePOM, 0o644); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-f", pom,
		"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies",
		"-DoutputDirectory="+lib)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("fetch Apache RocketMQ with Maven: %w\n%s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644); err != nil {
		return "", err
	}
	return filepath.Join(lib, "*"), nil
}

// StartApache starts name server, broker and proxy, one after the other, and returns when all
// of them serve. The class path is fetched before the time is taken.
func StartApache(ctx context.Context, o ApacheOptions) (_ *Server, err error) {
	classpath, err := ApacheClasspath(ctx)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "conf"), 0o755); err != nil {
		return nil, err
	}
	ports, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	a := &apache{ApacheOptions: o, classpath: classpath, ports: ports}
	began := time.Now()
	s := &Server{Dir: o.Dir, Ready: Ready{
		Namesrv: a.addr(0), Broker: a.addr(1), GRPC: a.addr(2), Proxy: a.addr(3),
	}}
	defer func() {
		if err != nil {
			s.Kill()
		}
	}()
	steps := []func(context.Context) (*process, error){a.namesrv, a.broker, a.proxy}
	if o.NoProxy {
		steps = steps[:2]
		s.GRPC, s.Proxy = "", ""
	}
	if o.Metrics {
		s.Metrics = a.addr(4)
	}
	s.steps = steps
	for _, step := range steps {
		p, err := step(ctx)
		if p != nil {
			s.processes = append(s.processes, p)
			s.PIDs = append(s.PIDs, p.cmd.Process.Pid)
		}
		if err != nil {
			return nil, err
		}
	}
	s.PID = s.PIDs[0]
	s.Started = time.Since(began)
	return s, nil
}

type apache struct {
	ApacheOptions
	classpath string
	ports     []int // name server, broker, gRPC, Remoting proxy, metrics
}

func (a *apache) addr(i int) string { return fmt.Sprintf("127.0.0.1:%d", a.ports[i]) }

func (a *apache) conf(name, text string) (string, error) {
	path := filepath.Join(a.Dir, "conf", name)
	return path, os.WriteFile(path, []byte(text), 0o644)
}

func (a *apache) java(name, heap, class string, args ...string) (*process, error) {
	jvm := []string{
		"-Xms" + heap, "-Xmx" + heap,
		"-Duser.home=" + a.Dir,
		"-Drocketmq.home.dir=" + a.Dir,
		"--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
		"--add-opens=java.base/java.nio=ALL-UNNAMED",
		"-cp", a.classpath, class,
	}
	cmd := exec.Command("java", append(jvm, args...)...)
	cmd.Dir = a.Dir
	cmd.Env = append(os.Environ(), "ROCKETMQ_HOME="+a.Dir)
	return start(name, a.Dir, cmd)
}

func (a *apache) namesrv(ctx context.Context) (*process, error) {
	conf, err := a.conf("namesrv.properties", fmt.Sprintf("listenPort=%d\nbindAddress=127.0.0.1\n", a.ports[0]))
	if err != nil {
		return nil, err
	}
	p, err := a.java("namesrv", or(a.NamesrvHeap, "256m"), "org.apache.rocketmq.namesrv.NamesrvStartup", "-c", conf)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, "the name server", 20*time.Millisecond, func() error {
		_, err := clusterInfo(a.addr(0))
		return err
	})
}

func (a *apache) broker(ctx context.Context) (*process, error) {
	store := or(a.Store, filepath.Join(a.Dir, "store"))
	lines := append([]string{
		"brokerClusterName=DefaultCluster",
		"brokerName=broker-a",
		"brokerId=0",
		"brokerIP1=127.0.0.1",
		fmt.Sprintf("listenPort=%d", a.ports[1]),
		fmt.Sprintf("haListenPort=%d", a.ports[1]+1),
		"namesrvAddr=" + a.addr(0),
		"storePathRootDir=" + store,
		"storePathCommitLog=" + filepath.Join(store, "commitlog"),
	}, a.Broker...)
	if a.Metrics {
		lines = append(lines, "metricsExporterType=PROM", "metricsPromExporterHost=127.0.0.1", fmt.Sprintf("metricsPromExporterPort=%d", a.ports[4]))
	}
	conf, err := a.conf("broker.properties", strings.Join(lines, "\n")+"\n")
	if err != nil {
		return nil, err
	}
	p, err := a.java("broker", or(a.BrokerHeap, "1g"), "org.apache.rocketmq.broker.BrokerStartup", "-c", conf)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, "the broker in the name server's list", 20*time.Millisecond, func() error {
		body, err := clusterInfo(a.addr(0))
		if err == nil && !bytes.Contains(body, []byte(a.addr(1))) {
			err = errors.New("not registered yet")
		}
		return errors.Join(err, dial(a.addr(1))) // the list may tell of one that was there before
	})
}

func (a *apache) proxy(ctx context.Context) (*process, error) {
	conf, err := a.conf("rmq-proxy.json", fmt.Sprintf(
		`{"rocketMQClusterName":"DefaultCluster","namesrvAddr":%q,"grpcServerPort":%d,"remotingListenPort":%d,"localServeAddr":"127.0.0.1"}`,
		a.addr(0), a.ports[2], a.ports[3]))
	if err != nil {
		return nil, err
	}
	p, err := a.java("proxy", or(a.ProxyHeap, "1g"), "org.apache.rocketmq.proxy.ProxyStartup", "-pc", conf)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx, "the proxy's ports", 20*time.Millisecond, func() error {
		return errors.Join(dial(a.addr(2)), dial(a.addr(3)))
	})
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// clusterInfo asks a name server for its brokers (code 106), with a frame made by hand: what
// waits for a server should not depend on the code that is being tested.
func clusterInfo(addr string) ([]byte, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(3 * time.Second))
	header := `{"code":106,"flag":0,"language":"JAVA","opaque":1,"serializeTypeCurrentRPC":"JSON","version":513}`
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header)))
	if _, err := c.Write(append(frame, header...)); err != nil {
		return nil, err
	}
	var lengths [8]byte
	if _, err := io.ReadFull(c, lengths[:]); err != nil {
		return nil, err
	}
	size := int(binary.BigEndian.Uint32(lengths[:4])) - 4
	headerSize := int(binary.BigEndian.Uint32(lengths[4:]) & 0xffffff)
	if size < headerSize || size > 1<<20 {
		return nil, fmt.Errorf("an answer of %d bytes with a header of %d", size, headerSize)
	}
	rest := make([]byte, size)
	if _, err := io.ReadFull(c, rest); err != nil {
		return nil, err
	}
	return rest[headerSize:], nil
}

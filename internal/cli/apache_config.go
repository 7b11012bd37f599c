package cli

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
)

// readApache takes over what a file of --apache-config says, as far as flags do not say it:
// addresses, the data folder, the name servers, and every setting that there is. What has no
// meaning here is collected for one warning.
func (f *serverFlags) readApache(c *cobra.Command, file string) ([]config.Given, error) {
	text, err := readFile("--apache-config", file)
	if err != nil {
		return nil, err
	}
	a := &apacheFile{}
	a.kind, a.left = config.ReadApache(file, text)
	a.refuseOthers()
	f.takeFolder(c, a)
	f.takePorts(c, a)
	f.takeAdvertised(c, a)
	f.takeNameServers(a)
	for _, name := range []string{"aclEnable", "authenticationEnabled", "authorizationEnabled"} {
		if g, _ := a.find(name); strings.EqualFold(g.Value, "true") {
			f.unguarded = append(f.unguarded, name)
		}
	}
	known, others := config.Known(a.left)
	f.ignored = append(f.ignored, others...)
	return known, nil
}

// elsewhere are settings of brokers that keep messages, topics or offsets where this server
// does not look; it would start empty beside them.
var elsewhere = map[string]struct{ value, where string }{
	"enableDLegerCommitLog": {"true", "in the log of DLedger"},
	"storeType":             {"defaultRocksDB", "in RocksDB, the queues and the tables of topics, groups and offsets"},
	"configManagerVersion":  {"v2", "in RocksDB, the tables of topics, groups and offsets"},
}

// apacheFile is what has not been taken yet of a file of Apache RocketMQ, and what is wrong
// with what has.
type apacheFile struct {
	kind config.ApacheKind
	left []config.Given
}

func (a *apacheFile) find(name string) (config.Given, bool) {
	i := slices.IndexFunc(a.left, func(g config.Given) bool { return g.Name == name })
	if i < 0 {
		return config.Given{}, false
	}
	return a.left[i], true
}

// take takes a setting out; an empty one says nothing.
func (a *apacheFile) take(name string) (config.Given, bool) {
	g, ok := a.find(name)
	a.left = slices.DeleteFunc(slices.Clone(a.left), func(g config.Given) bool { return g.Name == name })
	return g, ok && g.Value != ""
}

// refuse puts a setting back with why it ends the start.
func (a *apacheFile) refuse(g config.Given, format string, args ...any) {
	g.Wrong = fmt.Errorf("%s=%s: %s", g.Name, g.Value, fmt.Sprintf(format, args...))
	a.left = append(a.left, g)
}

// refuseOthers refuses what would lose messages if it were ignored.
func (a *apacheFile) refuseOthers() {
	if role, ok := a.take("brokerRole"); ok && strings.EqualFold(role.Value, "SLAVE") {
		a.refuse(role, "there is no replication; this file would start a second master")
	}
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		if g, _ := a.find(name); strings.EqualFold(g.Value, elsewhere[name].value) {
			a.take(name)
			a.refuse(g, "what this broker has is %s, which is not read here", elsewhere[name].where)
		}
	}
}

// unless sets what a flag would have set, where it has not.
func unless(c *cobra.Command, flag string, target *string, value string) {
	if !c.Flags().Changed(flag) {
		*target = value
	}
}

func (f *serverFlags) takeFolder(c *cobra.Command, a *apacheFile) {
	if root, ok := a.take("storePathRootDir"); ok {
		if err := dataPath(root.Value); err != nil {
			a.refuse(root, "%s", err)
			return
		}
		unless(c, "data", &f.Data, root.Value)
	}
	if log, ok := a.take("storePathCommitLog"); ok && filepath.Clean(log.Value) != filepath.Join(f.Data, "commitlog") {
		a.refuse(log, "the log is always in commitlog/ of the data folder, %s", f.Data)
	}
}

func (f *serverFlags) takePorts(c *cobra.Command, a *apacheFile) {
	host := ""
	if ip, ok := a.take("bindAddress"); ok && ip.Value != "0.0.0.0" {
		if !config.HostPort(net.JoinHostPort(ip.Value, "1")) {
			a.refuse(ip, "that is no address or name of this machine")
		}
		host = ip.Value
	}
	port := func(name, host, flag string, target *string) {
		g, ok := a.take(name)
		if !ok {
			return
		}
		if _, err := strconv.ParseUint(g.Value, 10, 16); err != nil {
			a.refuse(g, "that is no port, 0 to 65535")
			return
		}
		unless(c, flag, target, net.JoinHostPort(host, g.Value))
	}
	if a.kind == config.ApacheNamesrv {
		port("listenPort", host, "namesrv-addr", &f.NamesrvAddr)
	} else {
		port("listenPort", host, "broker-addr", &f.BrokerAddr)
	}
	port("grpcServerPort", "", "grpc-addr", &f.GRPCAddr)
	port("remotingListenPort", "", "proxy-addr", &f.ProxyAddr)
}

func (f *serverFlags) takeAdvertised(c *cobra.Command, a *apacheFile) {
	ip, ok := a.take("brokerIP1")
	if !ok || c.Flags().Changed("advertise") {
		return
	}
	_, port, err := net.SplitHostPort(f.BrokerAddr)
	if err != nil || port == "0" {
		port = "10911"
	}
	at := net.JoinHostPort(ip.Value, port)
	if !config.HostPort(at) {
		a.refuse(ip, "that is no address or name of a machine")
		return
	}
	f.Advertise = at
}

// takeNameServers leaves name servers to the settings, but for a process that is one itself: its
// brokers are found there, and who wants them known elsewhere too says so by flag.
func (f *serverFlags) takeNameServers(a *apacheFile) {
	for _, name := range []string{"metricsExporterType", "metricsPromExporterHost", "metricsPromExporterPort"} {
		if _, ok := a.take(name); ok {
			f.ignored = append(f.ignored, name)
		}
	}
	if !f.Roles.Namesrv {
		return
	}
	g, ok := a.take("namesrvAddr")
	if _, err := config.NameServers(g.Value); err != nil {
		a.refuse(g, "%s", err)
	} else if ok {
		f.ignored = append(f.ignored, g.Name)
	}
}

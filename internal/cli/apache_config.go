package cli

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
)

// readApache takes over what the files of --apache-config say, as far as flags and --config
// do not say it: addresses, the data folder, the name servers, and every setting that there
// is. What has no meaning here is collected for one warning.
func (f *serverFlags) readApache(c *cobra.Command) error {
	for _, file := range f.apache {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("--apache-config: %w", err)
		}
		kind, all, err := config.ReadApache(filepath.Base(file), text)
		if err != nil {
			return fmt.Errorf("--apache-config: %w", err)
		}
		if err := f.takeAddresses(c, kind, all); err != nil {
			return fmt.Errorf("--apache-config %s: %w", file, err)
		}
		known, others := config.Known(all)
		for name, value := range known {
			if _, said := f.Settings[name]; !said {
				f.Settings[name] = value
			}
		}
		f.ignored = append(f.ignored, others...)
		for _, name := range []string{"aclEnable", "authenticationEnabled", "authorizationEnabled"} {
			if strings.EqualFold(all[name], "true") {
				f.unguarded = append(f.unguarded, name)
			}
		}
	}
	return nil
}

// elsewhere are settings of brokers that keep messages, topics or offsets where this server
// does not look; it would start empty beside them.
var elsewhere = map[string]struct{ value, where string }{
	"enableDLegerCommitLog": {"true", "in the log of DLedger"},
	"storeType":             {"defaultRocksDB", "in RocksDB, the queues and the tables of topics, groups and offsets"},
	"configManagerVersion":  {"v2", "in RocksDB, the tables of topics, groups and offsets"},
}

// takeAddresses takes out of all what flags say otherwise, and refuses what would lose
// messages if it were ignored.
func (f *serverFlags) takeAddresses(c *cobra.Command, kind config.ApacheKind, all map[string]string) error {
	take := func(name string) (string, bool) {
		value, ok := all[name]
		delete(all, name)
		return value, ok && value != ""
	}
	unless := func(flag string, target *string, value string) {
		if !c.Flags().Changed(flag) {
			*target = value
		}
	}
	if role, ok := take("brokerRole"); ok && strings.EqualFold(role, "SLAVE") {
		return fmt.Errorf("brokerRole %s: there is no replication; this file would start a second master", role)
	}
	for _, name := range slices.Sorted(maps.Keys(elsewhere)) {
		kept := elsewhere[name]
		if strings.EqualFold(all[name], kept.value) {
			return fmt.Errorf("%s=%s: what this broker has is %s, which is not read here", name, all[name], kept.where)
		}
	}
	root, hasRoot := take("storePathRootDir")
	if hasRoot {
		unless("data", &f.Data, root)
	}
	if log, ok := take("storePathCommitLog"); ok && filepath.Clean(log) != filepath.Join(f.Data, "commitlog") {
		return fmt.Errorf("storePathCommitLog %s: the log is always in commitlog/ of the data folder, %s", log, f.Data)
	}
	host := ""
	if ip, ok := take("bindAddress"); ok && ip != "0.0.0.0" {
		host = ip
	}
	if port, ok := take("listenPort"); ok {
		if kind == config.ApacheNamesrv {
			unless("namesrv-addr", &f.NamesrvAddr, net.JoinHostPort(host, port))
		} else {
			unless("broker-addr", &f.BrokerAddr, net.JoinHostPort(host, port))
		}
	}
	if port, ok := take("grpcServerPort"); ok {
		unless("grpc-addr", &f.GRPCAddr, net.JoinHostPort("", port))
	}
	if port, ok := take("remotingListenPort"); ok {
		unless("proxy-addr", &f.ProxyAddr, net.JoinHostPort("", port))
	}
	if ip, ok := take("brokerIP1"); ok && !c.Flags().Changed("advertise") {
		_, port, err := net.SplitHostPort(f.BrokerAddr)
		if err != nil || port == "0" {
			port = "10911"
		}
		f.Advertise = net.JoinHostPort(ip, port)
	}
	for _, name := range []string{"namesrvAddr", "metricsExporterType", "metricsPromExporterHost", "metricsPromExporterPort"} {
		value, ok := take(name)
		if ok && name != "namesrvAddr" {
			f.ignored = append(f.ignored, name)
		} else if _, said := f.Settings[name]; ok && !said && !f.Roles.Namesrv { // else it is this very process
			f.Settings[name] = value
		}
	}
	return nil
}

package node

import (
	"fmt"
	"maps"
	"strings"

	"github.com/bolidemq/bolide/internal/config"
)

// settings are the options of the parts, which may change while they run.
type settings struct {
	broker  *config.Live[config.Broker]
	store   *config.Live[config.Store]
	namesrv *config.Live[config.Namesrv]
	proxy   *config.Live[config.Proxy]
	idle    []config.Idle // given, and nothing looks at them
}

// settledElsewhere are properties of Apache's files that flags take the place of.
var settledElsewhere = map[string]string{
	"storePathRootDir":   "--data",
	"storePathCommitLog": "--data",
	"listenPort":         "--broker-addr or --namesrv-addr",
	"grpcServerPort":     "--grpc-addr",
	"remotingListenPort": "--proxy-addr",
	"brokerIP1":          "--advertise",

	"metricsExporterType":     "--metrics-addr",
	"metricsPromExporterHost": "--metrics-addr",
	"metricsPromExporterPort": "--metrics-addr",
}

// readSettings takes the properties over the defaults.
func readSettings(o Options) (settings, error) {
	broker, store := config.DefaultBroker(), config.DefaultStore()
	namesrv, proxy := config.DefaultNamesrv(), config.DefaultProxy()
	given := maps.Clone(o.Settings)
	for name, flag := range settledElsewhere {
		if _, ok := given[name]; ok {
			return settings{}, fmt.Errorf("setting %s: %s takes its place", name, flag)
		}
	}
	idle := config.WithoutEffect(given, &broker, &store, &namesrv, &proxy)
	if err := config.Apply(given, &broker, &store, &namesrv, &proxy); err != nil {
		return settings{}, err
	}
	store.StorePathRootDir = o.Data
	if len(o.Namesrvs) > 0 {
		broker.NamesrvAddr = strings.Join(o.Namesrvs, ";")
	}
	return settings{
		broker:  config.NewLive(broker),
		store:   config.NewLive(store),
		namesrv: config.NewLive(namesrv),
		proxy:   config.NewLive(proxy),
		idle:    idle,
	}, nil
}

package node

import (
	"strings"

	"github.com/bolidemq/bolide/internal/config"
)

// settings are the options of the parts, which may change while they run.
type settings struct {
	broker   *config.Live[config.Broker]
	store    *config.Live[config.Store]
	namesrv  *config.Live[config.Namesrv]
	proxy    *config.Live[config.Proxy]
	warnings []string
}

// readSettings takes the settings over the defaults.
func readSettings(o Options) (settings, error) {
	taken, findings := config.Take(o.Settings)
	if err := findings.Err(); err != nil {
		return settings{}, err
	}
	taken.Store.StorePathRootDir = o.Data
	if len(o.Namesrvs) > 0 {
		taken.Broker.NamesrvAddr = strings.Join(o.Namesrvs, ";")
	}
	return settings{
		broker:   config.NewLive(taken.Broker),
		store:    config.NewLive(taken.Store),
		namesrv:  config.NewLive(taken.Namesrv),
		proxy:    config.NewLive(taken.Proxy),
		warnings: findings.Warnings,
	}, nil
}

package cli

import (
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
)

// namesrvVariable is where Apache's servers, tools and clients find the name servers that
// nobody has told them: HOST:PORT, several with semicolons between them.
const namesrvVariable = "NAMESRV_ADDR"

// localNamesrv is where this machine's name server is, if it has one.
const localNamesrv = "127.0.0.1:9876"

// standardNamesrv is the name server of a client command that names none.
func standardNamesrv() string {
	if set := config.SplitAddresses(os.Getenv(namesrvVariable)); len(set) > 0 {
		return strings.Join(set, ";")
	}
	return localNamesrv
}

// answering is the first of several servers that takes a connection, the last where no other
// does: what one of them knows, the others know, too.
func answering(list string) string {
	all := config.SplitAddresses(list)
	if len(all) == 0 {
		return list
	}
	for _, at := range all[:len(all)-1] {
		if conn, err := net.DialTimeout("tcp", at, time.Second); err == nil {
			conn.Close()
			return at
		}
	}
	return all[len(all)-1]
}

// nameServers settles whom a broker registers with: with those that --namesrv names, else with
// those of a file or of --set, else with those of the environment, as Apache's broker does. A
// process that is a name server itself leaves the environment alone: there the variable says
// where clients find this one.
func (f *serverFlags) nameServers(c *cobra.Command) error {
	if !f.Roles.Broker {
		return nil
	}
	source, lists := "--namesrv", f.Namesrvs
	if !c.Flags().Changed("namesrv") {
		said := slices.ContainsFunc(f.Settings, func(g config.Given) bool { return g.Name == "namesrvAddr" })
		if said || f.Roles.Namesrv {
			return nil
		}
		source, lists = namesrvVariable, []string{os.Getenv(namesrvVariable)}
	}
	var all []string
	for _, list := range lists {
		for _, at := range config.SplitAddresses(list) {
			if err := hostPort(at); err != nil {
				return fmt.Errorf("%s %w, not %q", source, err, list)
			}
			all = append(all, at)
		}
	}
	f.Namesrvs = nil
	f.Settings = append(f.Settings, config.Given{Name: "namesrvAddr", Value: strings.Join(all, ";"), From: source})
	if source == namesrvVariable && len(all) > 0 {
		f.Log.Info("the environment names the name servers to register with", namesrvVariable, strings.Join(all, ";"))
	}
	return nil
}

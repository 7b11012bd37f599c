package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// A client command asks the servers that a flag names, else those of the environment, else those
// of this machine. Which of the three it was is said where it could surprise: at once, where the
// environment leads elsewhere than to this machine, and whenever a server is not found.

// addressFlags are the flags of c that say where servers are.
func addressFlags(c *cobra.Command) (all []*pflag.Flag) {
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Value.(*address); ok {
			all = append(all, f)
		}
	})
	return all
}

// fromEnvironment reports whether a flag's servers are those of the environment, and lists them.
func fromEnvironment(f *pflag.Flag) ([]string, bool) {
	if f.Name != "namesrv" || f.Changed {
		return nil, false
	}
	set := config.SplitAddresses(os.Getenv(namesrvVariable))
	return set, len(set) > 0
}

// sayWhere refuses an environment that names no servers, before anything is done with it, and
// says where it leads.
func sayWhere(c *cobra.Command, _ []string) error {
	for _, f := range addressFlags(c) {
		set, ok := fromEnvironment(f)
		if !ok {
			continue
		}
		for _, at := range set {
			if err := hostPort(at); err != nil {
				return fmt.Errorf("%s %w, not %q", namesrvVariable, err, os.Getenv(namesrvVariable))
			}
		}
		if len(set) > 1 || !slices.Contains([]string{localNamesrv, "localhost:9876", "[::1]:9876"}, set[0]) {
			fmt.Fprintf(c.ErrOrStderr(), "bolide: name server %s, from %s\n", strings.Join(set, ";"), namesrvVariable)
		}
	}
	return nil
}

// origin is who has said that a server is where it was not found; empty for other errors.
func origin(c *cobra.Command, err error) string {
	if !notFound(err) {
		return ""
	}
	text := err.Error()
	var name *net.DNSError
	all := addressFlags(c)
	for _, f := range all {
		asked := config.SplitAddresses(f.Value.String())
		if !slices.ContainsFunc(asked, func(at string) bool {
			host, _, _ := net.SplitHostPort(at)
			return strings.Contains(text, at) || errors.As(err, &name) && name.Name == host
		}) {
			continue
		}
		who := "from --" + f.Name
		if _, ok := fromEnvironment(f); ok {
			who = "from " + namesrvVariable
		} else if !f.Changed {
			who = "the default of --" + f.Name
		}
		if len(asked) > 1 {
			return fmt.Sprintf(" (the addresses are %s: %s)", who, strings.Join(asked, ";"))
		}
		return fmt.Sprintf(" (the address is %s)", who)
	}
	if dial := (*net.OpError)(nil); len(all) > 0 && errors.As(err, &dial) {
		return " (the address is what the name server says; --advertise of that broker sets another)"
	}
	return ""
}

// notFound reports whether an address does not lead to the server that was looked for.
func notFound(err error) bool {
	var dial *net.OpError
	var name *net.DNSError
	var refused *refusal
	switch {
	case errors.Is(err, context.Canceled):
		return false
	case errors.As(err, &refused):
		return refused.namesrv && refused.code == remoting.ResRequestCodeNotSupported
	case errors.As(err, &dial):
		return dial.Op == "dial"
	}
	return errors.As(err, &name) || errors.Is(err, transport.ErrTimeout) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, remoting.ErrFrame)
}

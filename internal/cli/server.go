package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bolidemq/bolide/internal/node"
)

// stopWithin is how long running requests may take to end before they are cut.
const stopWithin = 30 * time.Second

// processStart is when this process began to run Go code.
var processStart = time.Now()

// askedInVain is said of settings that ask for access control.
const askedInVain = "this version has no access control, though %s asks for it: everybody who reaches it may read and write"

// serverFlags are the flags of the commands that run a server.
type serverFlags struct {
	node.Options
	config   string
	settings []string
	apache   []string // files of Apache RocketMQ
	ignored  []string // what they say and nothing here looks at
	// unguarded are those of ignored that ask for access control.
	unguarded []string
	logLevel  string
}

func serverCommand() *cobra.Command {
	return runCommand("server", "Run name server, broker and proxy in one process", node.All)
}

func namesrvCommand() *cobra.Command {
	return runCommand("namesrv", "Run a name server alone", node.Roles{Namesrv: true})
}

func brokerCommand() *cobra.Command {
	return runCommand("broker", "Run a broker alone", node.Roles{Broker: true})
}

func proxyCommand() *cobra.Command {
	return runCommand("proxy", "Run a broker with its gRPC proxy, without a name server", node.Roles{Broker: true, Proxy: true})
}

func runCommand(name, short string, roles node.Roles) *cobra.Command {
	f := &serverFlags{}
	f.Roles = roles
	return f.command(name, short)
}

func (f *serverFlags) command(name, short string) *cobra.Command {
	roles := f.Roles
	c := &cobra.Command{
		Use:   name,
		Short: short,
		Long: short + ", until Ctrl-C or SIGTERM.\n\n" +
			"Standard output tells what listens where and ends with \"ready in N ms\"; the log goes to\n" +
			"standard error. Every port takes every protocol, in plain text and under TLS.",
		Args: none,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c)
		},
	}
	fs := c.Flags()
	fs.StringVar(&f.Data, "data", node.DefaultData, "`DIR` that holds everything; made when it is not there")
	if roles.Namesrv {
		fs.StringVar(&f.NamesrvAddr, "namesrv-addr", "", "`HOST:PORT` of the name server (default :9876; port 0: any free one)")
	}
	if !roles.Broker {
		fs.StringVar(&f.MetricsAddr, "metrics-addr", "", "`HOST:PORT` of the pages /health and /ready (default none)")
	}
	if roles.Broker {
		fs.StringVar(&f.BrokerAddr, "broker-addr", "", "`HOST:PORT` of the broker (default :10911, and the VIP channel two below it)")
		others := "`HOST:PORT,...` of other name servers to register with"
		if !roles.Namesrv {
			others = "`HOST:PORT,...` of the name servers to register with (default: namesrvAddr of a file, else NAMESRV_ADDR of the environment)"
		}
		fs.StringSliceVar(&f.Namesrvs, "namesrv", nil, others)
		fs.StringVar(&f.MetricsAddr, "metrics-addr", "", "`HOST:PORT` of the page that Prometheus reads, and of /health and /ready (default none; Apache's port is 5557)")
		fs.StringVar(&f.Advertise, "advertise", "", "`HOST:PORT` that clients are told, where they can't reach what is listened on")
	}
	if roles.Proxy {
		fs.StringVar(&f.GRPCAddr, "grpc-addr", "", "`HOST:PORT` of the gRPC proxy (default :8081)")
		fs.StringVar(&f.ProxyAddr, "proxy-addr", "", "`HOST:PORT` that takes Remoting and gRPC alike (default :8080)")
	}
	fs.StringVar(&f.TLSCert, "tls-cert", "", "PEM `FILE` with the certificate (default: one made at first start)")
	fs.StringVar(&f.TLSKey, "tls-key", "", "PEM `FILE` with the certificate's key")
	fs.StringVar(&f.ReadyFile, "ready-file", "", "`FILE` that is written when every listener serves, as JSON")
	fs.StringVar(&f.config, "config", "", "`FILE` of settings, key=value, under Apache's names; bolide config prints them all")
	fs.StringSliceVar(&f.apache, "apache-config", nil, "`FILE,...` of Apache RocketMQ as they are: broker.conf, namesrv.conf, rmq-proxy.json; may be repeated")
	fs.StringArrayVar(&f.settings, "set", nil, "one setting `KEY=VALUE`, over those of --config; may be repeated")
	fs.StringVar(&f.logLevel, "log-level", "info", "`LEVEL` of the log: debug, info, warn or error")
	return c
}

// newLog writes errors as they read. Those of the file system would else come with their stacks.
func newLog(to io.Writer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(err.Error())
		}
		return a
	}}))
}

func (f *serverFlags) run(c *cobra.Command) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return fmt.Errorf("--log-level %q is not debug, info, warn or error", f.logLevel)
	}
	if err := given(c); err != nil {
		return err
	}
	if err := f.readSettings(c); err != nil {
		return err
	}
	if err := dataPath(f.Data); err != nil {
		return fmt.Errorf("--data %w", err)
	}
	f.Log = newLog(c.ErrOrStderr(), level)
	f.Out = c.OutOrStdout()
	if err := f.nameServers(c); err != nil {
		return err
	}
	if len(f.ignored) > 0 {
		f.Log.Warn("settings of --apache-config that mean nothing here are passed over", "settings", strings.Join(f.ignored, ", "))
	}
	if len(f.unguarded) > 0 {
		f.Log.Warn(fmt.Sprintf(askedInVain, "--apache-config"), "settings", strings.Join(f.unguarded, ", "))
	}

	ctx := c.Context()
	f.Began = processStart
	n, err := node.Start(ctx, f.Options)
	if err != nil {
		return explained(err)
	}
	f.tell(supervisorReady)
	newMemory().keep(ctx, n.Failed())
	// A second Ctrl-C ends the process at once; not within the first second, since some
	// supervisors send every signal twice.
	defer time.AfterFunc(time.Second, func() { signal.Reset(os.Interrupt) }).Stop()
	fmt.Fprintln(f.Out, "stopping")
	f.tell(supervisorStopping)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	if err := n.Stop(within); err != nil {
		return err
	}
	fmt.Fprintln(f.Out, "stopped")
	return nil
}

// tell tells the supervisor, and goes on without one that can't be told.
func (f *serverFlags) tell(what string) {
	if err := tellSupervisor(what); err != nil {
		f.Log.Warn(err.Error())
	}
}

// given refuses flags that are given and say nothing: where a script's variable is not set, the default
// would take the place of what it was to name.
func given(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		kind := f.Value.Type()
		if err == nil && (kind == "string" && f.Value.String() == "" || kind == "stringSlice" && f.Value.String() == "[]") {
			name, _ := pflag.UnquoteUsage(f)
			err = fmt.Errorf("--%s is given and empty: it needs a %s, or leave it out", f.Name, name)
		}
	})
	return err
}

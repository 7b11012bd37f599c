package node

import (
	"io"
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
)

// Roles are the parts that a node runs.
type Roles struct{ Namesrv, Broker, Proxy bool }

// All are the roles of `bolide server`.
var All = Roles{Namesrv: true, Broker: true, Proxy: true}

// Options say what to run and where. The zero value of each field is its default.
type Options struct {
	Roles Roles
	Data  string // the data folder; "bolide-data"

	// Where to listen, HOST:PORT; port 0 is any free one. Empty is the standard port on
	// all addresses.
	NamesrvAddr, BrokerAddr, GRPCAddr, ProxyAddr string

	MetricsAddr string // HOST:PORT of the metrics page, /health and /ready; empty is none

	Advertise string   // HOST:PORT that clients are told, where they can't reach what we listen on
	Namesrvs  []string // name servers to register with, besides the own one

	TLSCert, TLSKey string // PEM files; empty is a certificate made at first start

	ReadyFile string // written when every listener serves

	// Settings are properties under Apache RocketMQ's names, each over those before it. One
	// that is not sound ends the start.
	Settings []config.Given

	Began time.Time // when this start began, for the line that says how long it took

	FS    vfs.FS       // of the store; nil: the system's
	Clock *clock.Clock // what the protocol sees; a test may move it
	Log   *slog.Logger
	Out   io.Writer // start-up lines; nil is nowhere
}

// DefaultData is the data folder of a server that was told nothing.
const DefaultData = "bolide-data"

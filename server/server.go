// Package server runs a whole Bolide server, name server, broker and proxy, inside another
// program.
//
// Invariants: Start returns when every listener serves, or an error and nothing left
// behind; after Stop nothing that was acknowledged is lost and no goroutine remains.
//
// Neighbours: programs that embed a server; tests take package bolidetest.
package server

import (
	"context"
	"log/slog"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/node"
)

// Options say where a server keeps its data and where it listens. Zero values are what
// `bolide server` does without flags.
type Options struct {
	Data string // the data folder; "bolide-data"

	// Where to listen, HOST:PORT; port 0 is any free one. Empty is the standard port
	// (9876, 10911, 8081, 8080) on all addresses.
	NamesrvAddr, BrokerAddr, GRPCAddr, ProxyAddr string

	MetricsAddr string // HOST:PORT of the page that Prometheus reads, /health and /ready; empty is none

	Advertise string // HOST:PORT that clients are told, where they can't reach what is listened on

	TLSCert, TLSKey string // PEM files; empty is a certificate made at first start

	Settings map[string]string // under the names of Apache RocketMQ's broker.conf

	Log *slog.Logger // nil logs nothing
}

// Server is a running server.
type Server struct{ node *node.Node }

// Start starts a server. ctx bounds the start only.
func Start(ctx context.Context, o Options) (*Server, error) {
	n, err := node.Start(ctx, node.Options{
		Roles: node.All, Data: o.Data,
		NamesrvAddr: o.NamesrvAddr, BrokerAddr: o.BrokerAddr, GRPCAddr: o.GRPCAddr, ProxyAddr: o.ProxyAddr,
		MetricsAddr: o.MetricsAddr, Advertise: o.Advertise, TLSCert: o.TLSCert, TLSKey: o.TLSKey,
		Settings: config.FromMap(o.Settings), Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Server{node: n}, nil
}

// Namesrv is the name server's address, HOST:PORT.
func (s *Server) Namesrv() string { return s.node.Ready().Namesrv }

// Broker is the broker's address for Remoting clients.
func (s *Server) Broker() string { return s.node.Ready().Broker }

// GRPC is the endpoint of gRPC clients.
func (s *Server) GRPC() string { return s.node.Ready().GRPC }

// Proxy is the address that takes Remoting and gRPC alike; "" when its standard port was
// taken by another program.
func (s *Server) Proxy() string { return s.node.Ready().Proxy }

// Metrics is the address of the metrics page; "" when there is none.
func (s *Server) Metrics() string { return s.node.Ready().Metrics }

// Failed is closed when the server can't go on; what remains is to call Stop, which tells
// why.
func (s *Server) Failed() <-chan struct{} { return s.node.Failed() }

// Stop ends the server in order; requests that have not ended with ctx are cut.
func (s *Server) Stop(ctx context.Context) error { return s.node.Stop(ctx) }

package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/bolidemq/bolide/test/load"
	"github.com/bolidemq/bolide/test/servers"
)

// target is a server that can die and come back on its data.
type target interface {
	place() load.Place
	// again kills or stops the server, calls gone, and starts it anew.
	again(ctx context.Context, kill bool, gone func()) error
	ended() <-chan struct{}
	kill()
}

func open(ctx context.Context, o options) (target, error) {
	switch o.server {
	case "bolide":
		return openBolide(ctx, o)
	case "apache":
		return openApache(ctx, o)
	}
	return nil, fmt.Errorf("--server %q: bolide or apache", o.server)
}

func placeOf(r servers.Ready) load.Place {
	return load.Place{Broker: r.Broker, GRPC: r.GRPC, Topic: "exact", Group: "exact-group", Queues: 4}
}

type bolide struct {
	o      options
	server *servers.Server
	at     *servers.Ready
}

func openBolide(ctx context.Context, o options) (_ *bolide, err error) {
	b := &bolide{o: o}
	if o.binary == "" {
		if b.o.binary, err = servers.BuildBolide(ctx, o.dir); err != nil {
			return nil, err
		}
	} else if b.o.binary, err = filepath.Abs(o.binary); err != nil {
		return nil, err
	}
	if b.at, err = servers.FreePlace(); err != nil {
		return nil, err
	}
	return b, b.start(ctx)
}

func (b *bolide) start(ctx context.Context) (err error) {
	b.server, err = servers.StartBolide(ctx, servers.BolideOptions{
		Binary: b.o.binary, Dir: b.o.dir, Again: b.at, Args: []string{"--set", "flushDiskType=" + b.o.flush},
	})
	return err
}

func (b *bolide) place() load.Place      { return placeOf(b.server.Ready) }
func (b *bolide) ended() <-chan struct{} { return b.server.Ended() }
func (b *bolide) kill()                  { b.server.Kill() }

func (b *bolide) again(ctx context.Context, kill bool, gone func()) error {
	if kill {
		b.server.Kill()
	} else if err := b.server.Stop(); err != nil {
		return err
	}
	gone()
	return b.start(ctx)
}

// apache is a cluster of three processes, of which the broker dies.
type apache struct{ server *servers.Server }

func openApache(ctx context.Context, o options) (*apache, error) {
	s, err := servers.StartApache(ctx, servers.ApacheOptions{Dir: o.dir, BrokerHeap: "512m", ProxyHeap: "384m", Broker: []string{"flushDiskType=" + o.flush}})
	if err != nil {
		return nil, err
	}
	return &apache{s}, nil
}

func (a *apache) place() load.Place      { return placeOf(a.server.Ready) }
func (a *apache) ended() <-chan struct{} { return a.server.Ended() }
func (a *apache) kill()                  { a.server.Kill() }

func (a *apache) again(ctx context.Context, kill bool, gone func()) error {
	return a.server.Renew(ctx, 1, kill, gone)
}

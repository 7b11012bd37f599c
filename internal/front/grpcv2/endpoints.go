package grpcv2

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

// endpoints is what routes name: the advertised address if there is one, else the
// endpoints that the client came by, else the address that its connection ended at.
func (s *Service) endpoints(ctx context.Context, asked *v2.Endpoints) *v2.Endpoints {
	switch {
	case s.advertised != nil:
		return s.advertised
	case len(asked.GetAddresses()) > 0:
		return withScheme(asked)
	}
	local := callerOf(ctx).LocalAddr()
	return endpointsOf(local.Addr().String(), int32(local.Port()))
}

// withScheme fills in the scheme, which some clients leave out and others need.
func withScheme(e *v2.Endpoints) *v2.Endpoints {
	if e == nil || e.GetScheme() != v2.AddressScheme_ADDRESS_SCHEME_UNSPECIFIED || len(e.GetAddresses()) == 0 {
		return e
	}
	return &v2.Endpoints{Scheme: schemeOf(e.Addresses[0].GetHost()), Addresses: e.Addresses}
}

func endpointsOf(host string, port int32) *v2.Endpoints {
	return &v2.Endpoints{Scheme: schemeOf(host), Addresses: []*v2.Address{{Host: host, Port: port}}}
}

func schemeOf(host string) v2.AddressScheme {
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return v2.AddressScheme_DOMAIN_NAME
	case a.Unmap().Is4():
		return v2.AddressScheme_IPv4
	default:
		return v2.AddressScheme_IPv6
	}
}

func splitHostPort(hostPort string) (string, int32, error) {
	host, text, err := net.SplitHostPort(hostPort)
	if err != nil {
		return "", 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || host == "" {
		return "", 0, errors.Join(err, errors.New("want HOST:PORT"))
	}
	return host, int32(port), nil
}

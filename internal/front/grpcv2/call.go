package grpcv2

import (
	"context"
	"net"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
)

// Header names that clients send.
const (
	headerClientID = "x-mq-client-id"
	headerLanguage = "x-mq-language"
	headerVersion  = "x-mq-client-version"
)

func header(ctx context.Context, name string) string {
	if v := metadata.ValueFromIncomingContext(ctx, name); len(v) > 0 {
		return v[0]
	}
	return ""
}

// clientID is the caller's id, or the refusal of a call without one.
func clientID(ctx context.Context) (string, error) {
	id := header(ctx, headerClientID)
	if isBlank(id) {
		return "", refuse(v2.Code_CLIENT_ID_REQUIRED, "client id cannot be empty")
	}
	return id, nil
}

// peerAddrs are the two ends of the caller's connection; the remote one comes from the
// PROXY header where there was one.
func peerAddrs(ctx context.Context) (remote, local netip.AddrPort) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return
	}
	return addrPort(p.Addr), addrPort(p.LocalAddr)
}

func addrPort(a net.Addr) netip.AddrPort {
	switch a := a.(type) {
	case nil:
		return netip.AddrPort{}
	case *net.TCPAddr:
		ap := a.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	default:
		ap, _ := netip.ParseAddrPort(a.String())
		return ap
	}
}

// isBlank reports whether s has nothing but white space.
func isBlank(s string) bool {
	if len(s) > 0 && s[0] > ' ' && s[0] < 0x80 {
		return false
	}
	return strings.TrimSpace(s) == ""
}

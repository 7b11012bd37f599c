package grpcv2

import (
	"context"
	"net/netip"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"

	"github.com/bolidemq/bolide/internal/wire/sock"
)

// Header names that clients send.
const (
	headerClientID = "x-mq-client-id"
	headerLanguage = "x-mq-language"
	headerVersion  = "x-mq-client-version"
)

// caller is who makes a call, as its headers and its connection tell: an *h2.Call, or what
// the context of a generated handler carries.
type caller interface {
	Header(name string) string
	// RemoteAddr comes from the PROXY header where there was one.
	RemoteAddr() netip.AddrPort
	LocalAddr() netip.AddrPort
}

// callerOf is the caller of a generated handler.
func callerOf(ctx context.Context) caller { return contextCaller{ctx} }

type contextCaller struct{ ctx context.Context }

func (c contextCaller) Header(name string) string {
	if v := metadata.ValueFromIncomingContext(c.ctx, name); len(v) > 0 {
		return v[0]
	}
	return ""
}

func (c contextCaller) RemoteAddr() netip.AddrPort {
	if p, ok := peer.FromContext(c.ctx); ok {
		return sock.AddrPort(p.Addr)
	}
	return netip.AddrPort{}
}

func (c contextCaller) LocalAddr() netip.AddrPort {
	if p, ok := peer.FromContext(c.ctx); ok {
		return sock.AddrPort(p.LocalAddr)
	}
	return netip.AddrPort{}
}

// clientID is the caller's id, or the refusal of a call without one.
func clientID(by caller) (string, error) {
	id := by.Header(headerClientID)
	if isBlank(id) {
		return "", refuse(v2.Code_CLIENT_ID_REQUIRED, "client id cannot be empty")
	}
	return id, nil
}

// isBlank reports whether s has nothing but white space.
func isBlank(s string) bool {
	if len(s) > 0 && s[0] > ' ' && s[0] < 0x80 {
		return false
	}
	return strings.TrimSpace(s) == ""
}

package sock

import (
	"net"
	"net/netip"
)

// AddrPort is a network address as a value, IPv4 where it is that; zero for nil and for
// what has no such form.
func AddrPort(a net.Addr) netip.AddrPort {
	var p netip.AddrPort
	switch a := a.(type) {
	case nil:
	case *net.TCPAddr:
		p = a.AddrPort()
	default:
		p, _ = netip.ParseAddrPort(a.String())
	}
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
}

// TCP is the socket below a connection that does not change what is written, nil when
// there is none: under TLS, or in memory.
func TCP(c net.Conn) *net.TCPConn {
	switch c := c.(type) {
	case *net.TCPConn:
		return c
	case interface{ TCP() *net.TCPConn }: // a wrapper that only looks at what is read
		return c.TCP()
	}
	return nil
}

// Vectored is how to write several buffers, which it uses up, to a connection at once; nil
// where there is none.
func Vectored(c net.Conn) func(net.Buffers) error {
	if v, ok := c.(interface{ WriteBuffers(net.Buffers) error }); ok {
		return v.WriteBuffers
	}
	if tcp := TCP(c); tcp != nil {
		return func(b net.Buffers) error {
			_, err := b.WriteTo(tcp)
			return err
		}
	}
	return nil
}

// Cut closes a connection at once. The farewell of TLS, which Close says, would wait for a
// peer that does not read.
func Cut(c net.Conn) {
	if below, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = below.NetConn()
	}
	c.Close()
}

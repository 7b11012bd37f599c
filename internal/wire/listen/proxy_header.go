package listen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

func errProxy(what string) error { return fmt.Errorf("PROXY header %s", what) }

// readProxy takes a PROXY header of either version off the connection's front.
func (c *Conn) readProxy() error {
	read := c.readProxy1
	if c.head[0] == proxy2[0] {
		read = c.readProxy2
	}
	from, to, err := read()
	if err != nil || !from.IsValid() {
		return err
	}
	peer, _ := netip.ParseAddrPort(c.Conn.RemoteAddr().String())
	if from.Addr().Unmap().IsLoopback() && !peer.Addr().Unmap().IsLoopback() {
		// Some things are allowed from this machine only.
		return errProxy("claims to come from this machine")
	}
	c.remote, c.local = net.TCPAddrFromAddrPort(from), net.TCPAddrFromAddrPort(to)
	return nil
}

// maxProxy1 is the longest header of version 1, its line end included.
const maxProxy1 = 107

// readProxy1 reads "PROXY TCP4 source destination port port"; UNKNOWN gives no address.
func (c *Conn) readProxy1() (from, to netip.AddrPort, err error) {
	for !bytes.Contains(c.head, []byte("\r\n")) {
		if len(c.head) >= maxProxy1 {
			return from, to, errProxy("has no end")
		}
		if err := c.more(); err != nil {
			return from, to, err
		}
	}
	n := bytes.Index(c.head, []byte("\r\n"))
	line := string(c.take(n + 2)[:n])
	f := strings.Split(line, " ")
	if len(f) >= 2 && f[1] == "UNKNOWN" {
		return from, to, nil
	}
	if n+2 > maxProxy1 || len(f) != 6 || (f[1] != "TCP4" && f[1] != "TCP6") {
		return from, to, errProxy(fmt.Sprintf("%.120q is none", line))
	}
	if from, err = netip.ParseAddrPort(net.JoinHostPort(f[2], f[4])); err == nil {
		to, err = netip.ParseAddrPort(net.JoinHostPort(f[3], f[5]))
	}
	if err != nil {
		return netip.AddrPort{}, netip.AddrPort{}, errProxy(fmt.Sprintf("%.120q has no addresses", line))
	}
	return from, to, nil
}

// readProxy2 reads the binary form; a proxy's own checks (LOCAL) and families other than
// TCP over IP give no address. What follows the addresses is passed over.
func (c *Conn) readProxy2() (from, to netip.AddrPort, err error) {
	const fixed = len(proxy2) + 4
	for len(c.head) < fixed {
		if err := c.more(); err != nil {
			return from, to, err
		}
	}
	command, family := c.head[12], c.head[13]
	size := fixed + int(binary.BigEndian.Uint16(c.head[14:]))
	if command>>4 != 2 || size > maxHead {
		return from, to, errProxy(fmt.Sprintf("of version %d and %d bytes is not understood", command>>4, size))
	}
	for len(c.head) < size {
		if err := c.more(); err != nil {
			return from, to, err
		}
	}
	b := c.take(size)[fixed:]
	if command&0xF == 0 {
		return from, to, nil
	}
	ip := 0
	switch family >> 4 {
	case 1:
		ip = 4
	case 2:
		ip = 16
	default:
		return from, to, nil
	}
	if len(b) < 2*ip+4 {
		return from, to, errProxy("ends within its addresses")
	}
	at := func(i, port int) netip.AddrPort {
		a, _ := netip.AddrFromSlice(b[i : i+ip])
		return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(b[port:]))
	}
	return at(0, 2*ip), at(ip, 2*ip+2), nil
}

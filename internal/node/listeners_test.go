package node

import (
	"net"
	"net/netip"
	"strings"
	"testing"
)

func TestPorts(t *testing.T) {
	names := func(o Options) string {
		var all []string
		for _, p := range o.ports() {
			n := p.name + "=" + p.addr
			if p.optional {
				n += "?"
			}
			all = append(all, n)
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Roles: All}, "namesrv=:9876 broker=:10911 grpc=:8081 proxy=:8080? broker-vip=:10909?"},
		{Options{Roles: All, BrokerAddr: "127.0.0.1:0", ProxyAddr: ":8080"}, "namesrv=:9876 broker=127.0.0.1:0 grpc=:8081 proxy=:8080"},
		{Options{Roles: All, BrokerAddr: "127.0.0.1:10911"}, "namesrv=:9876 broker=127.0.0.1:10911 grpc=:8081 proxy=:8080? broker-vip=127.0.0.1:10909?"},
		{Options{Roles: All, BrokerAddr: "[::1]:20911"}, "namesrv=:9876 broker=[::1]:20911 grpc=:8081 proxy=:8080? broker-vip=[::1]:20909?"},
		{Options{Roles: All, BrokerAddr: ":10911", GRPCAddr: ":10909"}, "namesrv=:9876 broker=:10911 grpc=:10909 proxy=:8080?"},
		{Options{Roles: All, BrokerAddr: ":9876"}, "namesrv=:9876 broker=:9876 grpc=:8081 proxy=:8080?"},
		{Options{Roles: Roles{Broker: true}, BrokerAddr: ":2"}, "broker=:2"},
		{Options{Roles: Roles{Namesrv: true}}, "namesrv=:9876"},
		{Options{Roles: Roles{Broker: true}}, "broker=:10911 broker-vip=:10909?"},
	} {
		if got := names(c.o); got != c.want {
			t.Errorf("%+v: %s", c.o, got)
		}
	}
}

func TestTakenPorts(t *testing.T) {
	other, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	taken := other.Addr().String()
	var warned []string
	warn := func(s string) { warned = append(warned, s) }

	_, err = listenAll(t.Context(), []port{{name: "broker", flag: "--broker-addr", addr: taken}}, warn)
	if err == nil || !strings.Contains(err.Error(), "broker can't listen on "+taken) || !strings.Contains(err.Error(), "--broker-addr") {
		t.Errorf("%v", err)
	}
	all, err := listenAll(t.Context(), []port{{name: "proxy", addr: taken, optional: true}, {name: "grpc", addr: "127.0.0.1:0"}}, warn)
	if err != nil || len(all) != 1 || len(warned) != 1 {
		t.Errorf("%v, %d listeners, warned %q", err, len(all), warned)
	}
	closeAll(all)
	// Of a network that is for documents alone.
	if _, err = listenAll(t.Context(), []port{{name: "grpc", flag: "--grpc-addr", addr: "192.0.2.1:8081"}}, warn); err == nil || !strings.HasSuffix(err.Error(), "no address of this machine is that; --grpc-addr :8081 takes all of them") {
		t.Errorf("%v", err)
	}
	if _, err = listenAll(t.Context(), []port{{name: "grpc", flag: "--grpc-addr", addr: "8081"}}, warn); err == nil || !strings.Contains(err.Error(), "HOST:PORT") {
		t.Errorf("%v", err)
	}
}

func TestOneAddressForAll(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	o := Options{Roles: All, NamesrvAddr: addr, BrokerAddr: addr, GRPCAddr: addr, ProxyAddr: addr}
	all, err := listenAll(t.Context(), o.ports(), func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(all)
	if r := readyOf(all); len(all) != 1 || r.Namesrv != addr || r.Broker != addr || r.GRPC != addr || r.Proxy != addr {
		t.Errorf("%d listeners, %+v", len(all), r)
	}
}

func TestAnnounce(t *testing.T) {
	machine := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("169.254.1.1"), netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8::9")}
	any4, any6 := netip.MustParseAddrPort("0.0.0.0:10911"), netip.MustParseAddrPort("[::]:10911")
	for _, c := range []struct {
		advertise string
		listening netip.AddrPort
		machine   []netip.Addr
		want, why string
	}{
		{"", any4, machine, "192.0.2.9:10911", "first address"},
		{"", any6, machine, "192.0.2.9:10911", "first address"},
		{"", any6, machine[3:], "[2001:db8::9]:10911", "first address"},
		{"", any6, machine[:2], "127.0.0.1:10911", "no other"},
		{"", netip.MustParseAddrPort("127.0.0.1:4711"), machine, "127.0.0.1:4711", "listens on"},
		{"mq.example.com:30911", any4, machine, "mq.example.com:30911", "--advertise"},
	} {
		a, err := announce(c.advertise, c.listening, c.machine)
		if err != nil || a.String() != c.want || !strings.Contains(a.why, c.why) {
			t.Errorf("%q, %v: %s (%s), %v", c.advertise, c.listening, a, a.why, err)
		}
	}
	for _, bad := range []string{"host", ":10911", "host:0", "host:70000", "host:x", "0.0.0.0:10911", "[::]:10911", "a b:10911", "http://host:10911"} {
		if _, err := announce(bad, any4, machine); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

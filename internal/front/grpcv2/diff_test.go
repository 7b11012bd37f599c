package grpcv2

import (
	"testing"
	"testing/synctest"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/keepalive"
)

// TestDiffIdleConnectionsStay: Apache closes a connection that was not used for 120 s.
func TestDiffIdleConnectionsStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		if _, err := h.client.QueryRoute(h.as("c"), &v2.QueryRouteRequest{Topic: resource("nowhere")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Minute) // simulated; a client of grpc-go hangs up itself after 30
		synctest.Wait()
		if s := h.conn.GetState(); s != connectivity.Ready {
			t.Errorf("the connection is %v", s)
		}
	})
}

// R048: a client may ping each 10 s, the least that grpc-go does, whether it calls or not, and
// is not sent away for it.
func TestPingsOfIdleConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t)
		conn := h.dial(grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}))
		defer conn.Close()
		ask := func() {
			if _, err := v2.NewMessagingServiceClient(conn).QueryRoute(h.as("c"), &v2.QueryRouteRequest{Topic: resource("nowhere")}); err != nil {
				t.Fatal(err)
			}
		}
		ask()
		changed := make(chan bool, 1)
		go func() { changed <- conn.WaitForStateChange(t.Context(), connectivity.Ready) }()
		time.Sleep(20 * time.Minute)
		synctest.Wait()
		select {
		case <-changed:
			t.Errorf("the connection is %v", conn.GetState())
		default:
		}
		ask()
	})
}

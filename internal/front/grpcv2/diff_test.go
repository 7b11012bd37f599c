package grpcv2

import (
	"testing"
	"testing/synctest"
	"time"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc/connectivity"
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

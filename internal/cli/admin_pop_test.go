package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func TestAdminPop(t *testing.T) {
	f := startFake(t)
	now := time.Date(2026, 1, 2, 14, 5, 30, 0, time.Local).UnixMilli()
	f.popState = remoting.PopState{Now: now, Queues: []remoting.PopQueue{{
		Topic: "orders", QueueID: 1, Ready: 4, InFlight: 6, Aside: 3, Lowest: 10, End: 25, Oldest: now - 20_000, Throttled: true,
		Held: []remoting.PopHeld{
			{Offsets: []int64{10, 11, 12, 14}, PopTime: now - 20_000, Due: now + 40_000, Invisible: 60_000, Holder: "client@host", Renewed: true},
			{Offsets: []int64{15}, PopTime: now - 5_000, Due: now - 1_000, Invisible: 4_000, MessageGroup: "user-7", Attempts: 2, Claimed: true},
		},
		Blocked: []remoting.PopBlocked{{MessageGroup: "user-7", Offset: 15, Due: now - 1_000, Waiting: 3}},
	}}}
	out, errs, code := run(t, "", "admin", "pop", "warehouse", "-n", f.addr)
	want := `orders, queue 1 on b: 4 ready, 6 in flight, 3 set aside; done below 10 of 25
  gets nothing more: popInflightMessageThreshold messages are in flight
  offset 10-12, 14: held by client@host since 14:05:10 (20s ago), until 14:06:10 (40s left); renewed while its holder is there
  offset 15: held by an unknown client since 14:05:25 (5s ago), due since 14:05:29; message group user-7, lapsed, its redelivery is being written, 2 deliveries before
  and 1 more, popped later; --limit lists them
  3 messages of message group user-7 behind offset 15, held by an unknown client due since 14:05:29
`
	if code != 0 || out != want {
		t.Errorf("%d %q\n%s\nwant\n%s", code, errs, out, want)
	}

	out, errs, code = run(t, "", "admin", "pop", "warehouse", "--topic", "orders", "--queue", "1", "--release", "12", "-n", f.addr)
	if code != 0 || len(f.changed) != 1 || !strings.Contains(out, "released orders, queue 1, offset 12 on b; client@host") {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	h := f.changed[0]
	if h.Offset != 12 || h.QueueID != 1 || h.InvisibleTime != 0 || !h.Suspend || h.ConsumerGroup != "warehouse" || !strings.HasPrefix(h.ExtraInfo, "12 ") {
		t.Errorf("%+v", h)
	}
	for _, args := range [][]string{{"--release", "12"}, {"--topic", "orders", "--queue", "1", "--release", "13"}} {
		if _, errs, code := run(t, "", append([]string{"admin", "pop", "warehouse", "-n", f.addr}, args...)...); code != 1 || errs == "" {
			t.Errorf("%v: %d %q", args, code, errs)
		}
	}
}

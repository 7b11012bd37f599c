package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func TestAdminTxn(t *testing.T) {
	f := startFake(t)
	now := time.Date(2026, 1, 2, 14, 5, 30, 0, time.Local).UnixMilli()
	f.transactions = remoting.TransactionList{Now: now, Total: 3, Transactions: []remoting.OpenTransaction{
		{TranStateTableOffset: 7, CommitLogOffset: 4610, Topic: "orders", Group: "shop", MsgID: "0A", Size: 300, StoreTime: now - 65_000, Due: now + 1000, Checks: 2},
		{TranStateTableOffset: 9, CommitLogOffset: 9000, Topic: "bills", Group: "bills", MsgID: "0B", Size: 310, StoreTime: now - 5_000, Due: now},
	}}
	out, errs, code := run(t, "", "admin", "txn", "list", "-n", f.addr)
	want := `3 undecided on b
TRANSACTION  TOPIC   GROUP  MESSAGE  BYTES  SINCE                AGE   CHECKS  NEXT CHECK
t1.7.3k2.b   orders  shop   0A       300    2026-01-02 14:04:25  1m5s  2       in 1s
t1.9.6y0.b   bills   bills  0B       310    2026-01-02 14:05:25  5s    0       due
and 1 more; --limit lists them
`
	if code != 0 || out != want {
		t.Errorf("%d %q\n%s\nwant\n%s", code, errs, out, want)
	}
	out, errs, code = run(t, "", "admin", "txn", "commit", "t1.7.3k2.b", "-n", f.addr)
	if code != 0 || out != "t1.7.3k2.b: committed\n" || len(f.ended) != 1 {
		t.Fatalf("%d %q %q", code, out, errs)
	}
	if h := f.ended[0]; h.TranStateTableOffset != 7 || h.CommitLogOffset != 4610 || h.ProducerGroup != "shop" || h.CommitOrRollback != 8 {
		t.Errorf("%+v", h)
	}
	if out, errs, code = run(t, "", "admin", "txn", "rollback", "t1.9.6y0.b", "-n", f.addr); code != 0 || f.ended[1].CommitOrRollback != 12 {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if _, errs, code := run(t, "", "admin", "txn", "rollback", "-n", f.addr); code != 1 || !strings.Contains(errs, "needs a transaction id") {
		t.Errorf("%d %q", code, errs)
	}
	for id, why := range map[string]string{"t1.7.3k3.b": "decided already", "t1.7.3k2.c": "no broker c", "nonsense": "bolide: illegal transaction id \"nonsense\": it does not begin with"} {
		if _, errs, code := run(t, "", "admin", "txn", "commit", id, "-n", f.addr); code != 1 || !strings.Contains(errs, why) {
			t.Errorf("%s: %d %q", id, code, errs)
		}
	}
}

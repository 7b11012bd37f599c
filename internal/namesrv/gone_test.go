package namesrv

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestGone: a broker without a living address is remembered, with how it went, until it comes
// again or a day has passed; one that has another address is not gone.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := newTable(Options{})
		is := func(want string) {
			t.Helper()
			got := ""
			for _, g := range table.Gone() {
				got += fmt.Sprintf("%s/%s %s %s %v;", g.Cluster, g.Name, g.Address, time.Since(g.Since), g.Stopped)
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		register := func(g Registration) {
			t.Helper()
			if _, err := table.Register(g); err != nil {
				t.Fatal(err)
			}
		}
		register(reg("a", 0, "h:1", 1, "t", "u"))
		register(reg("b", 0, "h:2", 1, "t", "u"))
		register(reg("b", 1, "h:3", 1, "t", "u"))
		register(reg("d", 0, "h:4", 1, "t", "u"))
		is("")
		table.Unregister("c", "h:1")
		table.CloseConn(Address("h:2"))
		is("c/a h:1 0s true;")
		time.Sleep(time.Minute)
		table.CloseConn(Address("h:3"))
		is("c/a h:1 1m0s true;c/b h:3 0s false;")
		time.Sleep(119 * time.Second)
		table.expire(time.Now().Add(time.Minute))
		is("c/a h:1 2m59s true;c/b h:3 1m59s false;c/d h:4 -1m0s false;")
		register(reg("b", 0, "h:9", 1, "t", "u"))
		is("c/a h:1 2m59s true;c/d h:4 -1m0s false;")
		time.Sleep(24*time.Hour - time.Minute)
		is("c/d h:4 23h58m0s false;")
		table.Unregister("c", "h:9")
		for i := range 2 * mostGone {
			register(reg(fmt.Sprint("x", i), 0, "x:1", 1, "t", "u"))
			table.Unregister("c", "x:1")
			time.Sleep(time.Millisecond)
		}
		if all := table.Gone(); len(all) != mostGone || all[0].Name != fmt.Sprint("x", mostGone) {
			t.Errorf("%d are remembered, %v first", len(all), all[0])
		}
	})
}

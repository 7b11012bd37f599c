package broker

import (
	"fmt"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
)

func TestRetentionFollowsTheSettings(t *testing.T) {
	sc := config.DefaultStore()
	for _, c := range []struct{ set, value, want string }{
		{"", "", "72h0m0s [4] 75 false"},
		{"fileReservedTime", "5", "5h0m0s [4] 75 false"},
		{"deleteWhen", "02;14", "72h0m0s [2 14] 75 false"},
		{"diskMaxUsedSpaceRatio", "60", "72h0m0s [4] 60 false"},
		{"cleanFileForciblyEnable", "false", "72h0m0s [4] 75 true"},
		{"deleteWhen", "noon", `illegal value of deleteWhen: "noon" is not an hour of the day, 00 to 23`},
	} {
		sc := sc
		if c.set != "" {
			if err := config.Set(&sc, c.set, c.value); err != nil {
				if err.Error() != c.want {
					t.Errorf("%s=%s: %v", c.set, c.value, err)
				}
				continue
			}
		}
		r := retention(storage.Retention{}, &sc)
		if got := fmt.Sprintf("%v %v %d %v", r.MaxAge, r.DeleteWhen, r.CleanPercent, r.RefuseWhenFull); got != c.want {
			t.Errorf("%s=%s: %s", c.set, c.value, got)
		}
	}
	tuned := storage.Retention{MaxAge: time.Minute, CleanPercent: 1, DeleteWhen: []int{}}
	if r := retention(tuned, &sc); r.MaxAge != time.Minute || r.CleanPercent != 1 || len(r.DeleteWhen) != 0 {
		t.Errorf("%+v", r)
	}
}

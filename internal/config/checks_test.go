package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestHours(t *testing.T) {
	for text, want := range map[string]string{"04": "[4]", "04;16": "[4 16]", " 4 ; 23;": "[4 23]", "24": "", "": "", "four": "", "-1": "", "+1": "", "04;;16": ""} {
		got, err := Hours(text)
		if want == "" && err == nil || want != "" && (err != nil || fmt.Sprint(got) != want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestDelays(t *testing.T) {
	for text, want := range map[string]string{
		"1s 5m  2h 1d": "[1s 5m0s 2h0m0s 24h0m0s]", "0s": "[0s]", "3650d": "[87600h0m0s]",
		"": "no level", "1s 5": `"5" is not a number`, "1s,5s": `"1s,5s" is not`, "-1s": `"-1s" is not`, "1ms": `"1ms" is not`,
		"3651d": "over the limit of 3650 days", "99999999999d": "is not a number", strings.Repeat("1s ", 65): "65 levels, the limit is 64",
	} {
		got, err := Delays(text)
		if said := fmt.Sprint(got); err != nil && !strings.Contains(err.Error(), want) || err == nil && said != want {
			t.Errorf("%.20q: %v, %v", text, got, err)
		}
	}
	if l, _ := Delays(DefaultStore().MessageDelayLevel); len(l) != 18 || l[17] != 2*time.Hour {
		t.Errorf("%v", l)
	}
}

func TestNameServers(t *testing.T) {
	got, err := NameServers(" a:1;b:2 ;\thttp://c:3,a:1;;[::1]:9876\n")
	if err != nil || !slices.Equal(got, []string{"a:1", "b:2", "c:3", "[::1]:9876"}) {
		t.Fatal(got, err)
	}
	if got, err := NameServers(" ;\n"); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
	for _, bad := range []string{"a", "a:", ":1", "a:0", "a:65536", "a:+1", "a:b", "a:1:2", "::1:9876", "a/b:1", `"a:1"`, "a:1;b"} {
		if _, err := NameServers(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// What has been written with a unit of its own is told as a number of what the setting counts.
func TestInUnit(t *testing.T) {
	for _, c := range []struct {
		text, unit string
		want       int64 // -1: can't be told
	}{
		{"4MB", "bytes", 4 << 20}, {"1 GiB", "bytes", 1 << 30}, {"64k", "bytes", 64 << 10}, {"1.5K", "bytes", 1536}, {"1_048_576", "bytes", 1 << 20},
		{"30s", "ms", 30_000}, {"2min", "ms", 120_000}, {"1000 ms", "ms", 1000}, {"3d", "s", 259_200}, {"48h", "hours", 48}, {"3 days", "hours", 72},
		{"75%", "percent of the disk", 75}, {"1.0", "queues", 1},
		{"30m", "hours", -1}, {"1.5", "queues", -1}, {"4MB", "queues", -1}, {"", "ms", -1}, {"ten", "ms", -1}, {"1e400", "ms", -1}, {"9e99", "bytes", -1},
	} {
		if got, ok := inUnit(c.text, c.unit); ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%q in %s: %d, %v", c.text, c.unit, got, ok)
		}
	}
}

// No time that can be set is more than a time.Duration holds: the oldest log files would go at
// once where the age at which they do is below zero.
func TestTimesAreTimes(t *testing.T) {
	each := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "hours": time.Hour}
	for _, s := range settings() {
		unit, ok := each[s.Tag.Get("unit")]
		if _, high := limits(s.StructField); ok && high > int64(200*365*24*time.Hour/unit) {
			t.Errorf("%s may be %d %s", s.name, high, s.Tag.Get("unit"))
		}
	}
}

// Every check refuses something and says why in words that follow the setting's name.
func TestEveryCheckIsOne(t *testing.T) {
	for _, s := range settings() {
		if name := s.Tag.Get("check"); name != "" && checks[name].rule == nil {
			t.Errorf("%s: there is no check %q", s.name, name)
		}
	}
	for name, c := range checks {
		if err := c.rule("§ :"); err == nil || errors.Is(err, ErrValue) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package metrics

import "testing"

func TestText(t *testing.T) {
	p := &page{common: labels{"cluster", "c"}}
	p.single("plain", gauge, "Help.", -1)
	p.family("several", counter, "More.")
	p.sample("several", 1<<62, "name", "a\\b\"c\nd")
	want := "# HELP plain Help.\n# TYPE plain gauge\nplain{cluster=\"c\"} -1\n" +
		"# HELP several More.\n# TYPE several counter\nseveral{cluster=\"c\",name=\"a\\\\b\\\"c\\nd\"} 4611686018427387904\n"
	if got := string(p.text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

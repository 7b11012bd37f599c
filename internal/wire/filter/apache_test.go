package filter

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// TestWhatApacheSays asks expressions of messages and wants what Apache RocketMQ 5.5.0 said
// of them. The file says how it was made; test/compat asks a whole server the same.
func TestWhatApacheSays(t *testing.T) {
	var corpus struct {
		Messages    []message.Properties
		Expressions []struct {
			Text    string
			Code    int
			Matches []int
		}
	}
	text, err := os.ReadFile("testdata/apache-5.5.0.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &corpus); err != nil {
		t.Fatal(err)
	}
	read, cut := 0, 0
	for _, want := range corpus.Expressions {
		e, err := Compile(KindSQL92, want.Text)
		if err != nil {
			// What follows the end of an expression is refused here and not read there.
			if strings.Contains(err.Error(), "nothing may follow") || strings.Contains(err.Error(), "begin with 0") || strings.Contains(err.Error(), "expected after NOT") {
				cut++
			} else if want.Code == 0 {
				t.Errorf("%q: %v, Apache takes it", want.Text, err)
			}
			continue
		}
		read++
		var got []int
		for i, p := range corpus.Messages {
			if e.Match(p) {
				got = append(got, i)
				if !e.Possible(traitsOf(p)) {
					t.Errorf("%q: matches message %d and was not to be possible", want.Text, i)
				}
			}
		}
		if want.Code != 0 {
			t.Errorf("%q: matches %v, Apache answers %d", want.Text, got, want.Code)
		} else if !slices.Equal(got, want.Matches) {
			t.Errorf("%q: matches %v, Apache says %v", want.Text, got, want.Matches)
		}
	}
	if read < 500 || cut > len(corpus.Expressions)/10 {
		t.Errorf("%d expressions could be read, %d had something behind them", read, cut)
	}
}

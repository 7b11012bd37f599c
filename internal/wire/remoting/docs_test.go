package remoting

import (
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFrameSample holds docs/protocol/frame.md to its bytes.
func TestFrameSample(t *testing.T) {
	text, err := os.ReadFile("../../../docs/protocol/frame.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sample, _ := strings.Cut(string(text), "## The sample")
	_, sample, _ = strings.Cut(sample, "```\n")
	sample, _, _ = strings.Cut(sample, "```")
	var digits strings.Builder
	for line := range strings.Lines(sample) {
		digits.WriteString(strings.ReplaceAll(line[:min(48, len(line))], " ", ""))
	}
	frame, err := hex.DecodeString(strings.TrimSpace(digits.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := AppendRequest(nil, ReqHeartBeat, 7, 0, nil, []byte("{}"))
	if string(frame) != string(want) {
		t.Errorf("the sample is\n%swritten is\n%s", hex.Dump(frame), hex.Dump(want))
	}
}

// TestCodesPage holds docs/protocol/codes.md to the table; it is written anew with
// REWRITE=1.
func TestCodesPage(t *testing.T) {
	const page, mark = "../../../docs/protocol/codes.md", "<!-- the table is written by TestCodesPage -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), mark)
	if !found {
		t.Fatalf("%s has no mark", page)
	}
	var b strings.Builder
	b.WriteString(head + mark + "\n| code | name | asked of | state |\n| --- | --- | --- | --- |\n")
	for _, c := range RequestCodes() {
		var to []string
		for i, n := range []string{"broker", "name server", "client", "proxy", "controller", "container"} {
			if c.To&(1<<i) != 0 {
				to = append(to, n)
			}
		}
		state := [...]string{"served", "refused: " + c.Why, "the client serves it"}[c.State]
		fmt.Fprintf(&b, "| %d | %s | %s | %s |\n", c.Code, c.Name, strings.Join(to, ", "), state)
	}
	if b.String() == string(text) {
		return
	}
	if os.Getenv("REWRITE") == "" {
		t.Errorf("%s does not tell the table of codes.go; run this test with REWRITE=1", page)
	} else if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
		t.Error(err)
	}
}

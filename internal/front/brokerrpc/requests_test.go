package brokerrpc

import (
	"os"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// TestEveryCodeHasAnAnswer holds table, file names and the protocol's list of codes
// together.
func TestEveryCodeHasAnAnswer(t *testing.T) {
	table := map[int32]bool{}
	for _, q := range requests {
		if table[q.code] {
			t.Errorf("%s stands twice in the table", remoting.CodeName(q.code))
		}
		table[q.code] = true
	}
	files := map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files[e.Name()] = true
	}
	for _, c := range remoting.RequestCodes() {
		served := c.State == remoting.Served && c.To&remoting.ToBroker != 0
		file := strings.ToLower(c.Name) + ".go"
		switch {
		case served && !table[c.Code]:
			t.Errorf("%s (%d) is said to be served and is not in the table", c.Name, c.Code)
		case !served && table[c.Code]:
			t.Errorf("%s (%d) is in the table and is not said to be served by a broker", c.Name, c.Code)
		case served && !files[file]:
			t.Errorf("%s (%d) has no file %s", c.Name, c.Code, file)
		case c.State == remoting.Refused && c.Why == "":
			t.Errorf("%s (%d) is refused without a reason", c.Name, c.Code)
		}
	}
}

// TestRefusedCodes asks for each code that this server does not serve, and for one that
// nobody knows.
func TestRefusedCodes(t *testing.T) {
	n := newNode(t)
	for _, c := range remoting.RequestCodes() {
		if c.State != remoting.Refused {
			continue
		}
		r := n.call(c.Code, nil, nil)
		if r.Code != remoting.ResRequestCodeNotSupported || !strings.Contains(r.Remark, c.Why) {
			t.Errorf("%s: %d %q", c.Name, r.Code, r.Remark)
		}
	}
	if r := n.call(4711, nil, nil); r.Code != 3 || r.Remark != " request type 4711 not supported" {
		t.Errorf("unknown code: %d %q", r.Code, r.Remark)
	}
}

// TestMissingFieldsAreNamed is R098: each required header field of each request is left
// out, and the answer names it.
func TestMissingFieldsAreNamed(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	for _, q := range requests {
		c, _ := remoting.LookupCode(q.code)
		if c.Header == nil {
			continue
		}
		whole := everyField(t, c)
		for i, field := range whole {
			left := append(append(remoting.Pairs{}, whole[:i]...), whole[i+1:]...)
			// A field that the decoder can do without is optional; what the request then
			// does is another test's business.
			var probe remoting.Command
			if err := probe.Parse(remoting.AppendRequest(nil, c.Code, 1, 0, &left, nil)[remoting.LengthSize:]); err != nil {
				t.Fatal(err)
			}
			if probe.Decode(c.Header()) == nil {
				continue
			}
			r := n.call(c.Code, &left, nil)
			if r.Code != remoting.ResInvalidParameter || !strings.Contains(r.Remark, "header field "+field.Name+" is missing") {
				t.Errorf("%s without %s: %d %q", c.Name, field.Name, r.Code, r.Remark)
			}
		}
	}
}

// everyField is the header of a code with all of its fields written.
func everyField(t *testing.T, c remoting.RequestCode) remoting.Pairs {
	t.Helper()
	var whole remoting.Command
	if err := whole.Parse(remoting.AppendRequest(nil, c.Code, 1, 0, c.Header(), nil)[remoting.LengthSize:]); err != nil {
		t.Fatal(err)
	}
	var pairs remoting.Pairs
	if err := whole.Decode(&pairs); err != nil {
		t.Fatal(err)
	}
	return pairs
}

func TestVIPPortDoesNotWait(t *testing.T) {
	n := newNode(t)
	n.topic("T", 1)
	main := n.addr
	n.addr = n.vip
	if r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil); r.Code != 3 || r.Remark != " request type 11 not supported" {
		t.Errorf("pull: %d %q", r.Code, r.Remark)
	}
	n.send("T", 0, "x", "")
	n.addr = main
	until(t, "dispatch", func() bool { return n.Store.MaxOffset("T", 0) == 1 })
	if r := n.call(remoting.ReqPullMessage, pullHeader("g", "T", 0, 0), nil); r.Code != 0 {
		t.Errorf("pull at the main port: %d", r.Code)
	}
}

package config

import (
	"fmt"
	"strings"
	"testing"
)

// found is all that a file of settings has to be told, a line each.
func found(text string, form Form) string {
	var given []Given
	if form == AsApache {
		_, given = ReadApache("f", []byte(text))
		given, _ = Known(given)
	} else {
		given = ReadSettings("f", []byte(text), form)
	}
	_, f := Take(given)
	var b strings.Builder
	for _, w := range f.Warnings {
		fmt.Fprintf(&b, "warning %s\n", w)
	}
	for _, p := range f.Problems {
		fmt.Fprintln(&b, p)
	}
	return b.String()
}

// Whatever is wrong is told with file and line, in the order of the lines.
func TestFindings(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"fileReservedTime=48\n# comment\n! comment\n\n  deleteWhen : 04;16\nbrokerName b\n", ""},
		{"zzz=1\nfileReservedTime=0\nbare\nfileReservedTime=48\n", `f:1: unknown setting "zzz"
f:2: illegal value of fileReservedTime: 0 is below the limit 1 (hours, 1 to 876000)
f:3: "bare" is not KEY=VALUE
f:4: fileReservedTime is given twice, first in line 2: take one of them away
`},
		{"\n\nfileReservedTime=48 # two days\n", `f:3: illegal value of fileReservedTime: "48 # two days": in such a file # begins a comment only at the beginning of a line, here it is a part of the value; give the comment a line of its own and write fileReservedTime=48` + "\n"},
		{"regionId=a\t# b\n", `f:1: illegal value of regionId: "a\t# b": in such a file # begins a comment only at the beginning of a line, here it is a part of the value; give the comment a line of its own and write regionId=a` + "\n"},
		{"regionId=a#b\n", ""},
		{"storePathRootDir=/x\nlistenPort=1\n", "f:1: setting storePathRootDir: --data takes its place\nf:2: setting listenPort: --broker-addr or --namesrv-addr takes its place\n"},
		{"timerPrecisionMs=500\n", "warning f:1: setting timerPrecisionMs has no effect: times of delivery are kept to the millisecond\n"},
		{"maxInvisibleTimeMills=5000\n", "f:1: illegal value of minInvisibleTimeMillsForRecv: 10000 by default is more than maxInvisibleTimeMills, which is 5000\n"},
		{"\nmappedFileSizeCommitLog=65536\n", "f:2: illegal value of maxMessageSize: 4194304 by default, with 40960 beside it, is more than mappedFileSizeCommitLog, which is 65536\n"},
		{"mappedFileSizeCommitLog=65536\nmaxMessageSize=24576\n", ""},
		{"grpcClientConsumerMinLongPollingTimeoutMillis=9\ngrpcClientConsumerMaxLongPollingTimeoutMillis=8\n", "f:1: illegal value of grpcClientConsumerMinLongPollingTimeoutMillis: 9 is more than grpcClientConsumerMaxLongPollingTimeoutMillis, which is 8\n"},
		{"brokerName=C\\\\x\n", `f:1: illegal value of brokerName: "C\\x" has '\\'; a name has letters, digits and any of -_.|%@` + "\n"},
		{"regionId=\\u00\n", `f:1: illegal value: a \u escape is cut short in "\\u00"` + "\n"},
		{utf8Mark + "fileReservedTime=48\n", "f:1: the file begins with a byte order mark, which for Java's properties, and so for Apache's servers, is a part of the first key: save it as UTF-8 without one\n"},
		{utf8Mark + "# comment\nfileReservedTime=48\n", ""},
		{utf16Little + "f\x00", "f:1: the file is UTF-16: save it as UTF-8\n"},
		{"\x7fELF\x00", "f:1: the file is not text: it has a byte that is zero\n"},
		{"fileReservedTime=48\r\ndeleteWhen=04\r\n", ""},
	} {
		if got := found(c.text, Strict); got != c.want {
			t.Errorf("%q:\n%swant\n%s", c.text, got, c.want)
		}
	}
}

// TestDiffSettingsAreSound: what Apache's servers pass over without a word, a value of another form or
// out of range, a comment behind one, a byte order mark, is refused with where and why; of two of one name
// the last counts, as there, and that is told. Verified with 5.5.0: with such a file it runs on defaults.
func TestDiffSettingsAreSound(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"sendMessageThreadPoolNums=x # y\nsendMessageThreadPoolNums=2\n", ""}, // means nothing here
		{"fileReservedTime=11\nfileReservedTime=12\n", "warning f:2: fileReservedTime is given twice, first in line 1: the last counts, as with Apache's servers\n"},
		{"fileReservedTime=11 # hours\n", `f:1: illegal value of fileReservedTime: "11 # hours": in such a file # begins`},
		{"autoCreateTopicEnable=1\n", `f:1: illegal value of autoCreateTopicEnable: "1" is not true or false`},
		{"maxMessageSize=4MB\n", `f:1: illegal value of maxMessageSize: "4MB" is not a whole number (bytes, 1024 to 16777216); write 4194304`},
		{"brokerPermission=9\n", "f:1: illegal value of brokerPermission: 9 is over the limit 7 (a number, 0 to 7)"},
		{utf8Mark + "diskMaxUsedSpaceRatio=60\n", "f:1: the file begins with a byte order mark"},
		{"{\n \"maxMessageSize\": \"4MB\",\n \"grpcServerPort\": 8081\n}", `f:2: illegal value of maxMessageSize: "4MB" is not`},
		{utf8Mark + "{\"maxMessageSize\": 2048}", ""},
		{"{\"maxMessageSize\": 2048,\n\"maxMessageSize\": 4096}", "warning f:2: maxMessageSize is given twice"},
		{"{\"maxMessageSize\": 2048,\n", "f:1: the file is not JSON: it ends in the middle\n"},
		{"{\"maxMessageSize\": 2048,\n]", "f:2: the file is not JSON: invalid character ']'"},
		{"{\"maxMessageSize\": 2048}\n\n{}", "f:3: the file is not JSON: there is something behind its end\n"},
	} {
		if got := found(c.text, AsApache); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q:\n%swant\n%s", c.text, got, c.want)
		}
	}
}

// A later setting replaces an earlier one, which has to be sound all the same.
func TestLaterSettingsReplaceEarlierOnes(t *testing.T) {
	o, f := Take([]Given{{Name: "fileReservedTime", Value: "1", From: "f:1"}, {Name: "fileReservedTime", Value: "2", From: "--set"}})
	if f.Err() != nil || o.Store.FileReservedTime != 2 {
		t.Errorf("%d, %v", o.Store.FileReservedTime, f.Err())
	}
	_, f = Take([]Given{{Name: "fileReservedTime", Value: "x", From: "f:1"}, {Name: "fileReservedTime", Value: "2", From: "--set"}, {Name: "y", From: "--set"}})
	if err := f.Err(); err == nil || !strings.HasPrefix(err.Error(), "f:1: ") || !strings.HasSuffix(err.Error(), " (and 1 more problem)") {
		t.Errorf("%v", err)
	}
}

// The machine-room strategy of Apache's clients finds the room in the names of brokers.
func TestNameWithARoom(t *testing.T) {
	if err := checkName("room@broker-a"); err != nil {
		t.Error(err)
	}
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// masks take out of an output what differs from run to run, in this order.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`[ \t]+`), " "},               // the widths of columns
	{regexp.MustCompile(`\b[0-9A-F]{32,64}\b`), "ID"}, // of messages: the client's address is in them
	{regexp.MustCompile(`@ID@\d+\b`), "@ID@N"},        // where a message is in the log
	{regexp.MustCompile(`@[0-9a-f]{5,8}\b|\$\$Lambda\$\S+`), "@HASH"},
	{regexp.MustCompile(`\b(CommitLog Offset: |commitLogOffset=|storeSize=|spentTimeMills=)\d+`), "${1}N"},
	{regexp.MustCompile(`, TRACE_ON=true`), ""}, // docs/differences.md
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[ #]\d\d:\d\d:\d\d([,.:]\d{1,3})?`), "TIME"},
	{regexp.MustCompile(`\b\d{8}-\d{6}\b|\b\d{14,17}\b`), "TIME"},
	{regexp.MustCompile(`\b1[6-9]\d{11}\b`), "MS"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(@\d+#\d+)`), "CLIENT"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b`), "ADDR"},
	{regexp.MustCompile(`\d+\.\d+(E-?\d+)?\b`), "F"},
	{regexp.MustCompile(`\b\d+ms\b`), "Nms"},
	{regexp.MustCompile(`\(\d+ s ago\)`), "(N s ago)"},
}

// noise is lines of Java's own: stack traces, and the stacks of a client's threads.
var noise = regexp.MustCompile(`^at |^\.\.\. |^WARNING: |TID: \d+ |(java\.base@|app//)\S+\(|rocketmq\.apache\.org/docs/bestPractice/06FAQ`)

// normal is an output without what differs from run to run: addresses, times, ids, rates,
// the widths of columns, stack traces.
func (m *mqadmin) normal(text string) string {
	text = strings.ReplaceAll(text, m.h.target.Broker, "BROKER")
	text = strings.ReplaceAll(text, m.h.target.Namesrv, "NAMESRV")
	text = strings.ReplaceAll(text, m.values["{work}"], "WORK")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if noise.MatchString(trimmed) {
			continue
		}
		for _, mask := range masks {
			line = mask.what.ReplaceAllString(line, mask.with)
		}
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// comparison says what of two outputs has to be equal.
type comparison int

const (
	equal   comparison = iota // all of it
	sorted                    // all lines, in any order: they come out of a hash table
	numbers                   // all but numbers: they are figures of a machine
	names                     // what stands before = or : in each line
	known                     // every line of ours is one of Apache's, which may have more
	codes                     // the response code, not the server's own words about it
	runs                      // nothing, it has to run; why says what differs
)

// compare says how an output differs from the recorded one.
func (s *mqadminStep) compare(got, want string) error {
	if s.as < codes && strings.Contains(got, "Exception") && !strings.Contains(want, "Exception") {
		return fmt.Errorf("it fails:\n%s", got)
	}
	a, b := s.lines(got), s.lines(want)
	switch s.as {
	case runs:
		return nil
	case known:
		if len(a) == 0 {
			return errors.New("prints nothing")
		}
		if more := slices.DeleteFunc(a, func(line string) bool { return slices.Contains(b, line) }); len(more) > 0 {
			return errors.New("prints what Apache does not:\n" + strings.Join(more, "\n"))
		}
		return nil
	}
	if slices.Equal(a, b) {
		return nil
	}
	return errors.New("differs (- Apache, + this server):\n" + onlyIn(b, a))
}

var (
	number = regexp.MustCompile(`-?\b\d+\b`)
	code   = regexp.MustCompile(`CODE: \d+|code=\d+`)
)

// lines are the lines of an output as far as they are compared.
func (s *mqadminStep) lines(text string) []string {
	if s.as == codes {
		return code.FindAllString(text, -1)
	}
	lines := strings.Split(text, "\n")
	if s.without != nil {
		lines = slices.DeleteFunc(lines, s.without.MatchString)
	}
	for i, line := range lines {
		switch s.as {
		case numbers:
			lines[i] = number.ReplaceAllString(line, "N")
		case names:
			line, _, _ = strings.Cut(line, ":")
			line, _, _ = strings.Cut(line, "=")
			lines[i] = strings.TrimSpace(line)
		}
	}
	if s.as != equal {
		slices.Sort(lines)
	}
	return lines
}

// onlyIn lists the lines that only one side has.
func onlyIn(want, got []string) string {
	var b strings.Builder
	for _, line := range want {
		if !slices.Contains(got, line) {
			fmt.Fprintln(&b, "-", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			fmt.Fprintln(&b, "+", line)
		}
	}
	if b.Len() == 0 {
		fmt.Fprintf(&b, "the order or number of lines:\n- %s\n+ %s\n", strings.Join(want, "\n- "), strings.Join(got, "\n+ "))
	}
	return b.String()
}

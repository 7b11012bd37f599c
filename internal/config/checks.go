package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// check is the rule of a text, which the tag check names.
type check struct {
	is   string // what it may be
	rule func(text string) error
}

// checks are the rules by name. Their errors are the rest of a sentence that names the
// setting.
var checks = map[string]check{
	"name": {"a name: letters, digits and any of -_.|%@, 127 at most", checkName},
	"topic": {"a topic: letters, digits and any of -_|%, 127 at most", func(text string) error {
		if i := strings.IndexAny(text, ".@"); i >= 0 {
			return fmt.Errorf("%.64q has %q, which no topic's name may have", text, text[i])
		}
		return checkName(text)
	}},
	"hours":   {"hours of the day, 00 to 23, with semicolons between them", func(text string) error { _, err := Hours(text); return err }},
	"delays":  {"numbers with s, m, h or d after each, with blanks between them", func(text string) error { _, err := Delays(text); return err }},
	"servers": {"HOST:PORT, several with semicolons between them, or empty", func(text string) error { _, err := NameServers(text); return err }},
}

// longestName is the most bytes of a name that is the name of a topic, too.
const longestName = 127

// checkName is the rule of names that stand in routes, receipts and topics' names: a blank in
// one would end a field there. The machine-room strategy of Apache's clients takes what is before an @
// in the name of a broker for the room.
func checkName(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	if len(text) > longestName {
		return fmt.Errorf("it has %d bytes, the limit is %d", len(text), longestName)
	}
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("-_.|%@", r):
		default:
			return fmt.Errorf("%.64q has %q; a name has letters, digits and any of -_.|%%@", text, r)
		}
	}
	return nil
}

// Hours reads hours of the day as deleteWhen has them: "04" or "04;16".
func Hours(text string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(strings.Trim(text, "; "), ";") {
		hour, err := strconv.ParseUint(strings.TrimSpace(part), 10, 8)
		if err != nil || hour > 23 {
			return nil, fmt.Errorf("%.64q is not an hour of the day, 00 to 23", part)
		}
		all = append(all, int(hour))
	}
	return all, nil
}

// MostDelays and longestDelay bound messageDelayLevel: each level is a queue.
const (
	MostDelays   = 64
	longestDelay = 10 * 365 * 24 * time.Hour
)

// Delays reads the delays of the levels from 1 on, as messageDelayLevel has them: "1s 5s 10m".
func Delays(text string) ([]time.Duration, error) {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	var all []time.Duration
	for _, word := range strings.Fields(text) {
		unit := units[word[len(word)-1]]
		n, err := strconv.ParseUint(word[:len(word)-1], 10, 31)
		if unit == 0 || err != nil {
			return nil, fmt.Errorf("%.64q is not a number followed by s, m, h or d, such as 10s", word)
		}
		if n > uint64(longestDelay/unit) {
			return nil, fmt.Errorf("%.64q is over the limit of %d days", word, longestDelay/(24*time.Hour))
		}
		all = append(all, time.Duration(n)*unit)
	}
	switch {
	case len(all) == 0:
		return nil, errors.New("it is empty, so there would be no level")
	case len(all) > MostDelays:
		return nil, fmt.Errorf("it has %d levels, the limit is %d", len(all), MostDelays)
	}
	return all, nil
}

// NameServers reads a list of name servers, each HOST:PORT, with semicolons, commas or blanks
// between them, as namesrvAddr and NAMESRV_ADDR have them. An empty list is one, too.
func NameServers(list string) ([]string, error) {
	all := SplitAddresses(list)
	for _, one := range all {
		if !HostPort(one) {
			return nil, fmt.Errorf("%.64q is not HOST:PORT, such as 127.0.0.1:9876", one)
		}
	}
	return all, nil
}

// SplitAddresses takes such a list apart.
func SplitAddresses(list string) []string {
	var out []string
	for part := range strings.FieldsFuncSeq(list, func(c rune) bool { return c == ';' || c == ',' || unicode.IsSpace(c) }) {
		part = strings.TrimPrefix(strings.TrimPrefix(part, "http://"), "https://")
		if part != "" && !slices.Contains(out, part) {
			out = append(out, part)
		}
	}
	return out
}

// HostPort reports whether text is an address that a client could connect to.
func HostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if n, convErr := strconv.ParseUint(port, 10, 16); err != nil || convErr != nil || n == 0 {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host != "" && !strings.ContainsFunc(host, func(r rune) bool {
		return !(unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '.' || r == '_')
	})
}

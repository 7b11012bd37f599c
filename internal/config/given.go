package config

import (
	"errors"
	"fmt"
)

// Given is a setting as somebody has given it.
type Given struct {
	Name, Value string
	From        string // FILE:LINE, or the flag; may be empty
	// Wrong is why it is none, whatever its name and value are: they may be empty then. Take
	// refuses it.
	Wrong  error
	Remark string // worth a warning
}

// FromMap is settings that nobody has given an order.
func FromMap(settings map[string]string) []Given {
	var given []Given
	for _, name := range sortedNames(settings) {
		given = append(given, Given{Name: name, Value: settings[name]})
	}
	return given
}

// Findings are what there is to say of settings that were given: what is refused, each
// problem a line of its own that begins with where it is, and what is taken and worth a word.
type Findings struct {
	Problems []error
	Warnings []string
}

func (f *Findings) refuse(from string, err error) {
	if from != "" {
		err = fmt.Errorf("%s: %w", from, err)
	}
	f.Problems = append(f.Problems, err)
}

func (f *Findings) warn(from, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if from != "" {
		text = from + ": " + text
	}
	f.Warnings = append(f.Warnings, text)
}

// Err is the first problem in one line, with how many others there are; nil without any.
func (f *Findings) Err() error {
	switch more := len(f.Problems) - 1; {
	case more < 0:
		return nil
	case more == 0:
		return f.Problems[0]
	case more == 1:
		return fmt.Errorf("%w (and 1 more problem)", f.Problems[0])
	default:
		return fmt.Errorf("%w (and %d more problems)", f.Problems[0], more)
	}
}

// Options are all options of a server.
type Options struct {
	Broker  Broker
	Store   Store
	Namesrv Namesrv
	Proxy   Proxy
}

// Default is a server that was told nothing.
func Default() Options {
	return Options{DefaultBroker(), DefaultStore(), DefaultNamesrv(), DefaultProxy()}
}

// targets are what a setting may be one of.
func (o *Options) targets() []any { return []any{&o.Broker, &o.Store, &o.Namesrv, &o.Proxy} }

// flagInstead are properties of Apache's files that flags take the place of.
var flagInstead = map[string]string{
	"storePathRootDir":   "--data",
	"storePathCommitLog": "--data",
	"listenPort":         "--broker-addr or --namesrv-addr",
	"bindAddress":        "--broker-addr or --namesrv-addr",
	"grpcServerPort":     "--grpc-addr",
	"remotingListenPort": "--proxy-addr",
	"brokerIP1":          "--advertise",

	"metricsExporterType":     "--metrics-addr",
	"metricsPromExporterHost": "--metrics-addr",
	"metricsPromExporterPort": "--metrics-addr",
}

// FlagInstead is the flag that takes the place of a property of Apache's files, if one does.
func FlagInstead(name string) string { return flagInstead[name] }

// Take puts settings over the defaults, each over those before it. It is the one judge of
// settings: a start takes what it takes and `bolide config --check` says what it says, so
// there is nothing that the one lets pass and the other refuses. Each setting has to be
// sound, also one that a later one replaces.
func Take(given []Given) (Options, Findings) {
	o := Default()
	var f Findings
	last := make(map[string]Given)
	final := make(map[string]string)
	for _, g := range given {
		if g.Remark != "" {
			f.warn(g.From, "%s", g.Remark)
		}
		if g.Wrong != nil {
			f.refuse(g.From, g.Wrong)
			continue
		}
		if flag, ok := flagInstead[g.Name]; ok {
			f.refuse(g.From, fmt.Errorf("setting %s: %s takes its place", g.Name, flag))
			continue
		}
		if err := setEach(g.Name, g.Value, o.targets()); err != nil {
			f.refuse(g.From, err)
			continue
		}
		last[g.Name], final[g.Name] = g, g.Value
	}
	defaults := Default()
	for _, idle := range WithoutEffect(final, defaults.targets()...) {
		f.warn(last[idle.Name].From, "setting %s has no effect: %s", idle.Name, idle.Why)
	}
	if len(f.Problems) == 0 {
		o.agree(last, &f)
	}
	return o, f
}

// order is that one setting, with room beside it, may not be more than another.
type order struct {
	low, high             string
	lowest, room, highest int64
}

// besideBody is room for what a record has beside its body: properties, names, numbers.
const besideBody = 40 << 10

func (s *Store) orders() []order {
	return []order{{"maxMessageSize", "mappedFileSizeCommitLog", int64(s.MaxMessageSize), besideBody, s.MappedFileSizeCommitLog}}
}

func (p *Proxy) orders() []order {
	return []order{
		{"minInvisibleTimeMillsForRecv", "maxInvisibleTimeMills", p.MinInvisibleTimeMillsOnRecv, 0, p.MaxInvisibleTimeMills},
		{"grpcClientConsumerMinLongPollingTimeoutMillis", "grpcClientConsumerMaxLongPollingTimeoutMillis", p.LongPollingMinTimeMillis, 0, p.LongPollingMaxTimeMillis},
	}
}

// broken says how two settings contradict each other, if they do. given are those that somebody has
// set; the others are as they are by default.
func (r order) broken(given func(name string) bool) error {
	if r.lowest+r.room <= r.highest {
		return nil
	}
	byDefault := func(name string) string {
		if given(name) {
			return ""
		}
		return " by default"
	}
	beside := ""
	if r.room > 0 {
		beside = fmt.Sprintf(", with %d beside it,", r.room)
	}
	return fmt.Errorf("%w of %s: %d%s%s is more than %s, which is %d%s", ErrValue, r.low, r.lowest, byDefault(r.low), beside, r.high, r.highest, byDefault(r.high))
}

// agree refuses settings that contradict each other.
func (o *Options) agree(last map[string]Given, f *Findings) {
	given := func(name string) bool { _, ok := last[name]; return ok }
	for _, r := range append(o.Store.orders(), o.Proxy.orders()...) {
		err := r.broken(given)
		if err == nil {
			continue
		}
		from := last[r.low].From
		if from == "" {
			from = last[r.high].From
		}
		f.refuse(from, err)
	}
}

// setEach sets a property in each of the targets that have it; one must.
func setEach(name, value string, targets []any) error {
	taken := false
	for _, target := range targets {
		switch err := Set(target, name, value); {
		case err == nil:
			taken = true
		case !errors.Is(err, ErrUnknown):
			return err
		}
	}
	if !taken {
		return unknown(name, targets)
	}
	return nil
}

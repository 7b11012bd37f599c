package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bolidemq/bolide/internal/config"
)

// Flags with limits refuse what is beyond them while the command line is read, before a
// server is asked for anything, and their help tells the limits.

// whole are the types of flags that are whole numbers.
type whole interface{ int | int32 | int64 }

// number is the value of such a flag.
type number[T whole] struct {
	at        *T
	low, high T
}

// numberVar adds a flag that is a whole number from low to high.
func numberVar[T whole](fs *pflag.FlagSet, at *T, name string, standard, low, high T, usage string) {
	*at = standard
	n := number[T]{at, low, high}
	fs.Var(n, name, usage+"; "+n.limits())
}

// Set implements pflag.Value.
func (n number[T]) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return fmt.Errorf("is a whole number, %s", n.limits())
	case err != nil || v < int64(n.low) || v > int64(n.high):
		return fmt.Errorf("is %s", n.limits())
	}
	*n.at = T(v)
	return nil
}

func (n number[T]) limits() string {
	if int64(n.high) == math.MaxInt64 {
		return fmt.Sprintf("%d or more", n.low)
	}
	return fmt.Sprintf("%d to %d", n.low, n.high)
}

func (n number[T]) String() string {
	if n.at == nil {
		return "0"
	}
	return strconv.FormatInt(int64(*n.at), 10)
}

// Type implements pflag.Value.
func (number[T]) Type() string { return "number" }

// span is the value of a flag that is a length of time.
type span struct {
	at        *time.Duration
	low, high time.Duration
}

// spanVar adds a flag that is a length of time from low to high.
func spanVar(fs *pflag.FlagSet, at *time.Duration, name string, standard, low, high time.Duration, usage string) {
	*at = standard
	fs.Var(span{at, low, high}, name, fmt.Sprintf("%s; %s to %s", usage, brief(low), brief(high)))
}

// Set implements pflag.Value.
func (s span) Set(text string) error {
	v, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return errors.New("is a time with its unit, such as 500ms, 2s or 1h30m")
	case v < s.low || v > s.high:
		return fmt.Errorf("is %s to %s", brief(s.low), brief(s.high))
	}
	*s.at = v
	return nil
}

func (s span) String() string {
	if s.at == nil {
		return "0"
	}
	return brief(*s.at)
}

// Type implements pflag.Value.
func (span) Type() string { return "duration" }

// brief is a duration without the zeros that follow its unit: 1h, not 1h0m0s.
func brief(d time.Duration) string {
	switch {
	case d == 0:
		return "0"
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}

// address is the value of a flag that names servers, HOST:PORT, several with semicolons
// between them.
type address struct {
	at   *string // where one of them may take the place of all
	text string
}

// addressVar adds such a flag.
func addressVar(fs *pflag.FlagSet, at *string, name, short, standard, usage string) {
	*at = standard
	fs.VarP(&address{at, standard}, name, short, usage)
}

// Set implements pflag.Value.
func (a *address) Set(text string) error {
	for one := range strings.SplitSeq(text, ";") {
		if err := hostPort(one); err != nil && text != "" {
			return err
		}
	}
	*a.at, a.text = text, text
	return nil
}

func (a *address) String() string { return a.text }

// Type implements pflag.Value.
func (*address) Type() string { return "address" }

// hostPort refuses what no client can connect to.
func hostPort(text string) error {
	if !config.HostPort(strings.TrimSpace(text)) {
		return errors.New("is HOST:PORT, such as 127.0.0.1:9876")
	}
	return nil
}

// flagError says what is wrong with a flag in words of the command line, not of the library
// that reads it.
func flagError(c *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &missing):
		name, _ := pflag.UnquoteUsage(missing.GetFlag())
		return fmt.Errorf("--%s needs a %s", missing.GetFlag().Name, name)
	case !errors.As(err, &value):
		return fmt.Errorf("%w; %s --help lists the flags", err, c.CommandPath())
	}
	f := value.GetFlag()
	is := value.Unwrap().Error()
	switch f.Value.Type() {
	case "number", "duration", "address":
	case "int", "int32", "int64":
		is = "is a whole number"
	case "bool":
		is = "is true or false"
	case "intSlice":
		is = "is a list of whole numbers"
	default:
		is = "is refused: " + is
	}
	return fmt.Errorf("--%s %s, not %q", f.Name, is, value.GetValue())
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

func brokerConfig(r *remote) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "config [BROKER]",
		Short: "Show the settings of running brokers, first those that are not as by default",
		Long: "Shows the settings that running brokers have now. Those that are not as by default come first, each\n" +
			"with its default; the others follow with a # before them, so that what a bolide broker shows is a file\n" +
			"for --config. bolide config tells what they mean. Defaults are those of this program; of brokers\n" +
			"other than Bolide's they are not known, and their settings are not told apart. BROKER is a name or\n" +
			"HOST:PORT; without it all are shown.",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return one("BROKER")(c, args)
		},
		Example: "  bolide admin broker config broker-a\n" +
			"  bolide admin broker config --json | jq -r .settings.brokerPermission",
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line and broker")
	c.RunE = func(c *cobra.Command, args []string) error {
		r.open()
		defer r.close()
		all, err := r.brokersAt(c.Context(), strings.Join(args, ""))
		if err != nil {
			return err
		}
		err = all.each(c.Context(), func(b master) error {
			s, err := r.settings(c.Context(), b)
			switch {
			case err != nil:
				return err
			case asJSON:
				return s.printJSON(c.OutOrStdout())
			}
			s.print(c.OutOrStdout())
			return nil
		})
		if err != nil {
			return err
		}
		return all.incomplete("these are not all brokers")
	}
	return c
}

// brokersAt are the brokers of a name, or at an address, which no name server is asked for; "" is all.
func (r *remote) brokersAt(ctx context.Context, name string) (*census, error) {
	if config.HostPort(name) {
		return &census{brokers: []master{{name, name}}}, nil
	}
	all, err := r.census(ctx)
	if err == nil && name != "" {
		err = r.onlyBroker(all, name)
	}
	return all, err
}

// onlyBroker leaves one broker to ask.
func (r *remote) onlyBroker(all *census, name string) error {
	i := slices.IndexFunc(all.brokers, func(b master) bool { return b.broker == name })
	if i >= 0 {
		all.brokers, all.missing = all.brokers[i:i+1], nil
		return nil
	}
	for _, missing := range all.missing {
		if strings.HasPrefix(missing, name+" ") {
			return errors.New("broker " + missing)
		}
	}
	return fmt.Errorf("name server %s knows no broker %s; bolide admin broker list lists those that it does", r.namesrv, name)
}

// brokerSettings are the settings of a running broker.
type brokerSettings struct {
	master
	list     []config.Property // in the order of their names
	standard map[string]string // their defaults; nil: not known
}

// settings asks a broker for its settings.
func (r *remote) settings(ctx context.Context, b master) (*brokerSettings, error) {
	answer, err := r.call(ctx, b.addr, remoting.ReqGetBrokerConfig, nil, nil)
	if err != nil {
		return nil, err
	}
	s := &brokerSettings{master: b}
	if s.list, err = config.ParseProperties(answer.Body); err != nil {
		return nil, fmt.Errorf("settings of %s: %w", b.broker, err)
	}
	slices.SortFunc(s.list, func(a, b config.Property) int { return strings.Compare(a.Name, b.Name) })
	if name, ok := s.find("brokerName"); ok {
		s.broker = name // it may have been found by its address
	}
	answer, err = r.call(ctx, b.addr, remoting.ReqGetBrokerRuntimeInfo, nil, nil)
	if err != nil {
		return nil, err
	}
	var info remoting.KVTable
	if err := remoting.Unmarshal(answer.Body, &info); err != nil {
		return nil, fmt.Errorf("runtime info of %s: %w", b.addr, err)
	}
	if info.Table["bolideVersion"] != "" {
		s.standard = config.BrokerDefaults()
	}
	return s, nil
}

// find is the value of a setting.
func (s *brokerSettings) find(name string) (string, bool) {
	i, ok := slices.BinarySearchFunc(s.list, name, func(p config.Property, name string) int { return strings.Compare(p.Name, name) })
	if !ok {
		return "", false
	}
	return s.list[i].Value, true
}

// split tells the settings that are not as by default from the others. Those that flags have taken
// the place of are among these: no file may have them.
func (s *brokerSettings) split() (differ, others []config.Property) {
	for _, p := range s.list {
		standard, known := s.standard[p.Name]
		if flag := config.FlagInstead(p.Name); s.standard != nil && (!known || standard == p.Value || flag != "") {
			others = append(others, p)
		} else {
			differ = append(differ, p)
		}
	}
	return differ, others
}

func (s *brokerSettings) print(out io.Writer) {
	differ, others := s.split()
	if s.standard == nil {
		fmt.Fprintf(out, "# ---- %s at %s: no bolide broker, so that its defaults are not known here\n", s.broker, s.addr)
	} else {
		fmt.Fprintf(out, "# ---- %s at %s: not as by default: %s\n", s.broker, s.addr, counted(len(differ), "setting"))
	}
	for _, p := range differ {
		if standard, known := s.standard[p.Name]; known {
			fmt.Fprintf(out, "# by default %s\n", orNothing(standard))
		}
		fmt.Fprintf(out, "%s", config.FormatProperties([]config.Property{p}))
	}
	for _, p := range others {
		fmt.Fprintf(out, "#%s", config.FormatProperties([]config.Property{p}))
	}
}

// orNothing names an empty value.
func orNothing(value string) string {
	if value == "" {
		return "nothing"
	}
	return value
}

func (s *brokerSettings) printJSON(out io.Writer) error {
	line := struct {
		Broker   string            `json:"broker"`
		Address  string            `json:"address"`
		Settings map[string]string `json:"settings"`
		Defaults map[string]string `json:"defaults,omitempty"` // of those that differ
	}{s.broker, s.addr, map[string]string{}, map[string]string{}}
	for _, p := range s.list {
		line.Settings[p.Name] = p.Value
	}
	differ, _ := s.split()
	for _, p := range differ {
		if standard, known := s.standard[p.Name]; known {
			line.Defaults[p.Name] = standard
		}
	}
	return json.NewEncoder(out).Encode(line)
}

func brokerSet(r *remote) *cobra.Command {
	var broker string
	var every bool
	c := &cobra.Command{
		Use:   "set KEY=VALUE...",
		Short: "Change settings of running brokers",
		Long: "Changes settings of a running broker, all or none, and shows what they were and what they are.\n" +
			"Where there are several brokers --broker names one, or --all says that it is meant for each. A\n" +
			"bolide broker has what its files say again after its next start: what is to stay belongs in its\n" +
			"--config file. It takes changes only from its own machine, as long as there is no access control:\n" +
			"where the name server has another address of it, --broker 127.0.0.1:10911 leads there.",
		Example: "  bolide admin broker set brokerPermission=4 --broker broker-a\n" +
			"  bolide admin broker set brokerPermission=4 --broker 127.0.0.1:10911\n" +
			"  bolide admin broker set autoCreateTopicEnable=false autoCreateSubscriptionGroup=false --all",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs a KEY=VALUE: %s", c.CommandPath(), c.UseLine())
			}
			return nil
		},
	}
	c.Flags().StringVar(&broker, "broker", "", "`NAME` of the broker, or HOST:PORT")
	c.Flags().BoolVar(&every, "all", false, "each broker that the name server knows")
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := given(c); err != nil {
			return err
		}
		list, err := assignments(args)
		if err != nil {
			return err
		}
		if every && broker != "" {
			return errors.New("--broker and --all: it is one broker or each")
		}
		r.open()
		defer r.close()
		all, err := r.brokersAt(c.Context(), broker)
		if err != nil {
			return err
		}
		if n := len(all.brokers); n > 1 && !every {
			return fmt.Errorf("there are %d brokers: --broker NAME says which, --all means each", n)
		}
		err = all.each(c.Context(), func(b master) error { return r.set(c, b, list) })
		if err != nil {
			return err
		}
		return all.incomplete("what is missing is not changed")
	}
	return c
}

// assignments reads the arguments KEY=VALUE, each key once.
func assignments(args []string) ([]config.Property, error) {
	var list []config.Property
	for _, arg := range args {
		key, value, ok := assignment(arg)
		switch {
		case !ok:
			return nil, fmt.Errorf("%q is not KEY=VALUE", arg)
		case slices.ContainsFunc(list, func(p config.Property) bool { return p.Name == key }):
			return nil, fmt.Errorf("%s is given twice", key)
		}
		list = append(list, config.Property{Name: key, Value: value})
	}
	return list, nil
}

// set changes settings of one broker and says what has become of each. Apache's brokers pass over
// what they do not know and what they can't read without a word.
func (r *remote) set(c *cobra.Command, b master, list []config.Property) error {
	before, err := r.settings(c.Context(), b)
	if err != nil {
		return err
	}
	if _, err := r.call(c.Context(), b.addr, remoting.ReqUpdateBrokerConfig, nil, config.FormatProperties(list)); err != nil {
		return err
	}
	after, err := r.settings(c.Context(), b)
	if err != nil {
		return err
	}
	var ignored []string
	for _, p := range list {
		was, _ := before.find(p.Name)
		is, known := after.find(p.Name)
		switch {
		case !known:
			ignored = append(ignored, "has no "+p.Name)
		case is != was:
			fmt.Fprintf(c.OutOrStdout(), "%s: %s is %s, was %s\n", before.broker, p.Name, orNothing(is), orNothing(was))
		case !sameValue(is, p.Value):
			ignored = append(ignored, fmt.Sprintf("still has %s=%s", p.Name, is))
		default:
			fmt.Fprintf(c.OutOrStdout(), "%s: %s is %s already\n", before.broker, p.Name, orNothing(is))
		}
	}
	if len(ignored) > 0 {
		return fmt.Errorf("%s refuses nothing, and %s", before.broker, strings.Join(ignored, ", and "))
	}
	return nil
}

// sameValue reports whether two texts are one value of a setting.
func sameValue(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	x, err := strconv.ParseInt(a, 10, 64)
	y, otherErr := strconv.ParseInt(b, 10, 64)
	return err == nil && otherErr == nil && x == y
}

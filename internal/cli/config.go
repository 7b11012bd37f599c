package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/node"
)

func configCommand() *cobra.Command {
	var check string
	var apache []string
	c := &cobra.Command{
		Use:   "config",
		Short: "Print every setting with its meaning and its default, or check files",
		Long: "Prints a settings file for --config of the server commands: what each setting means, its unit and\n" +
			"what it may be, and its default.\n" +
			"With --check it says what is wrong with such a file, with --check-apache with files of Apache RocketMQ;\n" +
			"both judge as a start does.",
		Args: none,
	}
	c.Flags().StringVar(&check, "check", "", "`FILE` of settings to check")
	c.Flags().StringSliceVar(&apache, "check-apache", nil, "`FILE,...` of Apache RocketMQ to check: broker.conf, namesrv.conf, rmq-proxy.json")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := given(c); err != nil {
			return err
		}
		if check == "" && len(apache) == 0 {
			_, err := fmt.Fprint(c.OutOrStdout(), config.Describe())
			return err
		}
		for _, file := range apache {
			if err := checkApache(c, file); err != nil {
				return err
			}
		}
		if check == "" {
			return nil
		}
		text, err := readFile("--check", check)
		if err != nil {
			return err
		}
		return judge(c, check, config.ReadSettings(check, text, config.Strict))
	}
	return c
}

// checkApache checks one file alone, as one for `bolide server`.
func checkApache(c *cobra.Command, file string) error {
	f := &serverFlags{}
	f.Roles = node.All
	given, err := f.readApache(f.command("server", ""), file)
	if err != nil {
		return err
	}
	if n := len(f.ignored); n > 0 {
		fmt.Fprintf(c.OutOrStdout(), "%s: %d settings mean nothing here and are passed over: %s\n", file, n, strings.Join(f.ignored, ", "))
	}
	return judge(c, file, given)
}

// judge says what a start would refuse, in the start's words, and what it would warn of.
func judge(c *cobra.Command, file string, given []config.Given) error {
	_, found := config.Take(given)
	out := c.OutOrStdout()
	for _, w := range found.Warnings {
		fmt.Fprintln(out, w)
	}
	if len(found.Problems) > 1 {
		for _, p := range found.Problems {
			fmt.Fprintln(out, p)
		}
	}
	if err := found.Err(); err != nil {
		return explained(err)
	}
	if len(given) == 1 {
		fmt.Fprintf(out, "%s: 1 setting, and it is sound\n", file)
	} else {
		fmt.Fprintf(out, "%s: %d settings, all of them sound\n", file, len(given))
	}
	return nil
}

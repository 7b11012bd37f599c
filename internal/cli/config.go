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
		var first error
		for _, file := range apache {
			switch err := checkApache(c, file); {
			case first == nil:
				first = err
			case err != nil:
				fmt.Fprintln(c.OutOrStdout(), err)
			}
		}
		if first != nil || check == "" {
			return first
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
	if len(f.ignored) > 0 {
		fmt.Fprintf(c.OutOrStdout(), "%s: settings that mean nothing here are passed over: %s\n", file, strings.Join(f.ignored, ", "))
	}
	if len(f.unguarded) > 0 {
		fmt.Fprintf(c.OutOrStdout(), "%s: "+askedInVain+": %s\n", file, "the file", strings.Join(f.unguarded, ", "))
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
	switch len(given) {
	case 0:
		fmt.Fprintf(out, "%s: nothing is wrong with it\n", file)
	case 1:
		fmt.Fprintf(out, "%s: 1 setting, and it is sound\n", file)
	default:
		fmt.Fprintf(out, "%s: %d settings, all of them sound\n", file, len(given))
	}
	return nil
}

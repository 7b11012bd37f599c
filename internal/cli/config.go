package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
)

func configCommand() *cobra.Command {
	var check string
	c := &cobra.Command{
		Use:   "config",
		Short: "Print every setting with its meaning and its default, or check a file",
		Long: "Prints a settings file for --config of the server commands: what each setting means, its unit and\n" +
			"what it may be, and its default.\n" +
			"With --check it says what is wrong with a file.",
		Args: none,
	}
	c.Flags().StringVar(&check, "check", "", "`FILE` of settings to check")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if check == "" {
			_, err := fmt.Fprint(c.OutOrStdout(), config.Describe())
			return err
		}
		text, err := os.ReadFile(check)
		if err != nil {
			return err
		}
		count, err := config.Check(text)
		if err != nil {
			return fmt.Errorf("%s: %w", check, err)
		}
		settings := "settings, all of them sound"
		if count == 1 {
			settings = "setting, and it is sound"
		}
		fmt.Fprintf(c.OutOrStdout(), "%s: %d %s\n", check, count, settings)
		return nil
	}
	return c
}

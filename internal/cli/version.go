package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/node"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the format of the data folder",
		Args:  none,
		Run:   func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), versionLine()) },
	}
}

func versionLine() string {
	return fmt.Sprintf("bolide %s, data format %d, %s %s/%s\n", node.Version(), node.DataFormat, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

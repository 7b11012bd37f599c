// Package cli is the command line: one file per subcommand.
//
// Invariants: a command that fails prints one line to standard error and ends with a code
// that is not zero; results go to standard output, progress to standard error.
//
// Neighbours: cmd/bolide hands it the arguments; node runs the servers; bench measures.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command that args name and returns the process's exit code.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "bolide:", err)
		return 1
	}
	return 0
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "bolide",
		Short:         "Apache RocketMQ 5 as one binary",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(benchCommand())
	return root
}

// Package cli is the command line: one file per subcommand.
//
// Invariants: a command that fails says why in one line on standard error and the process
// exits with code 1; nothing but results goes to standard output; commands that talk to
// servers do so over the protocol only, so they work with any RocketMQ-compatible server.
//
// Neighbours: cmd/bolide calls Main; server commands start a node, the others are clients
// through wire/transport.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// commands are the subcommands, in the order of the help text.
var commands = []func() *cobra.Command{
	serverCommand,
	namesrvCommand,
	brokerCommand,
	proxyCommand,
	adminCommand,
	produceCommand,
	consumeCommand,
	benchCommand,
	versionCommand,
}

// Main runs the command that args names and returns the process's exit code.
func Main(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(errs, "bolide:", oneLine(err))
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "bolide",
		Short:         "Apache RocketMQ 5 as one binary: name server, broker and proxy",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, c := range commands {
		root.AddCommand(c())
	}
	return root
}

// folder is a command that only holds others: alone it shows its help, and a word that it
// does not know is an error.
func folder(use, short string, inside ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(inside...)
	return c
}

// oneLine is the error's text without line breaks: what fails is read by scripts and in
// container logs, where the last line has to tell all.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// interactive reports whether f is a terminal rather than a pipe or a file.
func interactive(f any) bool {
	file, ok := f.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

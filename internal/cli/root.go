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
	"errors"
	"fmt"
	"io"
	"net"
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
	configCommand,
	versionCommand,
}

// Help lists commands and flags in the order in which they are added, the common ones first.
func init() { cobra.EnableCommandSorting = false }

// Main runs the command that args names and returns the process's exit code.
func Main(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	if c, err := root.ExecuteContextC(ctx); err != nil {
		fmt.Fprintln(errs, "bolide:", oneLine(plain(err))+origin(c, err))
		return 1
	}
	return 0
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "bolide",
		Short:         "Apache RocketMQ 5 as one binary: name server, broker and proxy",
		Version:       versionLine(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          knownCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },

		PersistentPreRunE: sayWhere,

		Example: "  bolide server\n" +
			"  bolide admin topic create orders\n" +
			"  bolide produce orders --body hello\n" +
			"  bolide consume orders --group warehouse --max 1",
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(flagError)
	for _, c := range commands {
		root.AddCommand(c())
	}
	inGivenOrder(root)
	return root
}

// inGivenOrder makes the help of c and of what is below it list flags as they were added.
func inGivenOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	c.PersistentFlags().SortFlags = false
	c.LocalFlags().SortFlags = false
	c.InheritedFlags().SortFlags = false
	for _, below := range c.Commands() {
		inGivenOrder(below)
	}
}

// knownCommand refuses words after a command that only holds others.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := c.CommandPath() + " --help lists the commands"
	c.SuggestionsMinimumDistance = 2
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("unknown command %q for %q; %s", args[0], c.CommandPath(), hint)
}

// one takes exactly one argument and names it when it is missing.
func one(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s needs a %s: %s", c.CommandPath(), what, c.UseLine())
		case len(args) > 1:
			return fmt.Errorf("%s takes one %s, not %d words: %s", c.CommandPath(), what, len(args), c.UseLine())
		}
		return nil
	}
}

// none takes no arguments.
func none(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, not %q: %s", c.CommandPath(), args[0], c.UseLine())
	}
	return nil
}

// folder is a command that only holds others: alone it shows its help, and a word that it
// does not know is an error.
func folder(use, short string, inside ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  knownCommand,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(inside...)
	return c
}

// plain says what the commonest failures of a client command mean to who typed it.
func plain(err error) error {
	var op *net.OpError
	var silent silence
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, syscall.ECONNREFUSED) && errors.As(err, &op) && op.Addr != nil:
		return fmt.Errorf("nothing listens on %s (connection refused): is the server running, and is the address right?", op.Addr)
	case errors.Is(err, context.DeadlineExceeded) && errors.As(err, &silent):
		return fmt.Errorf("no answer from %s within %s", silent.addr, callTimeout)
	}
	return err
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

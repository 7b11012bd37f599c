// Command bolide is the whole broker in one binary.
package main

import (
	"context"
	"os"

	"github.com/bolidemq/bolide/internal/cli"
)

func main() {
	os.Exit(cli.Main(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

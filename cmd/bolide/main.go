// Command bolide is the whole broker in one binary.
package main

import (
	"os"

	"github.com/bolidemq/bolide/internal/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdout, os.Stderr)) }

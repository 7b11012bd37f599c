// Command bolide is the whole broker in one binary.
package main

func main() {}

package node

import "runtime/debug"

// version is set by release builds with -ldflags -X.
var version = ""

const module = "github.com/bolidemq/bolide"

// Version is that of this program, or of this module in another one.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "development"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return "development"
}

package filter

import "fmt"

// compileSQL92 says that this server has no SQL92 filters, rather than let through what
// was not asked for.
func compileSQL92(text string) (*Expression, error) {
	return nil, fmt.Errorf("%w: this version filters by tags only, not by SQL92 (%.64q)", ErrUnsupported, text)
}

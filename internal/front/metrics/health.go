package metrics

import (
	"net/http"
	"strings"
)

// health answers 200 as long as the process works, while it starts and stops too: only what
// has failed for good is better started anew.
func (o *Options) health(w http.ResponseWriter, _ *http.Request) {
	if o.Failed() {
		http.Error(w, "something inside has failed; the log says what", http.StatusServiceUnavailable)
		return
	}
	say(w, "healthy")
}

// ready answers 200 when every listener serves and messages are taken.
func (o *Options) ready(w http.ResponseWriter, _ *http.Request) {
	if troubles := o.Troubles(); len(troubles) > 0 {
		http.Error(w, strings.Join(troubles, "\n"), http.StatusServiceUnavailable)
		return
	}
	say(w, "ready")
}

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	// An error here is a reader that has gone.
	_, _ = w.Write([]byte(text + "\n"))
}

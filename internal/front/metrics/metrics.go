// Package metrics is the page that Prometheus reads: what a broker's tables say at the
// moment of the question, under the names of Apache RocketMQ's exporter. Beside it are the
// pages for who starts servers and sends others to them: whether this one lives, and whether
// it is ready.
//
// Invariants: nothing is counted or kept for this page while nobody asks for it; a group's
// figures are exact: each message of its topics is ready, blocked, in flight or done, and
// its lag is the first three; where it commits offsets that is what the administration
// requests answer, to the message, and where it acknowledges one by one those know only the
// first that is not done; all samples of a name follow each other, each set of labels once.
//
// Neighbours: node listens and serves the Handler; the figures are those of broker/admin,
// broker/pop, broker/clients and storage.
package metrics

import (
	"errors"
	"net/http"

	"github.com/bolidemq/bolide/internal/broker"
)

// Options are what the pages ask.
type Options struct {
	// Figures makes the page for Prometheus; ErrNone says that there is no broker to ask now.
	// nil: there never is one, and no such page.
	Figures func() ([]byte, error)
	// Failed reports whether something inside has failed that can't be repaired.
	Failed func() bool
	// Troubles are why nobody should be sent here now, a line each.
	Troubles func() []string
}

// ErrNone says that there is no broker, since it is being started or stopped.
var ErrNone = errors.New("the broker is being started or stopped")

// Handler answers GET /metrics, /health and /ready.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", o.health)
	mux.HandleFunc("GET /ready", o.ready)
	if o.Figures == nil {
		return mux
	}
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		page, err := o.Figures()
		switch {
		case errors.Is(err, ErrNone):
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		case err != nil:
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		// An error here is a reader that has gone.
		_, _ = w.Write(page)
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/metrics", http.StatusFound)
	})
	return mux
}

// Page is the whole page in Prometheus' text format.
func Page(b *broker.Broker) ([]byte, error) {
	p := &page{common: labels{"cluster", b.Cluster, "node_type", "broker", "node_id", b.Name}}
	p.broker(b)
	p.traffic(b)
	err := errors.Join(p.timers(b), p.groups(b))
	p.transactions(b)
	p.connections(b)
	return p.text, err
}

// Package metrics is the page that Prometheus reads: what a broker's tables say at the
// moment of the question, under the names of Apache RocketMQ's exporter.
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

// Handler answers GET /metrics with the page of a broker, and says where it is otherwise.
func Handler(b *broker.Broker) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		page, err := Page(b)
		if err != nil {
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

package pop

import (
	"fmt"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/receipt"
)

func TestPlan(t *testing.T) {
	retry := func(v1, v2 int32) (r reach) {
		r[receipt.FlagRetryV1], r[receipt.FlagRetryV2] = v1, v2
		return r
	}
	for _, c := range []struct {
		name string
		in   planInput
		want string // flag.queue, ? = only if nothing was found
	}{
		{"high ids first", planInput{queue: -1, queues: 3, counter: 1, probability: 20, ascending: true}, "0.0 0.2 0.1"},
		{"rotates with each request", planInput{queue: -1, queues: 3, counter: 2, probability: 20, ascending: true}, "0.1 0.0 0.2"},
		{"low ids first", planInput{queue: -1, queues: 3, counter: 3, probability: 20}, "0.0 0.1 0.2"},
		{"retry topics last", planInput{queue: -1, queues: 1, retryQueues: retry(1, 1), counter: 1, probability: 20}, "0.0 1.0 2.0"},
		{"every fifth first", planInput{queue: -1, queues: 1, retryQueues: retry(1, 1), counter: 5, probability: 20}, "1.0 2.0 0.0"},
		{"the very first, too", planInput{queue: -1, queues: 1, retryQueues: retry(0, 1), counter: 0, probability: 20}, "2.0 0.0"},
		{"100 / 30 is 3", planInput{queue: -1, queues: 1, retryQueues: retry(1, 0), counter: 3, probability: 30}, "1.0 0.0"},
		{"over 50 is always", planInput{queue: -1, queues: 1, retryQueues: retry(1, 0), counter: 7, probability: 51}, "1.0 0.0"},
		{"never", planInput{queue: -1, queues: 1, retryQueues: retry(1, 0), counter: 0, probability: 0}, "0.0 1.0"},
		{"one queue", planInput{queue: 2, queues: 4, counter: 1, probability: 20}, "0.2"},
		{"one queue, retries only if it is empty", planInput{queue: 2, queues: 4, retryQueues: retry(1, 0), counter: 1, probability: 20}, "0.2 1.0?"},
		{"one queue, its turn of retries", planInput{queue: 2, queues: 4, retryQueues: retry(1, 0), counter: 10, probability: 20}, "1.0 0.2"},
		{"in order, never retries", planInput{queue: -1, queues: 2, retryQueues: retry(1, 1), counter: 5, probability: 20, ordered: true, ascending: true}, "0.0 0.1"},
		{"priorities do not rotate", planInput{queue: -1, queues: 3, counter: 7, priority: true, factor: 100, probability: 20, ascending: true}, "0.2 0.1 0.0"},
		{"priorities have their own probability", planInput{queue: -1, queues: 1, retryQueues: retry(1, 0), counter: 5, priority: true, factor: 100, probability: 20}, "0.0 1.0"},
		{"a factor leaves some requests for the others", planInput{queue: -1, queues: 3, counter: 60, priority: true, factor: 50, probability: 0, ascending: true}, "0.2 0.1 0.0"},
		{"a factor, priority turn", planInput{queue: -1, queues: 3, counter: 149, priority: true, factor: 50, probability: 0, ascending: true}, "0.2 0.1 0.0"},
		{"a factor, other turn", planInput{queue: -1, queues: 3, counter: 151, priority: true, factor: 50, probability: 0, ascending: true}, "0.0 0.2 0.1"},
		{"several retry queues rotate, too", planInput{queue: -1, queues: 1, retryQueues: retry(2, 0), counter: 1, probability: 20}, "0.0 1.1 1.0"},
	} {
		var got []string
		for _, s := range plan(nil, c.in) {
			text := fmt.Sprintf("%d.%d", s.flag, s.queue)
			if s.last {
				text += "?"
			}
			got = append(got, text)
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s: got %s, want %s", c.name, g, c.want)
		}
	}
}

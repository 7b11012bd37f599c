package txn_test

import (
	"testing"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
)

// TestTranscripts is the specification.
func TestTranscripts(t *testing.T) { brokertest.Run(t, "testdata/transcripts") }

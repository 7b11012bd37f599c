package timer_test

import (
	"testing"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
)

func TestTranscripts(t *testing.T) { brokertest.Run(t, "testdata") }

package txn

import (
	"testing"
	"testing/synctest"
)

// Under steady load there is always a decision on its way; the loop waits for those that it
// found, not for those that came after.
func TestSettleDoesNotWaitForLaterDecisions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := &Txn{moved: make(chan struct{}, 1)}
		x.clear()
		x.mu.flying[1] = &flight{to: Committed}
		settled := make(chan error, 1)
		go func() { settled <- x.settle(t.Context()) }()
		synctest.Wait()
		select {
		case <-settled:
			t.Fatal("it did not wait for the decision that was on its way")
		default:
		}
		x.mu.Lock()
		x.landLocked(1, Committed)
		x.mu.flying[1] = &flight{to: RolledBack} // of the same half message, and of another
		x.mu.flying[2] = &flight{to: Committed}
		x.mu.Unlock()
		x.told()
		synctest.Wait()
		select {
		case err := <-settled:
			if err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatal("it waits for decisions that came later")
		}
	})
}

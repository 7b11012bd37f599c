package register

import "testing"

// The registration as a whole is tested against a real name server, in
// front/namesrvrpc/register_test.go.

func TestAnnouncementIsToldOnce(t *testing.T) {
	for _, waiting := range []int{1, 3} {
		told := 0
		a := &announcement{done: func() { told++ }, waiting: waiting}
		for i := range waiting {
			if told != 0 {
				t.Fatalf("told after %d of %d", i, waiting)
			}
			a.told()
		}
		a.finish(true) // the limit, late
		if told != 1 {
			t.Fatalf("told %d times", told)
		}
	}
	told := 0
	a := &announcement{done: func() { told++ }, waiting: 2}
	a.finish(true) // the limit
	a.told()
	a.told()
	if told != 1 {
		t.Fatalf("told %d times", told)
	}
}

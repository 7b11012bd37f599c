package longpoll

// list is a doubly linked list of waiters whose nodes lie in the waiters themselves, so
// that parking allocates no list cells and leaving is O(1) from any place.
type list struct {
	first, last *node
	n           int
}

type node struct {
	w          *Waiter
	list       *list
	prev, next *node
}

func (l *list) push(w *Waiter, n *node) {
	*n = node{w: w, list: l, prev: l.last}
	if l.last == nil {
		l.first = n
	} else {
		l.last.next = n
	}
	l.last = n
	l.n++
}

func (l *list) remove(n *node) {
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	*n = node{}
	l.n--
}

// deadlineHeap is a binary heap with the earliest deadline first; waiters know their
// position in it.
type deadlineHeap []*Waiter

func (h *deadlineHeap) push(w *Waiter) {
	*h = append(*h, w)
	w.heapPos = len(*h) - 1
	h.up(w.heapPos)
}

func (h *deadlineHeap) remove(w *Waiter) {
	i, last := w.heapPos, len(*h)-1
	moved := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	w.heapPos = -1
	if moved == w {
		return
	}
	(*h)[i] = moved
	moved.heapPos = i
	h.down(i)
	h.up(moved.heapPos)
}

func (h deadlineHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].Deadline.Before(h[parent].Deadline) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h deadlineHeap) down(i int) {
	for {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child].Deadline.Before(h[least].Deadline) {
				least = child
			}
		}
		if least == i {
			return
		}
		h.swap(i, least)
		i = least
	}
}

func (h deadlineHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].heapPos, h[j].heapPos = i, j
}

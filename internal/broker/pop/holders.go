package pop

import "sync"

// holders numbers the client ids that hold deliveries, so that a record costs four bytes
// for its holder. Numbers are counted and reused.
type holders struct {
	mu    sync.Mutex
	ids   map[string]uint32
	names []holderName // by number; 0 is "nobody"
	free  []uint32
}

type holderName struct {
	name string
	uses int
}

func (h *holders) init() {
	h.ids = make(map[string]uint32)
	h.names = make([]holderName, 1)
}

// use returns the number of name and counts one more user of it.
func (h *holders) use(name string) uint32 {
	if name == "" {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id, ok := h.ids[name]
	if !ok {
		if n := len(h.free); n > 0 {
			id, h.free = h.free[n-1], h.free[:n-1]
		} else {
			id = uint32(len(h.names))
			h.names = append(h.names, holderName{})
		}
		h.ids[name] = id
		h.names[id] = holderName{name: name}
	}
	h.names[id].uses++
	return id
}

// again counts one more user of a number in use.
func (h *holders) again(id uint32) uint32 {
	if id != 0 {
		h.mu.Lock()
		h.names[id].uses++
		h.mu.Unlock()
	}
	return id
}

func (h *holders) drop(id uint32) {
	if id == 0 {
		return
	}
	h.mu.Lock()
	n := &h.names[id]
	if n.uses--; n.uses == 0 {
		delete(h.ids, n.name)
		*n = holderName{}
		h.free = append(h.free, id)
	}
	h.mu.Unlock()
}

func (h *holders) name(id uint32) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.names[id].name
}

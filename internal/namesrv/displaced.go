package namesrv

// place is what one broker process has in the routes.
type place struct {
	broker string
	id     int64
}

// displace notes that a registration takes the place of a process that is still connected. It
// says again that it is there only at its next period, half a minute later; when the other one
// goes meanwhile, nobody would have the place.
func (r *routes) displace(old *live, g *Registration) {
	if old != nil && old.conn != nil && old.conn != g.Conn {
		r.aside[place{g.Broker, g.ID}] = old.conn
	}
}

// comeback is the connections of those that were displaced from places that nobody has any
// more. Whoever registered on one that is closed registers again at once.
func (r *routes) comeback() (conns []any) {
	for p, conn := range r.aside {
		if b := r.brokers[p.broker]; b == nil || b.Addresses[p.id] == "" {
			conns = append(conns, conn)
			delete(r.aside, p)
		}
	}
	return conns
}

// hungUp forgets who was displaced and is gone.
func (r *routes) hungUp(conn any) {
	for p, c := range r.aside {
		if c == conn {
			delete(r.aside, p)
		}
	}
}

// close closes connections that brokers have registered on. Call it without the lock: the end of a
// connection comes back here.
func (t *Table) close(conns []any) {
	if t.o.Expired == nil {
		return
	}
	for _, conn := range conns {
		t.o.Expired(conn)
	}
}

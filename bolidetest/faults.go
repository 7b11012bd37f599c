package bolidetest

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Disconnect cuts all connections that are open now, as a network does that fails. What was
// asked over them may be done or not, and is not answered. Clients may come again at once.
func (s *Server) Disconnect() {
	s.t.Helper()
	n, done := s.running("Disconnect")
	defer done()
	n.Disconnect()
}

// FillDisk lets the server find its disk full, until FreeDisk: sends are refused, and so is
// whatever else would have to be stored, such as acknowledgements, offsets, new topics and groups.
// Remoting clients get code 14, gRPC clients TOO_MANY_REQUESTS, which some try again by themselves. Messages
// that are there are received. It holds when FillDisk returns, and over a Restart.
func (s *Server) FillDisk() {
	s.t.Helper()
	s.setFull("FillDisk", true)
}

// FreeDisk gives the server room on its disk again; everything is stored again when it returns.
func (s *Server) FreeDisk() {
	s.t.Helper()
	s.setFull("FreeDisk", false)
}

// setFull returns when the server, which looks for room now and then, has seen it.
func (s *Server) setFull(what string, full bool) {
	s.t.Helper()
	n, done := s.running(what)
	defer done()
	s.disk.full.Store(full)
	for deadline := time.Now().Add(patience); ; time.Sleep(fullLook) {
		troubles := n.Troubles()
		if full == (len(troubles) > 0) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("bolidetest: %s: the server has not seen it; its troubles: %q", what, strings.Join(troubles, ", "))
		}
	}
}

// fullLook is how long setFull waits between two looks.
const fullLook = 5 * time.Millisecond

// nearlyNothing is so little room that nothing is stored any more, and enough for a stop to end
// well: without it the state database would stay open for the process.
const nearlyNothing = 3 << 19

// disk is the system's, and says that it is full as long as a test wants that. It says so to
// the state database alone, which then has everything refused; to who deletes the oldest log
// files on a disk that is nearly full, it tells the truth.
type disk struct {
	vfs.FS
	full atomic.Bool
}

// GetDiskUsage tells how much room there is for a folder.
func (d *disk) GetDiskUsage(path string) (vfs.DiskUsage, error) {
	if d.full.Load() && d.PathBase(path) == "state" {
		return vfs.DiskUsage{AvailBytes: nearlyNothing}, nil
	}
	return d.FS.GetDiskUsage(path)
}

// Unwrap returns the system's.
func (d *disk) Unwrap() vfs.FS { return d.FS }

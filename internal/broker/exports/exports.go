// Package exports is the files in which Apache RocketMQ keeps a broker's tables, written
// so that its broker can open a store that Bolide has written, and read when it has.
//
// Invariants: the state database decides. Each file is written at most every 5 s, less often
// where that takes long, and at a clean stop, by a temporary file that is synced and renamed,
// with the last good text kept beside it as .bak; none waits for another one's pause. The
// SHA-256 of a text is durable in the state database before the text is in its file, so at
// start a file whose sum is known is our own, however old and whatever happened, and is
// ignored. One that is not known and can be read was written by another server or a person,
// and replaces its table. One that can't be read (half, empty, zeroes) never stops the start.
//
// Neighbours: topic, group, offset and timer make and take the texts; broker builds this
// from them and asks which were replaced, because that says that another server was here.
package exports

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// File is one table's file.
type File struct {
	Name   string                  // topics.json
	Export func() ([]byte, error)  // makes the text
	Import func(text []byte) error // replaces the table; an error leaves it as it was. nil: nobody wants what others say
}

// Options is what the exports need. FS, Dir and State are required.
type Options struct {
	FS    vfs.FS
	Dir   string // the folder of the files
	State *state.DB
	Every time.Duration // least time between two writes of a file; 0 = 5 s
	Log   *slog.Logger
}

// Exports is the files of one broker.
type Exports struct {
	o     Options
	files []File
	// Replaced names the files that replaced their tables at start.
	replaced []string
	writing  sync.Mutex // held while files are written
	mu       struct {
		sync.Mutex
		changed map[string]bool
		rests   map[string]time.Time // until when a file that was written is left alone
	}
	wake chan struct{}
}

// knownSums is how many texts of each file are remembered: the file, its .bak, and those
// whose writing a crash has cut short.
const knownSums = 8

// timesAsLong is how many times as long as writing a file took it is not written again, up to
// the longest time: the offsets in a hundred thousand lite topics are megabytes.
const (
	timesAsLong = 100
	longest     = time.Minute
)

// maxFile is more than any table of a broker that works.
const maxFile = 1 << 30

// Open reads the files and replaces the tables of those that another server has written.
// Call it when the tables are open and before they change.
func Open(o Options, files ...File) (*Exports, error) {
	if o.Every == 0 {
		o.Every = 5 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Exports{o: o, files: files, wake: make(chan struct{}, 1)}
	e.mu.changed, e.mu.rests = make(map[string]bool), make(map[string]time.Time)
	if err := o.FS.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("create %s: %w", o.Dir, err)
	}
	for _, f := range files {
		if err := e.load(f); err != nil {
			return nil, err
		}
		e.Changed(f.Name) // what is not there, or is not what we have, is written soon
	}
	return e, nil
}

// Replaced names the files that replaced their tables at start.
func (e *Exports) Replaced() []string { return e.replaced }

// WasReplaced tells whether the file of this name replaced its table at start.
func (e *Exports) WasReplaced(name string) bool {
	for _, n := range e.replaced {
		if n == name {
			return true
		}
	}
	return false
}

// load decides what a file on disk means.
func (e *Exports) load(f File) error {
	if f.Import == nil {
		return nil
	}
	known, err := e.sums(f.Name)
	if err != nil {
		return err
	}
	for _, name := range []string{f.Name, f.Name + ".bak"} {
		text, err := e.read(name)
		if err != nil {
			e.o.Log.Warn("a table's file can not be read and is passed over", "file", name, "err", err)
			continue
		}
		if text == nil {
			continue
		}
		if containsSum(known, sha256.Sum256(text)) {
			return nil // our own
		}
		if err := e.replaceTable(f, text); err != nil {
			e.o.Log.Warn("a table's file is damaged and is passed over", "file", name, "bytes", len(text), "err", err)
			continue
		}
		// Only now: a crash before this point takes the file once more, and nothing has
		// changed since.
		if err := e.remember(f.Name, text); err != nil {
			return err
		}
		e.replaced = append(e.replaced, f.Name)
		e.o.Log.Info("a table was replaced by its file in config/, which this state database has not written", "file", name)
		return nil
	}
	return nil
}

// replaceTable imports a text. A file that is empty or holds only zeroes is what a power cut
// leaves, not an empty table.
func (e *Exports) replaceTable(f File, text []byte) error {
	if len(bytes.Trim(text, " \t\r\n\x00")) == 0 {
		return errors.New("it is empty")
	}
	return f.Import(text)
}

func (e *Exports) read(name string) ([]byte, error) {
	file, err := e.o.FS.Open(e.o.FS.PathJoin(e.o.Dir, name))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	text := bytes.NewBuffer([]byte{})
	if info, err := file.Stat(); err == nil {
		text.Grow(int(min(info.Size(), maxFile)) + bytes.MinRead) // megabytes are read in one piece
	}
	_, err = text.ReadFrom(io.LimitReader(file, maxFile))
	return text.Bytes(), errors.Join(err, file.Close())
}

// Changed notes that a file's table has changed; it does not block.
func (e *Exports) Changed(name string) {
	e.mu.Lock()
	known := e.mu.changed[name]
	e.mu.changed[name] = true
	e.mu.Unlock()
	if known {
		return // Run has its time
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// Run writes files some time after their tables have changed, until ctx ends, and once
// more then. A file that can't be written is tried again; the server goes on without it.
func (e *Exports) Run(ctx context.Context) error {
	next := time.NewTimer(longest)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			for _, f := range e.files {
				e.Changed(f.Name)
			}
			return errors.Join(ctx.Err(), e.Flush())
		case <-e.wake:
		case <-next.C:
		}
		if err := e.flush(false); err != nil {
			e.o.Log.Error("a table's file could not be written", "err", err)
		}
		if pause, some := e.pause(); some {
			next.Reset(pause)
		}
	}
}

// pause is how long it is until a file that has changed may be written, if one has.
func (e *Exports) pause() (least time.Duration, some bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	least = longest
	for _, f := range e.files { // what is none of them is never written
		if e.mu.changed[f.Name] {
			least, some = min(least, time.Until(e.mu.rests[f.Name])), true
		}
	}
	return least, some
}

// Flush writes the files of all tables that have changed.
func (e *Exports) Flush() error { return e.flush(true) }

// flush writes the files of tables that have changed, or, without all, of those that have not
// been written just now.
func (e *Exports) flush(all bool) error {
	e.writing.Lock()
	defer e.writing.Unlock()
	var errs []error
	for _, f := range e.files {
		if !e.take(f.Name, all) {
			continue
		}
		began := time.Now()
		if err := e.write(f); err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", f.Name, err))
			e.Changed(f.Name)
		}
		e.mu.Lock()
		e.mu.rests[f.Name] = time.Now().Add(max(e.o.Every, min(timesAsLong*time.Since(began), longest)))
		e.mu.Unlock()
	}
	return errors.Join(errs...)
}

// take reports whether a file is to be written now, and has it so.
func (e *Exports) take(name string, all bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.mu.changed[name] || !all && time.Now().Before(e.mu.rests[name]) {
		return false
	}
	delete(e.mu.changed, name)
	return true
}

// write replaces one file: the sum first, then the text, then the name.
func (e *Exports) write(f File) error {
	text, err := f.Export()
	if err != nil {
		return err
	}
	old, err := e.read(f.Name)
	if err != nil {
		e.o.Log.Warn("a table's file can not be read and is replaced", "file", f.Name, "err", err)
		old = nil
	}
	if old != nil && bytes.Equal(old, text) {
		return e.remember(f.Name, text)
	}
	if err := e.remember(f.Name, text); err != nil {
		return err
	}
	if len(bytes.Trim(old, " \t\r\n\x00")) > 0 {
		if err := e.replace(f.Name+".bak", old); err != nil {
			return err
		}
	}
	return e.replace(f.Name, text)
}

// replace puts a text under a name so that a crash leaves the old or the new one.
func (e *Exports) replace(name string, text []byte) error {
	disk, path := e.o.FS, e.o.FS.PathJoin(e.o.Dir, name)
	temporary := path + ".tmp"
	file, err := disk.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err := disk.Rename(temporary, path); err != nil {
		return err
	}
	dir, err := disk.OpenDir(e.o.Dir)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func (e *Exports) sums(name string) ([]byte, error) {
	known, _, err := e.o.State.Get(state.Exports, []byte(name))
	if err != nil {
		return nil, fmt.Errorf("read the sums of %s: %w", name, err)
	}
	return known[:len(known)/sha256.Size*sha256.Size], nil
}

func containsSum(known []byte, sum [sha256.Size]byte) bool {
	for ; len(known) >= sha256.Size; known = known[sha256.Size:] {
		if bytes.Equal(known[:sha256.Size], sum[:]) {
			return true
		}
	}
	return false
}

// remember makes a text's sum known, durably: the newest first.
func (e *Exports) remember(name string, text []byte) error {
	known, err := e.sums(name)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	if len(known) >= sha256.Size && bytes.Equal(known[:sha256.Size], sum[:]) {
		return nil
	}
	next := append(append([]byte{}, sum[:]...), known...)
	b := e.o.State.NewBatch()
	b.Put(state.Exports, []byte(name), next[:min(len(next), knownSums*sha256.Size)])
	if err := e.o.State.Commit(b); err != nil {
		return fmt.Errorf("store the sum of %s: %w", name, err)
	}
	return e.o.State.Sync()
}

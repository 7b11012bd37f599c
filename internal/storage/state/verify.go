package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrDamaged says that the database's files can't be what it left. The error tells the file
// and what to do.
var ErrDamaged = errors.New("the state database is damaged")

// verify looks at the files before Pebble does, for what Pebble would pass over in silence:
// it makes a new database where the file that names the manifest is missing; it takes the
// first unsound record of the manifest or of the newest log for the end, whatever follows.
//
// A log that ends in the middle of a record is what a crash leaves. One with sound records
// behind an unsound one is damaged, or had not been synced when the power went: what follows
// is given up, since of two changes the second must not be kept without the first (P1), and
// said so.
func (d *DB) verify() error {
	fs, dir := d.opts.FS, d.opts.Dir
	names, err := fs.List(dir)
	if oserror.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var manifest, written string
	newest := int64(-1)
	for _, name := range names {
		if _, of, ok := strings.Cut(name, "MANIFEST-"); ok && strings.HasPrefix(name, "marker.manifest.") {
			manifest = "MANIFEST-" + of // of several, which a crash can leave, the last counts
		}
		if n, ok := logNumber(name); ok {
			newest, written = max(newest, n), name
		} else if strings.HasSuffix(name, ".sst") {
			written = name
		}
	}
	if manifest == "" {
		if written == "" {
			return nil // new
		}
		return d.damaged("marker.manifest.*", fmt.Errorf("the file that names the manifest is missing, and %s is there", written))
	}
	if err := d.verifyManifest(manifest); err != nil {
		return err
	}
	if newest < 0 {
		return nil
	}
	return d.verifyLog(fmt.Sprintf("%06d.log", newest), uint32(newest))
}

func (d *DB) verifyManifest(name string) error {
	b, err := readAll(d.opts.FS, d.opts.FS.PathJoin(d.opts.Dir, name))
	if err != nil {
		return d.damaged(name, err)
	}
	if r := readRecords(b, 0); r.damaged() || r.end == 0 {
		return d.damaged(name, fmt.Errorf("unsound at byte %d of %d", r.end, len(b)))
	}
	return nil
}

func (d *DB) verifyLog(name string, number uint32) error {
	fs := d.opts.FS
	b, err := readAll(fs, fs.PathJoin(d.opts.Dir, name))
	if err != nil {
		return err
	}
	r := readRecords(b, number)
	if !r.damaged() {
		return nil
	}
	kept := fs.PathJoin(d.opts.Dir, name+".damaged")
	if err := writeAll(fs, kept, b); err != nil {
		kept = "nowhere: " + err.Error()
	}
	why := "a record in its middle is unsound"
	if !r.later {
		why = "its last record is unsound"
	}
	d.opts.Log.Error("the state's log is damaged; what was stored behind that is lost unless the files in config/ have it, and messages "+
		"may come again; if the power went under asynchronous flush, it is what was not synced yet, else restore the folder from a copy",
		"file", fs.PathJoin(d.opts.Dir, name), "why", why, "at", r.end, "lost", r.used-r.end, "copy", kept)
	return nil
}

// damaged is ErrDamaged with what to do, in one line.
func (d *DB) damaged(file string, why error) error {
	return fmt.Errorf("%w: %s (%s). Restore the data folder from a copy, or move %s away and start again: topics, groups, offsets "+
		"and delays are then read from the files in config/, which are at most 5 s older than the last stop; messages that "+
		"were in flight or acknowledged out of order come again", ErrDamaged, d.opts.FS.PathJoin(d.opts.Dir, file), oneLine(why), d.opts.Dir)
}

var stateFile = regexp.MustCompile(`(?:MANIFEST|OPTIONS)-\d+|\d{6}\.(?:log|sst)|marker\.[\w.-]+`)

var tableNumber = regexp.MustCompile(`\b\d{6}\b`)

// explain makes Pebble's error one of ours, where it speaks of damage.
func (d *DB) explain(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrDamaged), errors.Is(err, ErrFull), vfs.IsNoSpaceError(err):
		return err
	case errors.Is(err, pebble.ErrDBNotPristine):
		return d.damaged("marker.format-version.*", errors.New("the file that names the format is missing"))
	case pebble.IsCorruptionError(err), oserror.IsNotExist(err), strings.Contains(err.Error(), "OPTIONS"),
		strings.Contains(err.Error(), "size mismatch"), strings.Contains(err.Error(), "corrupt"):
		file := stateFile.FindString(err.Error())
		if table := tableNumber.FindString(err.Error()); file == "" && table != "" {
			file = table + ".sst"
		} else if file == "" && strings.Contains(err.Error(), "key=value") {
			file = "OPTIONS-*"
		}
		return d.damaged(file, err)
	}
	return err
}

func oneLine(err error) string {
	text, _ := strings.CutSuffix(err.Error(), " <corruption detail carrier>")
	return strings.Join(strings.Fields(text), " ")
}

func logNumber(name string) (int64, bool) {
	digits, ok := strings.CutSuffix(name, ".log")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	return n, err == nil
}

// records is what was found in a file of records.
type records struct {
	end    int  // of what is sound
	used   int  // behind the last byte that is not zero
	torn   bool // what follows is not sound
	later  bool // and has sound records behind it
	intact bool // or is a whole record by its length, and not by its checksum
}

func (r records) damaged() bool { return r.torn && (r.later || r.intact) }

const (
	recordBlock  = 32 << 10 // records are cut into chunks that cross no border of these
	chunkHeader  = 7        // checksum, length, kind
	loggedHeader = 11       // and the log's number, in logs
)

// readRecords reads LevelDB's record format, of a manifest (number 0) or of a log, whose
// file may have been another log's before.
func readRecords(b []byte, number uint32) (r records) {
	r.used = len(b)
	for r.used > 0 && b[r.used-1] == 0 {
		r.used--
	}
	for at := 0; ; {
		block := min(at/recordBlock*recordBlock+recordBlock, len(b))
		if block-at < chunkHeader || allZero(b[at:min(at+loggedHeader, block)]) && block-at < 19 {
			if at = block; at == len(b) {
				r.end = at
				return r
			}
			continue
		}
		if number > 0 && block-at >= loggedHeader && b[at+6] >= 5 && binary.LittleEndian.Uint32(b[at+7:]) == number+1 {
			r.end = at // the mark of an orderly end
			return r
		}
		n, sound := chunk(b[at:block], number)
		if sound {
			at += n
			continue
		}
		r.end, r.torn = at, true
		r.later = soundAfter(b, at, number)
		// A write that was cut off leaves zeroes, or the end of the file, or in a file that is
		// used again what was there before; a log's records are of many sizes, so that is rarely
		// told from damage, and taken for an ordinary end.
		r.intact = number == 0 && n > 0 && !allZero(b[max(at, at+n-8):at+n])
		return r
	}
}

// chunk returns the length that a chunk claims to have, 0 for one that can't be, and whether
// its checksum says so too.
func chunk(b []byte, number uint32) (n int, sound bool) {
	kind, header := b[6], chunkHeader
	if number > 0 {
		if header = loggedHeader; len(b) < header || kind < 5 || kind > 8 || binary.LittleEndian.Uint32(b[7:]) != number {
			return 0, false
		}
	} else if kind < 1 || kind > 4 {
		return 0, false
	}
	if n = header + int(binary.LittleEndian.Uint16(b[4:])); n > len(b) {
		return 0, false
	}
	c := crc32.Checksum(b[6:n], castagnoli)
	return n, (c>>15|c<<17)+0xa282ead8 == binary.LittleEndian.Uint32(b)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func soundAfter(b []byte, at int, number uint32) bool {
	for at++; at+chunkHeader < len(b); at++ {
		block := min(at/recordBlock*recordBlock+recordBlock, len(b))
		if block-at < chunkHeader {
			continue
		}
		if _, sound := chunk(b[at:block], number); sound {
			return true
		}
	}
	return false
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func readAll(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

func writeAll(fs vfs.FS, path string, b []byte) error {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

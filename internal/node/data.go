package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// DataFormat is the version of the data folder that this program writes.
const DataFormat = 1

const (
	formatFile   = "bolide-format"
	formatPrefix = "bolide data format "
)

// migrations[n] brings a folder of format n+1 to n+2.
var migrations []func(dir string) error

// dataFolder is the folder that this node has locked.
type dataFolder struct {
	dir  string
	lock *fileLock
	used bool // by a server of ours before
}

// openData makes the folder if need be, locks it and brings it to the current format.
func openData(dir string) (_ *dataFolder, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("data folder %s can't be made: it is a file", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("data folder %s can't be made: %w", dir, cause(err))
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	switch {
	case errors.Is(err, errLocked):
		return nil, fmt.Errorf("data folder %s is in use by another server (%w)", dir, err)
	case err != nil:
		return nil, fmt.Errorf("data folder %s can't be written: %w", dir, cause(err))
	}
	d := &dataFolder{dir: dir, lock: lock}
	if err := d.bringToFormat(DataFormat, migrations); err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *dataFolder) close() error { return d.lock.release() }

// bringToFormat refuses a newer folder and migrates an older one step by step; each step
// is recorded when it is done, so an interrupted migration goes on where it was.
func (d *dataFolder) bringToFormat(current int, migrations []func(dir string) error) error {
	format, err := readFormat(d.dir)
	if err != nil {
		return err
	}
	if format > current {
		return fmt.Errorf("data folder %s has format %d, this version of bolide knows formats up to %d: use a newer version", d.dir, format, current)
	}
	d.used = format > 0
	if format == 0 { // new, or a store of Apache RocketMQ
		return writeFormat(d.dir, current)
	}
	for ; format < current; format++ {
		if err := migrations[format-1](d.dir); err != nil {
			return fmt.Errorf("data folder %s can't be brought from format %d to %d: %w", d.dir, format, format+1, err)
		}
		if err := writeFormat(d.dir, format+1); err != nil {
			return err
		}
	}
	return nil
}

// missingState says what a start makes of a folder without its state database, which is not
// seen from what it serves; empty where all is there, or nothing ever was.
func (d *dataFolder) missingState() string {
	has := func(name string) bool {
		entries, err := os.ReadDir(filepath.Join(d.dir, name))
		return err == nil && len(entries) > 0
	}
	if !d.used || !has("commitlog") || has("state") {
		return ""
	}
	missing := "the state database is missing: " + filepath.Join(d.dir, "state") + " is not there, though this folder was used before. "
	for _, name := range []string{"topics.json", "topics.json.bak"} {
		if _, err := os.Stat(filepath.Join(d.dir, "config", name)); err == nil {
			return missing + "Topics, groups, consumer offsets and delays are taken from the files in config/, which are at most 5 s older than the last stop; " +
				"messages that were in flight or acknowledged out of order come again. If it was moved by mistake, stop the server and put it back"
		}
	}
	return missing + "Nor is config/topics.json: topics, groups and consumer offsets are gone, the messages are in the log and can't be reached. " +
		"Stop the server and put both back, or restore the folder from a copy"
}

// readFormat is the format of the folder, 0 where none is written.
func readFormat(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, formatFile))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("data folder %s can't be read: %w", dir, cause(err))
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(string(text)), formatPrefix)
	format, err := strconv.Atoi(number)
	if !ok || err != nil || format < 1 {
		return 0, fmt.Errorf("data folder %s: its file %s does not say %q and a number", dir, formatFile, formatPrefix)
	}
	return format, nil
}

func writeFormat(dir string, format int) error {
	err := writeFile(filepath.Join(dir, formatFile), fmt.Appendf(nil, "%s%d\n", formatPrefix, format), 0o644)
	if err != nil {
		return fmt.Errorf("data folder %s can't be written: %w", dir, cause(err))
	}
	return nil
}

// writeFile replaces a file as a whole: readers see the old one or the new one.
func writeFile(path string, data []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// cause is the system's own word for why, without the name of the call and the path that
// the sentence around it already has.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

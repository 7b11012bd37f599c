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
}

// openData makes the folder if need be, locks it and brings it to the current format.
func openData(dir string) (_ *dataFolder, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return nil, err
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

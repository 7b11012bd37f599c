package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/config"
)

// aboutUnknown is what to do about a setting that there is not.
const aboutUnknown = "bolide config lists the settings, and --apache-config takes files of Apache RocketMQ with settings that mean nothing here"

// readSettings reads the files of --apache-config, over them the file of --config, and over
// both what --set says. The start judges them.
func (f *serverFlags) readSettings(c *cobra.Command) error {
	f.Settings = nil
	for _, file := range f.apache {
		given, err := f.readApache(c, file)
		if err != nil {
			return err
		}
		f.Settings = append(given, f.Settings...) // the first file that says something is the one that counts
	}
	if f.config != "" {
		text, err := readFile("--config", f.config)
		if err != nil {
			return err
		}
		f.Settings = append(f.Settings, config.ReadSettings(f.config, text, config.Strict)...)
	}
	for _, s := range f.settings {
		key, value, ok := assignment(s)
		if !ok {
			return fmt.Errorf("--set %q is not KEY=VALUE", s)
		}
		f.Settings = append(f.Settings, config.Given{Name: key, Value: value, From: "--set"})
	}
	return nil
}

// assignment reads KEY=VALUE as a command line has it.
func assignment(text string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(text, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	return key, value, ok && key != ""
}

// explained adds what to do about a setting that there is not.
func explained(err error) error {
	if errors.Is(err, config.ErrUnknown) {
		return fmt.Errorf("%w; %s", err, aboutUnknown)
	}
	return err
}

// readAtMost reads a file to its end, which a pipe or a device may not have.
func readAtMost(path string, most int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("it has more than %d bytes: that is no settings file", most)
	}
	return text, err
}

// largestSettingsFile is more than any settings file is; what is larger is another file, or has
// no end.
const largestSettingsFile = 4 << 20

// readFile reads a file that a flag names, and says of one that can't be read what it is.
func readFile(flag, path string) ([]byte, error) {
	full := path
	if abs, err := filepath.Abs(path); err == nil {
		full = abs
	}
	refuse := func(why string) error { return fmt.Errorf("%s %s: %s", flag, full, why) }
	info, err := os.Stat(path)
	var text []byte
	switch {
	case err != nil:
	case info.IsDir():
		return nil, refuse("it is a folder, not a file")
	default:
		text, err = readAtMost(path, largestSettingsFile)
	}
	var system syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse("there is no such file")
	case errors.Is(err, fs.ErrPermission):
		return nil, refuse(fmt.Sprintf("it may not be read by the user of this process (%d)", os.Getuid()))
	case errors.As(err, &system):
		return nil, refuse(system.Error())
	case err != nil:
		return nil, refuse(err.Error())
	}
	return text, nil
}

// dataPath refuses paths of the data folder that only a shell could make sense of: taken as they are,
// they would be new and empty folders in the current one.
func dataPath(path string) error {
	first, _, _ := strings.Cut(filepath.ToSlash(path), "/")
	switch {
	case strings.TrimSpace(path) != path:
		return fmt.Errorf("%q begins or ends with a blank", path)
	case strings.HasPrefix(first, "~"), strings.Contains(path, "$"), strings.HasPrefix(path, "file:"):
		return fmt.Errorf("%q would be a folder of exactly this name, since nothing is put in for ~ and $ here: write the path out", path)
	}
	return nil
}

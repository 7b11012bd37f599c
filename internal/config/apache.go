package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// ApacheKind is whose configuration a file of Apache RocketMQ is.
type ApacheKind int

// The kinds of Apache's files.
const (
	ApacheBroker  ApacheKind = iota // broker.conf
	ApacheNamesrv                   // namesrv.conf
	ApacheProxy                     // rmq-proxy.json
)

// ReadApache reads a file of Apache RocketMQ as it is: properties, or the proxy's JSON. Which
// server it is for is told by its form and its settings, and where those say nothing, by its
// name. Of a setting that it has twice the last counts, and is the only one in what is given.
func ReadApache(file string, text []byte) (ApacheKind, []Given) {
	if trimmed := bytes.TrimSpace(bytes.TrimPrefix(text, []byte(utf8Mark))); bytes.HasPrefix(trimmed, []byte("{")) {
		return ApacheProxy, readJSON(file, text)
	}
	given := ReadSettings(file, text, AsApache)
	var last []Given
	for i, g := range given {
		if g.Wrong != nil || !slices.ContainsFunc(given[i+1:], func(later Given) bool { return later.Name == g.Name }) {
			g.Value = strings.TrimSpace(g.Value)
			last = append(last, g)
		}
	}
	return kindOf(file, last), last
}

func kindOf(file string, given []Given) ApacheKind {
	has := func(names ...string) bool {
		return slices.ContainsFunc(given, func(g Given) bool { return slices.Contains(names, g.Name) })
	}
	name := strings.ToLower(file[strings.LastIndexAny(file, `/\`)+1:])
	switch {
	case has("kvConfigPath"):
		return ApacheNamesrv
	case has("brokerName", "brokerClusterName", "brokerId", "namesrvAddr", "storePathRootDir"):
		return ApacheBroker
	case strings.Contains(name, "namesrv"):
		return ApacheNamesrv
	}
	return ApacheBroker
}

// readJSON reads the members of one object, each with its line.
func readJSON(file string, text []byte) (given []Given) {
	text, err := plainText(text, "{")
	if err != nil {
		return []Given{{From: file + ":1", Wrong: err}}
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	at := func(offset int64) string {
		return fmt.Sprintf("%s:%d", file, 1+bytes.Count(text[:min(int(offset), len(text))], []byte("\n")))
	}
	if err := eachMember(decoder, func(name string, value any, offset int64) {
		g := Given{Name: name, Value: strings.TrimSpace(fmt.Sprint(value)), From: at(offset)}
		if i := slices.IndexFunc(given, func(g Given) bool { return g.Name == name }); i >= 0 {
			given = slices.Delete(given, i, i+1)
			g.Remark = name + " is given twice: the last counts, as with Apache's servers"
		}
		if value != nil {
			given = append(given, g)
		}
	}); err != nil {
		offset := decoder.InputOffset()
		var syntax *json.SyntaxError
		switch {
		case errors.Is(err, errCut):
			offset = int64(len(text)) - 1
		case errors.As(err, &syntax):
			offset = syntax.Offset
		}
		return []Given{{From: at(offset), Wrong: fmt.Errorf("the file is not JSON: %w", err)}}
	}
	return given
}

var errCut = errors.New("it ends in the middle")

// eachMember calls do for every member of the one object that there is, with where it is.
func eachMember(decoder *json.Decoder, do func(name string, value any, offset int64)) error {
	whole := func(err error) error {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errCut
		}
		return err
	}
	if _, err := decoder.Token(); err != nil { // the bracket
		return whole(err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return whole(err)
		}
		at := decoder.InputOffset()
		var value any
		if err := decoder.Decode(&value); err != nil {
			return whole(err)
		}
		do(fmt.Sprint(key), value, at)
	}
	if _, err := decoder.Token(); err != nil {
		return whole(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind its end")
	}
	return nil
}

// Known splits settings into those that some options have, with what is wrong, and the names
// of the others, sorted.
func Known(given []Given) (known []Given, others []string) {
	for _, g := range given {
		if g.Wrong != nil || isSetting(g.Name) {
			known = append(known, g)
		} else {
			others = append(others, g.Name)
		}
	}
	slices.Sort(others)
	return known, others
}

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
// name.
func ReadApache(name string, text []byte) (ApacheKind, map[string]string, error) {
	all := make(map[string]string)
	if trimmed := bytes.TrimSpace(text); bytes.HasPrefix(trimmed, []byte("{")) {
		var members map[string]any
		decoder := json.NewDecoder(bytes.NewReader(trimmed))
		decoder.UseNumber()
		if err := decoder.Decode(&members); err != nil {
			return 0, nil, fmt.Errorf("%s: %w", name, err)
		}
		for key, value := range members {
			all[key] = strings.TrimSpace(fmt.Sprint(value))
		}
		return ApacheProxy, all, nil
	}
	list, err := ParseProperties(text)
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, p := range list {
		all[p.Name] = strings.TrimSpace(p.Value)
	}
	if _, ok := all["kvConfigPath"]; ok {
		return ApacheNamesrv, all, nil
	}
	for _, key := range []string{"brokerName", "brokerClusterName", "brokerId", "namesrvAddr", "storePathRootDir"} {
		if _, ok := all[key]; ok {
			return ApacheBroker, all, nil
		}
	}
	if strings.Contains(strings.ToLower(name), "namesrv") {
		return ApacheNamesrv, all, nil
	}
	return ApacheBroker, all, nil
}

// Known splits settings into those that some options have and the names of the others,
// sorted.
func Known(settings map[string]string) (known map[string]string, others []string) {
	broker, store, namesrv, proxy := DefaultBroker(), DefaultStore(), DefaultNamesrv(), DefaultProxy()
	known = make(map[string]string)
	for name, value := range settings {
		found := false
		for _, target := range []any{&broker, &store, &namesrv, &proxy} {
			found = found || slices.ContainsFunc(List(target), func(p Property) bool { return p.Name == name })
		}
		if found {
			known[name] = value
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(others)
	return known, others
}

// Check says what is wrong with a file of settings, all of it in the order of its lines, and
// how many settings it has.
func Check(text []byte) (count int, err error) {
	broker, store, namesrv, proxy := DefaultBroker(), DefaultStore(), DefaultNamesrv(), DefaultProxy()
	var errs []error
	err = eachProperty(text, func(line int, logical string) error {
		p, err := parseProperty(logical)
		switch {
		case err == nil && !strings.ContainsAny(logical, "=:"):
			err = fmt.Errorf("%.64q is not KEY=VALUE", logical)
		case err == nil:
			err = Apply(map[string]string{p.Name: p.Value}, &broker, &store, &namesrv, &proxy)
			if _, hours := Hours(p.Value); err == nil && p.Name == "deleteWhen" {
				err = hours
			}
		}
		count++
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", line, err))
		}
		return nil
	})
	return count, errors.Join(append(errs, err)...)
}

package config

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// number reads a setting that is a whole number. Its errors are the rest of a sentence, with
// what the number is a number of, its limits, and what to write where that can be told.
func number(field reflect.StructField, text string) (int64, error) {
	tag := field.Tag
	low, high := limits(field)
	n, err := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrSyntax) {
		write := ""
		if meant, ok := inUnit(text, tag.Get("unit")); ok && meant >= low && meant <= high {
			write = fmt.Sprintf("; write %d", meant)
		}
		return 0, fmt.Errorf("%.64q is not a whole number (%s)%s", text, form(field), write)
	}
	if one := tag.Get("oneof"); one != "" && !slices.Contains(strings.Split(one, ","), strconv.FormatInt(n, 10)) {
		return 0, fmt.Errorf("%.64s is not one of %s. %s", text, one, tag.Get("about"))
	}
	switch {
	case n < low:
		return 0, fmt.Errorf("%.64s is below the limit %d (%s)", text, low, form(field))
	case n > high || err != nil:
		return 0, fmt.Errorf("%.64s is over the limit %d (%s)", text, high, form(field))
	}
	return n, nil
}

// limits are the least and the most that a number may be.
func limits(field reflect.StructField) (low, high int64) {
	low, high = math.MinInt64, math.MaxInt64
	if field.Type.Kind() == reflect.Int32 {
		low, high = math.MinInt32, math.MaxInt32
	}
	if n, err := strconv.ParseInt(field.Tag.Get("min"), 10, 64); err == nil {
		low = n
	}
	if n, err := strconv.ParseInt(field.Tag.Get("max"), 10, 64); err == nil {
		high = n
	}
	return low, high
}

// suffixes are what people write behind a number, in the smallest unit of its kind: bytes and ms.
var suffixes = map[string]map[string]float64{
	"bytes":   {"": 1, "b": 1, "byte": 1, "bytes": 1, "k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30},
	"time":    {"ms": 1, "s": 1000, "sec": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "hours": 3_600_000, "d": 86_400_000, "days": 86_400_000},
	"percent": {"%": 1},
}

// inUnit is a number that somebody has written with its unit, such as 4MB or 48h, as a number
// of what the setting counts; false where it is no such number or not a whole one.
func inUnit(text, unit string) (int64, bool) {
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ% ")
	suffix := strings.ToLower(strings.TrimSpace(text[len(digits):]))
	n, err := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "").Replace(digits), 64)
	if err != nil {
		return 0, false
	}
	kind, each := "time", 1.0
	switch unit {
	case "bytes":
		kind = "bytes"
	case "ms":
	case "s":
		each = 1000
	case "hours":
		each = 3_600_000
	default:
		kind = strings.Fields(unit + " none")[0]
	}
	factor, ok := suffixes[kind][suffix]
	if suffix == "" {
		factor, ok = each, true
	}
	meant := n * factor / each
	return int64(meant), ok && meant == math.Trunc(meant) && math.Abs(meant) < 1<<53
}

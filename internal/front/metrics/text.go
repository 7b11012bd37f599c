package metrics

import (
	"strconv"
	"strings"
)

// labels are names and values in turn.
type labels []string

// page is Prometheus' text format being written.
type page struct {
	text   []byte
	common labels // on every sample
}

// Kinds of metrics.
const (
	counter = "counter"
	gauge   = "gauge"
)

// family begins the samples of one name.
func (p *page) family(name, kind, help string) {
	p.text = append(p.text, "# HELP "+name+" "+help+"\n# TYPE "+name+" "+kind+"\n"...)
}

func (p *page) sample(name string, value int64, of ...string) {
	p.text = append(p.text, name...)
	mark := byte('{')
	for _, l := range []labels{p.common, of} {
		for i := 0; i+1 < len(l); i += 2 {
			p.text = append(append(append(p.text, mark), l[i]...), '=', '"')
			p.text = append(append(p.text, escape.Replace(l[i+1])...), '"')
			mark = ','
		}
	}
	p.text = append(p.text, "} "...)
	p.text = append(strconv.AppendInt(p.text, value, 10), '\n')
}

// single is a family of one sample.
func (p *page) single(name, kind, help string, value int64, of ...string) {
	p.family(name, kind, help)
	p.sample(name, value, of...)
}

// escape is for the values of labels.
var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func truth(v bool) string { return strconv.FormatBool(v) }

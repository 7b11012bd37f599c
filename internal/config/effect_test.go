package config

import (
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// A setting that is taken and that no code reads is a promise that is not kept: it has to
// carry idle:"reason", so that whoever sets it is told. The mark goes with the first reader.
func TestEverySettingHasAReaderOrSaysThatItHasNone(t *testing.T) {
	selector := regexp.MustCompile(`\.([A-Z][A-Za-z0-9]*)`)
	read := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "config/") {
			return err
		}
		text, err := os.ReadFile("../" + path)
		for _, m := range selector.FindAllSubmatch(text, -1) {
			read[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[Broker](), reflect.TypeFor[Store](), reflect.TypeFor[Namesrv](), reflect.TypeFor[Proxy]()} {
		for i := range typ.NumField() {
			f := typ.Field(i)
			switch none := f.Tag.Get("idle") != ""; {
			case f.Tag.Get("prop") == "":
			case !none && !read[f.Name]:
				t.Errorf(`%s.%s: nobody reads it; make it do something or mark it idle:"reason"`, typ.Name(), f.Name)
			case none && read[f.Name]:
				t.Errorf(`%s.%s: somebody reads it now; take idle:"…" away`, typ.Name(), f.Name)
			}
		}
	}
}

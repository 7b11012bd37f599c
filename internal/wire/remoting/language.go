package remoting

import "strconv"

// Language says what a client is written in; it travels in every header.
type Language byte

// The languages, by their number in the binary header.
const (
	LanguageJava Language = iota
	LanguageCPP
	LanguageDotnet
	LanguagePython
	LanguageDelphi
	LanguageErlang
	LanguageRuby
	LanguageOther
	LanguageHTTP
	LanguageGo
	LanguagePHP
	LanguageOMS
	LanguageRust
	LanguageNodeJS
)

var languageNames = [...]string{"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER",
	"HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS"}

// String returns the name that the JSON header carries.
func (l Language) String() string {
	if int(l) < len(languageNames) {
		return languageNames[l]
	}
	return "OTHER"
}

// languageOf reads a name or a number; what it does not know is OTHER.
func languageOf(b []byte) Language {
	for i, n := range languageNames {
		if string(b) == n {
			return Language(i)
		}
	}
	if n, err := strconv.Atoi(string(b)); err == nil && n >= 0 && n < len(languageNames) {
		return Language(n)
	}
	return LanguageOther
}

// Versions at which behaviour changes; a version is an ordinal of the Java client's
// list of releases.
const (
	Version3_0_11 int32 = 37  // registration body has its own form
	Version3_1_8  int32 = 62  // consumer serves running info and direct consume
	Version4_9_3  int32 = 399 // up to here _UNIQUE_KEY_QUERY is not part of a signature
	Version4_9_4  int32 = 401 // from here routes are standard JSON
	Version5_3_1  int32 = 475 // above it GO_AWAY is understood
	Version5_5_0  int32 = 513 // what we say of ourselves
)

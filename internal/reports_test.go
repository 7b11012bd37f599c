package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// report is a fault that users of Apache RocketMQ have reported. Tests name the one that they
// are about by its number, in a comment or in the name of a case.
type report struct {
	id    string
	fault string
	why   string // there is no test; only then
	rest  string // what the tests leave out; only with tests
}

// reports are those about POP, long polling, order, receipts and restarts, push and pull,
// delays, storage, name server and operation.
var reports = []report{
	{id: "R003", fault: "what is revived gets lost on the way to the retry topic"},
	{id: "R004", fault: "a revive delivers another message than the lapsed one"},
	{id: "R005", fault: "an acknowledgement late inside the invisible time does not count"},
	{id: "R006", fault: "a flush undoes an acknowledgement that comes meanwhile"},
	{id: "R007", fault: "one message that can't be revived holds up all others"},
	{id: "R008", fault: "many equal deadlines make the revive spin"},
	{id: "R009", fault: "repeated acknowledgements leave work behind for ever"},
	{id: "R010", fault: "a redelivered message has lost its flag"},
	{id: "R012", fault: "from the newest skips what reaches a queue that is added later"},
	{id: "R013", fault: "a restart sends a POP group back to the start"},
	{id: "R014", fault: "a reset of offsets is ignored, or repeats"},
	{id: "R015", fault: "failed revives don't back off"},
	{id: "R016", fault: "a client that never acknowledges fills the broker"},
	{id: "R018", fault: "the committed offset lags behind although all is acknowledged"},
	{id: "R019", fault: "clean-up of idle locks lets two into one group and topic"},
	{id: "R020", fault: "extending counts as a failed attempt"},
	{id: "R021", fault: "what was not acknowledged does not come back to a poller"},
	{id: "R022", fault: "retry topics of different groups and topics have one name"},
	{id: "R023", fault: "light queues deliver duplicates"},
	{id: "R024", fault: "what is in flight is not replicated", why: "there is no replication"},

	{id: "R026", fault: "what arrives just before the parking is seen seconds later"},
	{id: "R027", fault: "a rare match waits although consumers are idle"},
	{id: "R028", fault: "a redelivery does not wake who waits for it"},
	{id: "R029", fault: "arrivals behind a blocked order wake pollers in vain"},
	{id: "R031", fault: "a broker that may not be written to holds up consumers of others", why: "one broker so far"},
	{id: "R137", fault: "the count of waiting requests runs up to its limit"},

	{id: "R033", fault: "an unprepared group gets an ordered topic out of order"},
	{id: "R034", fault: "a client repeats under a new attempt id and blocks itself", rest: "the client's part"},
	{id: "R035", fault: "a slow message group delays the others"},
	{id: "R036", fault: "an ordered message is tried more often than the policy says"},
	{id: "R037", fault: "orderly consumers start late, or think that their locks are gone", rest: "the client's part"},
	{id: "R038", fault: "an order that was suspended for long never goes on", rest: "the client's part"},
	{id: "R039", fault: "an orderly consumer never gives up"},

	{id: "R042", fault: "what was handled is redelivered into the dead letters after cuts", rest: "a day long; an hour in the long suite"},
	{id: "R043", fault: "a client that dies during its receive hides the messages for their time"},
	{id: "R044", fault: "renewal goes on for what is dead"},
	{id: "R045", fault: "automatic renewal without an invisible time expires early"},
	{id: "R056", fault: "unusable receipts are answered as server errors"},

	{id: "R059", fault: "from the newest replays all of a young topic"},
	{id: "R061", fault: "the last failed try goes to the dead letters hours late"},
	{id: "R062", fault: "a failed hand-back does not count"},
	{id: "R063", fault: "members that subscribe differently take each other's messages away", rest: "a mode that refuses the second"},
	{id: "R064", fault: "old positions win when the primary comes back", why: "there is no replication"},
	{id: "R065", fault: "the replica can't be read while the primary is down", why: "there is no replication"},
	{id: "R066", fault: "a broadcast consumer forgets where it was when it is cut off", rest: "positions of each client for an administrator: clients keep them in files of their own"},
	{id: "R067", fault: "consumers that start and stop leave ghosts that commit old positions"},
	{id: "R068", fault: "queues are not consumed after a restart, or when they are added", rest: "the client's part"},
	{id: "R069", fault: "lite pull loses messages while consumers come and go", rest: "the client's part"},
	{id: "R070", fault: "messages that a subscription does not want count as its backlog", rest: "the filtered lag of a group that is not connected"},
	{id: "R071", fault: "a reset reports success and changes nothing"},
	{id: "R072", fault: "one stuck message lets thousands be repeated", why: "the client's part: it decides what it takes in beside an unfinished message"},
	{id: "R073", fault: "fewer queues strand messages"},

	{id: "R074", fault: "a long limit for delays overflows"},
	{id: "R075", fault: "the limits for delays differ by protocol"},
	{id: "R076", fault: "a restart during delivery delivers delayed messages twice"},
	{id: "R077", fault: "one failed write makes a whole batch be written again"},
	{id: "R078", fault: "a due message is dropped after a few failures"},
	{id: "R079", fault: "a wrong position of a delay level stops all of it"},
	{id: "R080", fault: "timers fire early, or are lost in a crash"},
	{id: "R081", fault: "a scheduled message can't be taken back"},
	{id: "R082", fault: "batches with delays slip through the check"},

	{id: "R054", fault: "who has only sent one half message is never asked about it"},
	{id: "R084", fault: "what is decided is asked about again"},
	{id: "R085", fault: "one bad half message holds up the checks of all"},
	{id: "R086", fault: "after a producer's crash no other one of its group is asked"},
	{id: "R087", fault: "a late commit contradicts the rollback of a check"},

	{id: "R088", fault: "sends are refused at low load after any hiccup of the disk"},
	{id: "R090", fault: "files that were not consumed are deleted near a full disk"},
	{id: "R091", fault: "percentages refuse writes with hundreds of gigabytes free"},
	{id: "R092", fault: "after a crash messages are missing from their queue, or shifted"},
	{id: "R093", fault: "after a power cut the small files are garbage, and so is the start"},
	{id: "R094", fault: "one odd queue file stops the start"},
	{id: "R095", fault: "after a crash old messages are not found by key"},
	{id: "R097", fault: "a query by key finds nothing since some release", rest: "mqadmin of 5.5.0 is run, older ones are not"},
	{id: "R098", fault: "look-ups depend on the sender's clock; a misnamed field is a null error"},
	{id: "R099", fault: "a deleted topic comes back"},
	{id: "R100", fault: "positions outlive topic and group"},
	{id: "R101", fault: "the start takes minutes with many queues or a large log"},
	{id: "R102", fault: "hundreds of thousands of topics bring long pauses"},
	{id: "R103", fault: "stored SQL filters are thrown away at each restart"},
	{id: "R104", fault: "SQL filters are off by default, and the error does not help"},
	{id: "R105", fault: "properties without a closing separator are glued together"},
	{id: "R106", fault: "size limits are judged before and after compression, and misnamed"},
	{id: "R107", fault: "random bytes on the replication port confirm messages", why: "there is no replication, and no port for it"},
	{id: "R108", fault: "a partition leaves two primaries", why: "there is no replication"},
	{id: "R109", fault: "an automatically created topic exists on one broker only"},
	{id: "R110", fault: "a late clean-up removes a broker that has registered again"},
	{id: "R111", fault: "after a name server's restart routes are missing for a while"},
	{id: "R112", fault: "route changes reach clients after 30 to 60 s", rest: "a proxy before several brokers, which is not built"},
	{id: "R113", fault: "a name server that was taken out of the list is still asked", rest: "a client library of our own, which is not built"},

	{id: "R120", fault: "the broker announces an address that clients can't reach"},
	{id: "R121", fault: "no embedded mode for tests"},
	{id: "R122", fault: "start scripts break on Windows, macOS, blanks in paths", rest: "runs on Windows and macOS; they are built, by make cross"},
	{id: "R123", fault: "native libraries crash or are missing on arm64", rest: "macOS; Linux on arm64 is run under QEMU"},
	{id: "R124", fault: "consumers of gRPC are shown as not online, with lag -1"},
	{id: "R125", fault: "no lag per queue in metrics, and sums that are wrong"},
	{id: "R126", fault: "dead letters can't be read and replayed"},
	{id: "R127", fault: "a start fails without any output"},
	{id: "R128", fault: "mqadmin prints NaN, cuts values, differs from its help", why: "mqadmin is Apache's; a tool of our own has topics only so far"},
	{id: "R129", fault: "the order of starts matters; scaling down leaves brokers behind", rest: "a command that drains a broker"},
}

var rowName = regexp.MustCompile(`\bR[01]\d\d\b`)

// namedRows finds the tests that name a row, as FILE: FUNCTION by row. Beside
// the tests of packages these are the suites in test/.
func namedRows(t *testing.T) map[string][]string {
	t.Helper()
	named := make(map[string][]string)
	err := filepath.WalkDir("..", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(p, ".."+string(filepath.Separator)))
		if d.IsDir() {
			if d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && p != ".." {
				return filepath.SkipDir
			}
			return nil
		}
		if rel == "internal/reports_test.go" || !strings.HasSuffix(rel, "_test.go") && !(strings.HasPrefix(rel, "test/") && strings.HasSuffix(rel, ".go")) {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		note := func(text string, n ast.Node) {
			for _, id := range rowName.FindAllString(text, -1) {
				if at := rel + ": " + functionAt(f, n); !slices.Contains(named[id], at) {
					named[id] = append(named[id], at)
				}
			}
		}
		for _, c := range f.Comments {
			note(c.Text(), c)
		}
		ast.Inspect(f, func(n ast.Node) bool { // names of a table's cases
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				note(lit.Value, lit)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return named
}

// functionAt is the function that a node is in, or its comment.
func functionAt(f *ast.File, n ast.Node) string {
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && (fn.Doc == n || fn.Pos() <= n.Pos() && n.End() <= fn.End()) {
			return fn.Name.Name
		}
	}
	return "(no function)"
}

// TestReportsHaveTests holds that each of these reports has a test that names it, or a
// reason. With -v it prints which.
func TestReportsHaveTests(t *testing.T) {
	named := namedRows(t)
	for _, r := range reports {
		tests := named[r.id]
		switch {
		case len(tests) == 0 && r.why == "":
			t.Errorf("%s (%s): no test names it", r.id, r.fault)
		case len(tests) == 0 && r.rest != "":
			t.Errorf("%s: nothing is left out of no test", r.id)
		case len(tests) > 0 && r.why != "":
			t.Errorf("%s: %s names it, so the reason %q is out of date", r.id, tests[0], r.why)
		}
		t.Logf("%s %s", r.id, r.fault)
		for _, at := range tests {
			t.Logf("       %s", at)
		}
		if r.why != "" {
			t.Logf("       no test: %s", r.why)
		}
		if r.rest != "" {
			t.Logf("       without: %s", r.rest)
		}
	}
	for id, tests := range named {
		for _, at := range tests {
			if strings.HasSuffix(at, "(no function)") {
				t.Errorf("%s names %s outside a function", at, id)
			}
		}
	}
}

package storage

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/round"
	"github.com/bolidemq/bolide/internal/storage/commitlog"
	"github.com/bolidemq/bolide/internal/storage/consumequeue"
	"github.com/bolidemq/bolide/internal/wire/filter"
)

// PropertySource is the internal property that names the state a message was born from
// (a lapsed delivery, a timer, a half message). Dispatch reports its value as
// Dispatched.Source, so that the owner of that state can delete it: the append is the
// commit point of the move.
const PropertySource = "__BOLIDE_SRC"

// What Append, Read and the rest can answer beside success. The fronts translate them.
var (
	// ErrMessageTooLarge says that the body or the whole record is over the limit.
	ErrMessageTooLarge = errors.New("message too large")
	// ErrPropertiesTooLarge says that the properties are over 32,767 bytes.
	ErrPropertiesTooLarge = errors.New("properties too large")
	// ErrDiskFull says that the disk is over its watermark or refused a write for lack of
	// room. Writes go on by themselves when there is room.
	ErrDiskFull = commitlog.ErrFull
	// ErrBusy says that the open buffers stayed full until the deadline.
	ErrBusy = commitlog.ErrBusy
	// ErrClosed says that the store is closed or closing, or that its log has failed.
	ErrClosed = commitlog.ErrClosed
	// ErrWrite says that a write failed for another reason than lack of room. The message is
	// not stored; writes go on by themselves when the disk does.
	ErrWrite = commitlog.ErrWrite
	// ErrNotFound says that there is no record at an offset.
	ErrNotFound = errors.New("no such record")
	// ErrCrowdedHash says that a query by key has ended before it had looked at every record
	// whose key has the hash of the one that was asked for.
	ErrCrowdedHash = errors.New("too many messages have keys of one hash")
	// ErrManySearches says that as many queries by key that take long are under way as may be.
	ErrManySearches = errors.New("too many long queries by key are under way")
	// ErrNobodyWaits says that whoever asked has gone before the answer was found.
	ErrNobodyWaits = errors.New("nobody waits for the answer")
	// ErrTooManyLights says that there may be no more queues that messages get into beside
	// their own.
	ErrTooManyLights = errors.New("too many light queues")
	// ErrForeign says that the store's files are not what a store may hold, so that opening
	// it would destroy something.
	ErrForeign = errors.New("not a store")
)

// FlushPolicy says when an append is complete.
type FlushPolicy int

const (
	// Async completes an append when it is written: it survives a process crash.
	Async FlushPolicy = iota
	// Sync completes an append when it is synced: it survives a power cut.
	Sync
)

// Options is what a store needs. Zero fields take Apache RocketMQ's defaults.
type Options struct {
	FS  vfs.FS // vfs.Default
	Dir string // the store's root folder

	LogSegmentSize   int64 // 1 GiB
	QueueFileEntries int   // 300,000
	IndexSlots       int   // 5,000,000
	IndexEntries     int   // 20,000,000
	MaxMessageSize   int   // 4 MiB; a record may be 64 KiB longer
	RecordCRC        bool  // each record carries a checksum of all its bytes, not of its body alone

	Flush              FlushPolicy
	FlushInterval      time.Duration // under Async: 500 ms
	CheckpointInterval time.Duration // 5 s
	MaxOpenBytes       int64         // appended but not yet written or dispatched: 64 MiB
	BusyAfter          time.Duration // how long Append may wait for room: 8 s
	MaxOpenFiles       int           // of consume queues and the index: 512
	QueryRecords       int           // whose keys have one hash, that a query by key looks at: 100,000

	StoreHost   netip.AddrPort   // written into records that come without one
	DelayLevels []time.Duration  // nil: Apache's 18 levels
	Retention   func() Retention // asked each time; nil: the defaults
	Clock       *clock.Clock     // nil: a new one

	// Birth is the log offset from which on a topic's records belong to it; older records
	// of the same name are not dispatched. A topic that does not exist answers
	// math.MaxInt64. nil: always 0.
	Birth func(topic string) int64

	// OnDispatch is told of every record in log order once readers can see it, many at a
	// time. The slice is the store's own and valid until the call returns; the strings in
	// it may be kept. It runs on the dispatcher or on the log's writer, so it must not wait
	// for an append.
	OnDispatch func([]Dispatched)

	// Rounds are those in which AppendHeld need not wake the log's writer; nil for none.
	Rounds *round.Rounds

	// Settle makes durable what OnDispatch has caused so far. It is called before a
	// checkpoint: records before that are not dispatched again after a crash. May be nil.
	Settle func() error

	// Full answers why nothing may be appended while the disk has no room for what goes with
	// the log; nil when it has. May be nil.
	Full func() error

	// Lights holds the queues of lite topics; nil: they have files as others do.
	Lights consumequeue.Shelf
	// MaxLights is how many queues there may be that messages get into beside their own; 0
	// for any number. nil: any number.
	MaxLights func() int
	// ExportLights says whether a clean stop writes the queues of lite topics as files, for
	// another server. Nil: no.
	ExportLights func() bool

	// BeforeDelete is asked before the log file with the offsets [first, end) is deleted; an
	// error keeps it for now. It may take long, and comes back early when ctx ends. May be nil.
	BeforeDelete func(ctx context.Context, first, end int64) error

	Log    *slog.Logger
	Events Events
}

const (
	defaultMaxMessage = 4 << 20
	recordSlack       = 64 << 10 // what a record may have beside its body
	keepInMemory      = 8 << 20  // newest log bytes kept for readers at the end
	chunkSize         = 1 << 20
)

func (o *Options) fill() {
	set(&o.FS, vfs.Default)
	set(&o.LogSegmentSize, 1<<30)
	set(&o.QueueFileEntries, 300_000)
	set(&o.IndexSlots, 5_000_000)
	set(&o.IndexEntries, 20_000_000)
	set(&o.MaxMessageSize, defaultMaxMessage)
	set(&o.FlushInterval, 500*time.Millisecond)
	set(&o.CheckpointInterval, 5*time.Second)
	set(&o.MaxOpenBytes, 64<<20)
	set(&o.BusyAfter, 8*time.Second)
	set(&o.MaxOpenFiles, 512)
	set(&o.QueryRecords, 100_000)
	if o.DelayLevels == nil {
		for _, s := range []int{1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200} {
			o.DelayLevels = append(o.DelayLevels, time.Duration(s)*time.Second)
		}
	}
	if !o.StoreHost.IsValid() {
		o.StoreHost = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 10911)
	}
	if o.Clock == nil {
		o.Clock = clock.New()
	}
	if o.Full == nil {
		o.Full = func() error { return nil }
	}
	if o.MaxLights == nil {
		o.MaxLights = func() int { return 0 }
	}
	if o.ExportLights == nil {
		o.ExportLights = func() bool { return false }
	}
	if o.Birth == nil {
		o.Birth = func(string) int64 { return 0 }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Retention == nil {
		o.Retention = func() Retention { return Retention{} }
	}
}

func (r *Retention) setDefaults() {
	set(&r.MaxAge, 72*time.Hour)
	if r.DeleteWhen == nil {
		r.DeleteWhen = []int{4}
	}
	set(&r.CheckInterval, 10*time.Second)
	set(&r.CleanPercent, 75)
	set(&r.ForcePercent, 85)
	set(&r.FullPercent, 90)
	set(&r.EnoughFree, 20<<30)
	set(&r.Location, time.Local)
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Retention says when log files are deleted. Zero fields take the defaults.
type Retention struct {
	MaxAge         time.Duration // 72 h after the last record of the file
	DeleteWhen     []int         // hours of the day at which files of that age go; nil: {4}
	CheckInterval  time.Duration // 10 s
	CleanPercent   int           // used space over this: files past MaxAge go at any hour; 75
	ForcePercent   int           // over this: the oldest files go whatever their age; 85
	FullPercent    int           // over this: appends answer ErrDiskFull; 90
	EnoughFree     int64         // with this many bytes free no percentage counts; 20 GiB
	RefuseWhenFull bool          // never delete by force: refuse appends instead
	Location       *time.Location
}

// Events are told what happened; every field may be nil.
type Events struct {
	Written        func(records, bytes int, took time.Duration)
	Synced         func(took time.Duration)
	SegmentDeleted func(first, end int64, forced bool)
	DiskFull       func(full bool)
	Recovered      func(Recovery)
}

// Recovery is what Open found and did.
type Recovery struct {
	Clean       bool  // the last stop was a clean one
	ScannedFrom int64 // log offset where reading began
	End         int64 // end of the log
	CutBytes    int64 // written bytes behind the end that were zeroed
	Records     int   // records read
	Rebuilt     []string
	Took        time.Duration
}

// Placed is where an append ended up.
type Placed = commitlog.Placed

// Dispatched is one record that readers can see now.
type Dispatched struct {
	Topic          string
	QueueID        int32
	QueueOffset    int64
	PhysicalOffset int64
	TagsCode       int64
	StoreTimestamp int64
	Size           int32
	SysFlag        int32
	Source         string // value of PropertySource
	Tag            string
	Light          bool   // told once more, for a queue beside the record's own
	Due            int64  // of a timer: when it is to be delivered; 0 for everything else
	Relative       bool   // of a timer: its sender has given a delay
	RealTopic      string // of a timer: where to
	Traits         filter.Traits
}

// ReadStatus is the outcome of a Read, with Apache RocketMQ's meanings.
type ReadStatus int

// The outcomes of a Read.
const (
	Found               ReadStatus = iota // at least one record
	NoMatchedMessage                      // records there, none passes the filter
	MessageWasRemoved                     // the queue points to records that retention has deleted
	OffsetFoundNull                       // the queue's own file is missing at this offset
	OffsetOverflowBadly                   // past the end by more than one
	OffsetOverflowOne                     // exactly the end: nothing new yet
	OffsetTooSmall                        // before the first record that is still there
	NoMatchedQueue                        // no such topic or queue
	NoMessageInQueue                      // the queue exists and has never had a record
)

var statusNames = [...]string{"FOUND", "NO_MATCHED_MESSAGE", "MESSAGE_WAS_REMOVING", "OFFSET_FOUND_NULL",
	"OFFSET_OVERFLOW_BADLY", "OFFSET_OVERFLOW_ONE", "OFFSET_TOO_SMALL", "NO_MATCHED_LOGIC_QUEUE", "NO_MESSAGE_IN_QUEUE"}

// String is the name that Apache RocketMQ puts into remarks.
func (s ReadStatus) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return "UNKNOWN"
	}
	return statusNames[s]
}

// ReadRequest asks for records of one queue from Offset on.
type ReadRequest struct {
	Topic       string
	QueueID     int32
	Offset      int64
	MaxMessages int // 32 when zero
	MaxBytes    int // 256 KiB when zero; the first record is given whatever its size

	Filter *filter.Expression // asked with each entry's tags code; nil takes everything
}

// Record is one stored record as it lies in the log.
type Record struct {
	QueueOffset    int64
	PhysicalOffset int64
	TagsCode       int64
	Bytes          []byte
}

// ReadResult is what Read found. Records are valid until Release; whoever keeps bytes
// longer copies them. Not calling Release costs garbage, nothing else.
type ReadResult struct {
	Status  ReadStatus
	Next    int64 // where to read on
	Min     int64
	Max     int64
	Bytes   int // sum of the records' sizes
	Records []Record

	held   *readBuffers
	mended bool // an entry was put right, so it is worth to read again
}

// Failed reports whether the read at an offset could not be done, though something is there.
func (r *ReadResult) Failed(offset int64) bool {
	return r.Status == OffsetFoundNull && r.Next == offset
}

package admin

import (
	"fmt"
	"strconv"
	"time"

	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// CommitLog is the part of the store that tells how it is.
type CommitLog interface {
	LogMin() int64
	LogMax() int64
	DiskUsage() storage.DiskUsage
	ReadAt(physicalOffset int64) ([]byte, error)
}

// apacheVersion is what tools take for the server's version: the one whose behaviour this
// server has.
const apacheVersionName = "V5_5_0"

// RuntimeInfo is how this broker is, under the names that tools of Apache RocketMQ look
// for. What this server does not have (thread pools, a page cache lock) is there and zero.
func (a *Admin) RuntimeInfo() map[string]string {
	now := time.Now()
	c := a.o.Config.Get()
	info := map[string]string{
		"brokerActive":                    "true",
		"brokerVersionDesc":               apacheVersionName,
		"bolideVersion":                   a.o.Version,
		"bootTimestamp":                   itoa(a.booted.UnixMilli()),
		"runtime":                         spell(now.Sub(a.booted)),
		"startAcceptSendRequestTimeStamp": itoa(c.StartAcceptSendRequestTimeStamp),
		"pageCacheLockTimeMills":          "0",
		"dispatchBehindBytes":             "0",
		"dispatchMaxBuffer":               "0",
		"remainTransientStoreBufferNumbs": "0",
		"remainHowManyDataToFlush":        "0 B",
		"timerReadBehind":                 "0",
		"timerOffsetBehind":               "0",
		"timerCongestNum":                 "0",
		"timerEnqueueTps":                 "0.0",
		"timerDequeueTps":                 "0.0",
		"EndTransactionQueueSize":         "0",
	}
	for _, pool := range []string{"send", "pull", "litePull", "query", "ack"} {
		info[pool+"ThreadPoolQueueSize"] = "0"
		info[pool+"ThreadPoolQueueCapacity"] = "0"
		info[pool+"ThreadPoolQueueHeadWaitTimeMills"] = "0"
	}
	info["EndTransactionThreadPoolQueueCapacity"] = "0"
	a.addCounts(info)
	a.addLog(info)
	return info
}

func (a *Admin) addCounts(info map[string]string) {
	put, got := a.Put.Read(), a.Got.Read()
	info["putTps"], info["getFoundTps"], info["getTransferredTps"], info["getTotalTps"] = rates(put), rates(got), rates(got), rates(got)
	info["putMessageDistributeTime"], info["putMessageEntireTimeMax"] = a.PutTimes.text()
	info["getMessageEntireTimeMax"] = "0"
	info["getMissTps"] = "0.0 0.0 0.0"
	info["putMessageTimesTotal"] = itoa(put.Total)
	info["putMessageSizeTotal"] = itoa(a.PutBytes.Read().Total)
	info["putMessageFailedTimes"] = "0"
	info["putMessageAverageSize"] = "0.0"
	if put.Total > 0 {
		info["putMessageAverageSize"] = strconv.FormatFloat(float64(a.PutBytes.Read().Total)/float64(put.Total), 'f', 1, 64)
	}
	info["msgPutTotalTodayNow"], info["msgPutTotalTodayMorning"], info["msgPutTotalYesterdayMorning"] = itoa(put.Total), itoa(put.TodayBegan), itoa(put.YesterBegan)
	info["msgGetTotalTodayNow"], info["msgGetTotalTodayMorning"], info["msgGetTotalYesterdayMorning"] = itoa(got.Total), itoa(got.TodayBegan), itoa(got.YesterBegan)
}

func (a *Admin) addLog(info map[string]string) {
	low, high := a.o.CommitLog.LogMin(), a.o.CommitLog.LogMax()
	info["commitLogMinOffset"], info["commitLogMaxOffset"] = itoa(low), itoa(high)
	info["earliestMessageTimeStamp"] = "-1"
	if low < high {
		if rec, err := a.o.CommitLog.ReadAt(low); err == nil {
			var m message.Message
			if _, err := message.DecodeStored(rec, &m); err == nil {
				info["earliestMessageTimeStamp"] = itoa(m.StoreTimestamp)
			}
		}
	}
	u := a.o.CommitLog.DiskUsage()
	used := 0.0
	if u.Known && u.Total > 0 {
		used = float64(u.Total-u.Free) / float64(u.Total)
		info["commitLogDirCapacity"] = fmt.Sprintf("Total : %s, Free : %s.", bytesText(u.Total), bytesText(u.Free))
	}
	info["commitLogDiskRatio"] = strconv.FormatFloat(used, 'f', 4, 64)
	info["consumeQueueDiskRatio"] = info["commitLogDiskRatio"]
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func rates(c Counts) string {
	return fmt.Sprintf("%.4f %.4f %.4f", c.PerSecond[0], c.PerSecond[1], c.PerSecond[2])
}

// spell writes a duration as the tools show it.
func spell(d time.Duration) string {
	s := int64(d / time.Second)
	return fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]", s/86400, s/3600%24, s/60%60, s%60)
}

func bytesText(n int64) string {
	if n < 1024 {
		return itoa(n) + " B"
	}
	v, unit := float64(n)/1024, "KMGTPE"
	for v >= 1024 && len(unit) > 1 {
		v, unit = v/1024, unit[1:]
	}
	return fmt.Sprintf("%.1f %ciB", v, unit[0])
}

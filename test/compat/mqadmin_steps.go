package main

import "regexp"

// mqadminStep is one command and how its output is compared with Apache's.
type mqadminStep struct {
	line    string // {broker}, {namesrv}, {work}, {msgid}, {offsetid}, {client} are filled in
	as      comparison
	without *regexp.Regexp // lines that are left out on both sides
	why     string         // what differs on purpose; docs/differences.md has it
}

// Lines that are left out, on both sides.
var (
	// Offsets in a retry topic are there as soon as a client has stored one.
	retryTopics = regexp.MustCompile(`^%RETRY%`)
	// Groups that a proxy or a test makes at its own time.
	systemGroups = regexp.MustCompile(`^(CID_|TOOLS_|FILTERSRV|SELF_TEST)`)
	// A folder's own line, and latencies that Apache prints once it has some.
	perPath = regexp.MustCompile(`commitLogDiskRatio_|putLatency99`)
)

// mqadminSteps are run in this order, on a server that has nothing yet.
var mqadminSteps = []mqadminStep{
	{line: "clusterList", as: numbers},
	{line: "updateTopic -c DefaultCluster -t adm-topic -r 4 -w 4 -a +message.type=NORMAL"},
	{line: "updateTopic -b {broker} -t adm-order -r 2 -w 2 -o true"},
	{line: "updateTopic -b {broker} -t bad.name", as: codes},
	{line: "updateTopic -b {broker} -t adm-topic-2 -a +message.type=WRONG", as: codes},
	{line: "updateTopicList -b {broker} -f {work}/topics.json"},
	{line: "updateTopicPerm -b {broker} -t adm-list-1 -p 4"},
	{line: "updateTopicPerm -c DefaultCluster -t adm-list-1 -p 6"},
	{line: "updateSubGroup -c DefaultCluster -g adm-group -q 2 -r 5"},
	{line: "updateSubGroup -b {broker} -g adm-other -s true -m true -d false -o true -i 0 -w 1 -a false"},
	{line: "updateSubGroupList -b {broker} -f {work}/groups.json"},
	{line: "getConsumerConfig -g adm-group"},
	{line: "setConsumeMode -c DefaultCluster -t adm-topic -g adm-other -m POP -q 8"},
	{line: "setConsumeMode -b {broker} -t adm-topic -g adm-other -m PULL"},
	{line: "topicRoute -t adm-topic"},
	{line: "topicRoute -t adm-topic -l"},
	{line: "topicRoute -t no-such-topic"},
	{line: "topicStatus -t adm-topic"},
	{line: "topicClusterList -t adm-topic"},
	{line: "topicList", as: known},
	{line: "updateOrderConf -t adm-order -m put -v broker-a:2"},
	{line: "updateOrderConf -t adm-order -m get"},
	{line: "updateOrderConf -t adm-order -m delete"},
	{line: "updateKvConfig -s adm -k key -v value"},
	{line: "deleteKvConfig -s adm -k key"},
	{line: "allocateMQ -t adm-topic -i 10.0.0.1,10.0.0.2"},
	{line: "wipeWritePerm -b broker-a", as: numbers},
	{line: "addWritePerm -b broker-a", as: numbers},
	{line: "getNamesrvConfig", as: runs, why: "settings that Bolide does not have"},
	{line: "updateNamesrvConfig -k enableTopicList -v true"},
	{line: "getBrokerConfig -b {broker}", as: runs, why: "settings that Bolide does not have"},
	{line: "updateBrokerConfig -b {broker} -k traceOn -v true"},
	{line: "updateBrokerConfig -c DefaultCluster -k brokerPermission -v 6"},
	{line: "brokerStatus -b {broker}", as: names, without: perPath},
	{line: "brokerStatus -c DefaultCluster", as: names, without: perPath},

	{line: "@send adm-topic 20"},
	{line: "@consume adm-group adm-topic 20"},
	{line: "topicStatus -t adm-topic"},
	{line: "topicList -c", as: known},
	{line: "consumerProgress -g adm-group", as: sorted, without: retryTopics},
	{line: "consumerProgress -g adm-group -t adm-topic", as: sorted, without: retryTopics},
	{line: "consumerProgress -g adm-group -s true", as: sorted, without: retryTopics, why: "topics that a group subscribes to and has no offsets in"},
	{line: "consumerProgress", as: numbers, without: systemGroups},
	{line: "consumerProgress -g no-such-group", as: runs, why: "206: the retry topic of any group has a route, so the broker is asked"},
	{line: "consumerConnection -g adm-group"},
	{line: "consumerConnection -g no-such-group", as: runs, why: "206, in the same way"},
	{line: "producerConnection -g adm-producer -t adm-topic"},
	{line: "producerConnection -g no-such-group -t adm-topic", as: codes},
	{line: "producer -b {broker}", as: sorted},
	{line: "consumerStatus -g adm-group"},
	{line: "consumerStatus -g adm-group -i {client} -s", without: retryTopics},
	{line: "brokerConsumeStats -b {broker}", as: known},
	{line: "brokerConsumeStats -b {broker} -t 5000 -l 1", as: known},
	{line: "statsAll -t adm-topic", as: numbers},
	{line: "queryMsgById -t adm-topic -i {offsetid}"},
	{line: "queryMsgById -t adm-topic -i {offsetid} -g adm-group -d {client} -s true"},
	{line: "queryMsgById -t adm-topic -i {msgid}"},
	{line: "queryMsgByKey -t adm-topic -k key-3"},
	{line: "queryMsgByKey -t adm-topic -k no-such-key"},
	{line: "queryMsgByUniqueKey -t adm-topic -i {msgid}"},
	{line: "queryMsgByUniqueKey -t adm-topic -i {msgid} -g adm-group -d {client}"},
	{line: "queryMsgByOffset -t adm-topic -b broker-a -i 1 -o 2"},
	{line: "queryMsgTraceById -i {msgid}"},
	{line: "queryCq -t adm-topic -q 0 -i 1 -c 2 -b {broker}", as: numbers},
	{line: "queryCq -t adm-topic -q 0 -i 1 -c 2 -b {broker} -g adm-group", as: numbers},
	{line: "printMsg -t adm-topic -d true"},
	{line: "printMsgByQueue -t adm-topic -a broker-a -i 0 -p true -d true"},
	{line: "consumeMessage -t adm-topic -b broker-a -i 0 -o 1 -c 2 -g adm-reader"},
	{line: "sendMessage -t adm-topic -p hello -k adm-key -c tagX -b broker-a -i 0"},
	{line: "sendMsgStatus -b broker-a -s 64 -c 2", as: numbers},
	{line: "checkMsgSendRT -t adm-topic -a 3 -s 64", as: numbers},

	{line: "resetOffsetByTime -g adm-group -t adm-topic -s now"},
	{line: "resetOffsetByTime -g adm-group -t adm-topic -s 1"},
	{line: "@consume adm-group adm-topic 20"},
	{line: "skipAccumulatedMessage -g adm-group -t adm-topic"},
	{line: "resetOffsetByTime -g no-such-group -t adm-topic -s now", as: codes},
	{line: "@leave adm-group"},
	{line: "consumerConnection -g adm-group", as: codes},
	{line: "resetOffsetByTime -g adm-group -t adm-topic -s 1"},
	{line: "resetOffsetByTime -g adm-group -t adm-topic -s 1 -b {broker} -q 1 -o 3"},
	{line: "consumerProgress -g adm-group", as: numbers, without: retryTopics, why: "in flight after a reset"},
	{line: "cloneGroupOffset -s adm-group -d adm-other -t adm-topic -o true"},
	{line: "consumerProgress -g adm-other", as: runs, why: "it works: Apache routes the retry topic of a group that was never online to nobody"},
	{line: "@stop"},

	{line: "cleanExpiredCQ -b {broker}"},
	{line: "cleanExpiredCQ -c DefaultCluster"},
	{line: "deleteExpiredCommitLog -b {broker}"},
	{line: "cleanUnusedTopic -b {broker}"},
	{line: "exportMetadata -c DefaultCluster -f {work}/export"},
	{line: "exportMetadata -b {broker} -t -f {work}/export"},
	{line: "exportMetadata -b {broker} -g -f {work}/export"},
	{line: "exportConfigs -c DefaultCluster -f {work}/export"},
	{line: "exportMetrics -c DefaultCluster -f {work}/export"},

	{line: "deleteSubGroup -c DefaultCluster -g adm-other -r true"},
	{line: "deleteSubGroup -b {broker} -g adm-group-list-1"},
	{line: "deleteTopic -c DefaultCluster -t adm-list-1"},
	{line: "deleteTopic -c DefaultCluster -t SELF_TEST_TOPIC", as: codes},
	{line: "topicRoute -t adm-list-1"},

	{line: "haStatus -b {broker}", as: runs, why: "replication"},
	{line: "getBrokerEpoch -b broker-a", as: runs, why: "replication"},
	{line: "resetMasterFlushOffset -b {broker} -o 1", as: runs, why: "replication"},
	{line: "getColdDataFlowCtrInfo -b {broker}", as: runs, why: "cold data"},
	{line: "updateColdDataFlowCtrGroupConfig -b {broker} -g adm-group -v 100", as: runs, why: "cold data"},
	{line: "removeColdDataFlowCtrGroupConfig -b {broker} -g adm-group", as: runs, why: "cold data"},
	{line: "setCommitLogReadAheadMode -b {broker} -m 1", as: runs, why: "memory maps"},
	{line: "rocksDBConfigToJson -b {broker} -t topics", as: runs, why: "RocksDB"},
	{line: "checkRocksdbCqWriteProgress -c DefaultCluster", as: runs, why: "RocksDB"},
	{line: "exportPopRecord -b {broker} -d true"},
	{line: "switchTimerEngine -b {broker} -e F", as: runs, why: "RocksDB"},
}

package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/bolidemq/bolide/test/servers"
)

// mqadminSuite runs Apache's own administration tool. What is wanted of its output holds for
// Apache's servers too; it is the tool that prints it, from what the server answers.
func mqadminSuite(ctx context.Context, h *harness) error {
	classpath, err := servers.ApacheClasspath(ctx)
	if err != nil {
		return err
	}
	if err := h.buildJava(ctx); err != nil {
		return err
	}
	broker := regexp.QuoteMeta(h.target.Broker)
	const topic, group, messages = "mqadmin-topic", "mqadmin-group", "60"
	steps := []struct {
		name string
		args []string
		want []string // patterns, each somewhere in the output
	}{
		{"updateTopic", []string{"-c", "DefaultCluster", "-t", topic, "-r", "4", "-w", "4", "-a", "+message.type=NORMAL"}, []string{
			`create topic to ` + broker + ` success`, `readQueueNums=4, writeQueueNums=4, perm=RW-`}},
		{"updateSubGroup", []string{"-c", "DefaultCluster", "-g", group, "-r", "5"}, []string{
			`create subscription group to ` + broker + ` success`, `retryMaxTimes=5`}},
		{"topicRoute", []string{"-t", topic}, []string{
			`"brokerName":\s*"broker-a"`, broker, `"readQueueNums":\s*4`, `"writeQueueNums":\s*4`, `"perm":\s*6`}},
		{"clusterList", nil, []string{`DefaultCluster\s+broker-a\s+0\s+` + broker + `\s+V5_`}},
		{"topicList", nil, []string{`(?m)^` + topic + `\s*$`, `(?m)^%RETRY%` + group + `\s*$|(?m)^TBW102\s*$`}},
		{"topicStatus", []string{"-t", topic}, []string{
			`broker-a\s+0\s+0\s+15\s+\d{4}-`, `broker-a\s+3\s+0\s+15\s+\d{4}-`}},
		{"consumerProgress", []string{"-g", group}, []string{
			`Consume TPS`, topic + `\s+broker-a\s+0\s+15\s+15\s+0`, `Diff Total: 0`}},
		{"consumerProgress", nil, []string{group + `\s+.*OFFLINE`}},
	}
	for _, s := range steps {
		if s.name == "topicStatus" {
			// Messages to look at, consumed by the group that is asked for later.
			ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
			for _, args := range [][]string{{"write-evenly", topic, messages}, {"consume", topic, messages, group}} {
				if out, err := h.java(ctx, h.target, args...).CombinedOutput(); err != nil {
					cancel()
					return fmt.Errorf("%v: %w\n%s", args, err, out)
				}
			}
			cancel()
		}
		_, err := h.mqadmin(ctx, classpath, s.name, s.args, s.want)
		h.report("mqadmin "+s.name, err)
	}
	return h.queryMessage(ctx, classpath, topic)
}

// queryMessage is R097: one message is found by its key, its id, its offset id and its
// place in the queue; each answer says where to look next.
func (h *harness) queryMessage(ctx context.Context, classpath, topic string) error {
	found := map[string]string{}
	for _, s := range []struct {
		name string
		args []string // $NAME stands for what an earlier pattern has found
		want string   // its groups are named
	}{
		{"sendMessage", []string{"-t", topic, "-k", "order-7", "-p", "looked for"}, `broker-a\s+(?P<queue>\d)\s+SEND_OK\s+(?P<id>[0-9A-F]{32,})`},
		{"queryMsgByKey", []string{"-t", topic, "-k", "order-7"}, `$id\s+$queue\s+(?P<offset>\d+)`},
		{"queryMsgByUniqueKey", []string{"-t", topic, "-i", "$id"}, `(?s)OffsetID:\s+(?P<place>[0-9A-F]{32,}).*Keys:\s+\[?order-7`},
		{"queryMsgById", []string{"-t", topic, "-i", "$place"}, `(?s)Message ID:\s+$id.*Queue Offset:\s+$offset`},
		{"queryMsgByOffset", []string{"-t", topic, "-b", "broker-a", "-i", "$queue", "-o", "$offset"}, `(?s)Queue ID:\s+$queue.*Queue Offset:\s+$offset`},
	} {
		fill := func(text string) string {
			for name, value := range found {
				text = strings.ReplaceAll(text, "$"+name, value)
			}
			return text
		}
		for i := range s.args {
			s.args[i] = fill(s.args[i])
		}
		want := fill(s.want)
		out, err := h.mqadmin(ctx, classpath, s.name, s.args, []string{want})
		h.report("mqadmin "+s.name, err)
		if err != nil {
			return nil // the rest asks for what this one was to find
		}
		pattern := regexp.MustCompile(want)
		for i, value := range pattern.FindSubmatch(out) {
			if name := pattern.SubexpNames()[i]; name != "" {
				found[name] = string(value)
			}
		}
	}
	return nil
}

func (h *harness) mqadmin(ctx context.Context, classpath, command string, args, want []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	all := append([]string{"-Xmx256m", "-Duser.home=" + h.work, "-cp", classpath,
		"org.apache.rocketmq.tools.command.MQAdminStartup", command, "-n", h.target.Namesrv}, args...)
	out, err := exec.CommandContext(ctx, "java", all...).CombinedOutput()
	if err != nil {
		return out, fmt.Errorf("%w\n%s", err, out)
	}
	for _, w := range want {
		if !regexp.MustCompile(w).Match(out) {
			return out, fmt.Errorf("%q is not in the output:\n%s", w, out)
		}
	}
	return out, nil
}

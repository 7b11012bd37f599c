package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/remoting"
	"github.com/bolidemq/bolide/internal/wire/transport"
)

// pythonSuite runs the official Python client.
func pythonSuite(ctx context.Context, h *harness) error {
	python, err := h.pythonClient(ctx)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, python, filepath.Join(h.root, "test", "compat", "python", "suite.py"))
	return h.script(ctx, cmd, "HOME="+h.work)
}

// pythonClient installs the official Python client into a folder of its own, once, and names
// the interpreter that has it.
func (h *harness) pythonClient(ctx context.Context) (string, error) {
	venv, err := clientsCache("python-5.1.2")
	if err != nil {
		return "", err
	}
	python := filepath.Join(venv, "bin", "python")
	return python, installOnce(ctx, venv, exec.CommandContext(ctx, "python3", "-m", "venv", venv),
		exec.CommandContext(ctx, python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
			filepath.Join(h.root, "test", "compat", "python", "requirements.txt")))
}

// nodeSuite runs the official Node client.
func nodeSuite(ctx context.Context, h *harness) error {
	modules, err := h.nodeClient(ctx)
	if err != nil {
		return err
	}
	return h.script(ctx, exec.CommandContext(ctx, "node", filepath.Join(h.root, "test", "compat", "node", "suite.js")),
		"NODE_PATH="+modules, "HOME="+h.work)
}

// nodeClient installs the official Node client into a folder of its own, once, and names the
// folder that has it.
func (h *harness) nodeClient(ctx context.Context) (string, error) {
	dir, err := clientsCache("node-1.0.8")
	if err != nil {
		return "", err
	}
	manifest, err := os.ReadFile(filepath.Join(h.root, "test", "compat", "node", "package.json"))
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644)); err != nil {
		return "", err
	}
	install := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-fund", "--no-audit", "--no-package-lock")
	install.Dir = dir
	return filepath.Join(dir, "node_modules"), installOnce(ctx, dir, install)
}

// rustSuite builds the official Rust client's suite, once, and runs it.
func rustSuite(ctx context.Context, h *harness) error {
	dir, err := clientsCache("rust-5.0.0")
	if err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "cargo", "build", "--quiet", "--target-dir", dir)
	build.Dir = filepath.Join(h.root, "test", "compat", "rust")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the Rust suite: %w\n%s", err, last(out, 3000))
	}
	return h.script(ctx, exec.CommandContext(ctx, filepath.Join(dir, "debug", "bolide-compat")))
}

func clientsCache(name string) (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "bolide-test", name), err
}

// installOnce runs the commands unless they have succeeded before.
func installOnce(ctx context.Context, dir string, commands ...*exec.Cmd) error {
	done := filepath.Join(dir, "complete")
	if _, err := os.Stat(done); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, c := range commands {
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(c.Args, " "), err, last(out, 3000))
		}
	}
	return os.WriteFile(done, nil, 0o644)
}

// scriptTopics are the topics of the scripts' cases. Some have a group that is made for them.
var scriptTopics = []struct {
	name, kind string
	group      func(group, topic string) []byte
}{
	{"SIMPLE", "NORMAL", nil}, {"PUSH", "NORMAL", nil}, {"AGAIN", "NORMAL", nil}, {"AWAY", "NORMAL", nil}, {"ASYNC", "NORMAL", nil},
	{"SQL92", "NORMAL", nil}, {"BATCH", "NORMAL", nil}, {"PACKED", "NORMAL", nil}, {"FIFO", "FIFO", nil},
	{"PRIORITY", "PRIORITY", nil}, {"DELAY", "DELAY", nil}, {"TRANSACTION", "TRANSACTION", nil},
	{"LITE", "LITE", liteGroup}, {"LITE_SIMPLE", "LITE", liteGroup},
	{"DEAD", "NORMAL", oneRetry(false)}, {"DEAD_FIFO", "FIFO", oneRetry(true)},
	{"OF_NORMAL", "NORMAL", nil}, {"OF_FIFO", "FIFO", nil}, {"OF_DELAY", "DELAY", nil},
	{"OF_TRANSACTION", "TRANSACTION", nil}, {"OF_PRIORITY", "PRIORITY", nil}, {"OF_LITE", "LITE", nil},
}

func liteGroup(group, topic string) []byte { return liteGroupBody(group, topic) }

// oneRetry describes a group in which a message that has failed twice is a dead letter.
func oneRetry(orderly bool) func(group, topic string) []byte {
	return func(group, _ string) []byte {
		return fmt.Appendf(nil, `{"groupName":%q,"consumeEnable":true,"consumeMessageOrderly":%v,"retryQueueNums":1,"retryMaxTimes":1}`, group, orderly)
	}
}

// script runs the suite of a client in another language, with topics made for it.
func (h *harness) script(ctx context.Context, cmd *exec.Cmd, env ...string) error {
	cmd.Env = append(h.env(env...), fmt.Sprintf("COMPAT_COUNT=%d", min(h.count, 2000)), "COMPAT_ONLY="+h.only)
	for _, t := range scriptTopics {
		name := fmt.Sprintf("script-%s-%d", strings.ToLower(strings.ReplaceAll(t.name, "_", "-")), time.Now().UnixNano())
		if err := h.createTopic(ctx, name, t.kind); err != nil {
			return err
		}
		cmd.Env = append(cmd.Env, "COMPAT_TOPIC_"+t.name+"="+name)
		if t.group != nil {
			if err := h.createGroup(ctx, name, t.group(name, name)); err != nil {
				return err
			}
			cmd.Env = append(cmd.Env, "COMPAT_GROUP_"+t.name+"="+name)
		}
		if t.name == "PACKED" {
			if err := h.sendPacked(ctx, name); err != nil {
				return err
			}
		}
	}
	return h.stream(cmd, func(line string) bool { return verdict.MatchString(line) || strings.Contains(line, "Error") })
}

// createGroup makes the group that body describes.
func (h *harness) createGroup(ctx context.Context, group string, body []byte) error {
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	r, err := c.Call(ctx, h.target.Broker, remoting.ReqUpdateAndCreateSubscriptionGroup, nil, body)
	if err != nil || r.Code != remoting.ResSuccess {
		return fmt.Errorf("create group %s: %v, %+v", group, err, r)
	}
	return nil
}

// createTopic makes a topic of eight queues and waits until it has a route.
func (h *harness) createTopic(ctx context.Context, name, kind string) error {
	return h.createTopicOf(ctx, name, kind, 8)
}

func (h *harness) createTopicOf(ctx context.Context, name, kind string, queues int32) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := transport.NewClient(transport.ClientOptions{})
	defer c.Close()
	r, err := c.Call(ctx, h.target.Broker, remoting.ReqUpdateAndCreateTopic, &remoting.UpdateAndCreateTopicRequest{
		Topic: name, DefaultTopic: "TBW102", ReadQueueNums: queues, WriteQueueNums: queues, Perm: 6, TopicFilterType: "SINGLE_TAG", Attributes: "+message.type=" + kind}, nil)
	if err != nil || r.Code != remoting.ResSuccess {
		return fmt.Errorf("create topic %s: %v, %+v", name, err, r)
	}
	for {
		r, err := c.Call(ctx, h.target.Namesrv, remoting.ReqGetRouteInfoByTopic, &remoting.GetRouteInfoByTopicRequest{Topic: name}, nil)
		if err == nil && r.Code == remoting.ResSuccess {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no route to topic %s: %v", name, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

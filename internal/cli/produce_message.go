package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// messageFlags say what the messages are that produce sends.
type messageFlags struct {
	tag, messageGroup, at, lite string
	keys, properties            []string
	delay                       time.Duration
	priority                    int32

	kind string // what they make of the messages, as topics name it
}

func (f *messageFlags) flags(c *cobra.Command) {
	fs := c.Flags()
	fs.StringVar(&f.tag, "tag", "", "`TAG` of the messages")
	fs.StringArrayVar(&f.keys, "key", nil, "`KEY` of the messages, to find them by; may be repeated")
	fs.StringVar(&f.messageGroup, "message-group", "", "messages of one `GROUP` are delivered in order")
	spanVar(fs, &f.delay, "delay", 0, 0, 10*365*24*time.Hour, "nobody gets a message before this time has passed")
	fs.StringVar(&f.at, "at", "", "nobody gets a message before this `TIME`, such as 2026-05-04T12:00:00Z, or milliseconds since 1970")
	numberVar(fs, &f.priority, "priority", 0, 0, 65535, "`NUMBER` of urgency, the largest first, where the topic is of type priority")
	fs.StringVar(&f.lite, "lite", "", "lite `TOPIC` below the topic, where that is of type lite")
	fs.StringArrayVar(&f.properties, "property", nil, "a property `NAME=VALUE` of the messages; may be repeated")
}

// flagOf are the flags that set what is no property of the user's own.
var flagOf = map[string]string{
	message.PropertyTags:           "--tag",
	message.PropertyKeys:           "--key",
	message.PropertyShardingKey:    "--message-group",
	message.PropertyDelay:          "--delay",
	message.PropertyTimerDelayMs:   "--delay",
	message.PropertyTimerDelaySec:  "--delay",
	message.PropertyTimerDeliverMs: "--at",
	message.PropertyPriority:       "--priority",
	message.PropertyLiteTopic:      "--lite",
}

// read makes properties of the flags, all but those that each message has of its own.
func (f *messageFlags) read(c *cobra.Command) (message.Properties, error) {
	var text []byte
	add := func(name, value string) error {
		if value == "" {
			return nil
		}
		if err := message.CheckProperty(name, value); err != nil {
			return err
		}
		text = message.AppendProperty(text, name, value)
		return nil
	}
	due, err := f.due()
	err = errors.Join(err, f.oneKind(c), add(message.PropertyTags, f.tag), add(message.PropertyKeys, strings.Join(f.keys, " ")),
		add(message.PropertyShardingKey, f.messageGroup), add(message.PropertyTimerDeliverMs, due), add(message.PropertyLiteTopic, f.lite))
	if c.Flags().Changed("priority") {
		err = errors.Join(err, add(message.PropertyPriority, strconv.Itoa(int(f.priority))))
	}
	for _, p := range f.properties {
		name, value, ok := strings.Cut(p, "=")
		switch flag := flagOf[name]; {
		case !ok:
			err = errors.Join(err, fmt.Errorf("--property %q is not NAME=VALUE", p))
		case flag != "":
			err = errors.Join(err, fmt.Errorf("--property %s: the name is reserved, %s sets it", name, flag))
		case message.Reserved(name):
			err = errors.Join(err, fmt.Errorf("--property %s: the name is reserved", name))
		default:
			err = errors.Join(err, add(name, value))
		}
	}
	return message.Properties(text), err
}

// due is the time of --at in milliseconds.
func (f *messageFlags) due() (string, error) {
	if _, err := strconv.ParseUint(f.at, 10, 63); err == nil || f.at == "" {
		return f.at, nil
	}
	at, err := time.ParseInLocation(time.RFC3339, f.at, time.Local)
	if err != nil {
		return "", fmt.Errorf("--at %q is not a time such as 2026-05-04T12:00:00Z, or milliseconds", f.at)
	}
	return strconv.FormatInt(at.UnixMilli(), 10), nil
}

// oneKind finds which kind the messages are of; a message is of one.
func (f *messageFlags) oneKind(c *cobra.Command) error {
	f.kind = "normal"
	by := ""
	for _, one := range []struct{ flag, kind string }{
		{"message-group", "fifo"}, {"delay", "delay"}, {"at", "delay"}, {"priority", "priority"}, {"lite", "lite"},
	} {
		if !c.Flags().Changed(one.flag) {
			continue
		}
		if by != "" {
			return fmt.Errorf("--%s and --%s: a message has one of them", by, one.flag)
		}
		by, f.kind = one.flag, one.kind
	}
	return nil
}

// own are the properties of one message alone.
func (f *messageFlags) own(properties message.Properties, id string, now time.Time) message.Properties {
	properties = properties.WithAll(message.PropertyUniqKey, id, message.PropertyWait, "true")
	if f.delay > 0 {
		properties = properties.With(message.PropertyTimerDeliverMs, strconv.FormatInt(now.Add(f.delay).UnixMilli(), 10))
	}
	return properties
}

// makes are the flags that make messages what a topic of a type is for.
var makes = map[string]string{
	"fifo": "--message-group", "delay": "--delay or --at", "priority": "--priority", "lite": "--lite",
	"transaction": "a producer with transactions",
}

// misfit is what is to be said about messages that a topic is not for: brokers take them over
// this protocol, and producers over gRPC are refused.
func (f *messageFlags) misfit(topic, kind string) string {
	if kind == f.kind || kind == "mixed" || kind == "unspecified" && f.kind == "normal" {
		return ""
	}
	text := fmt.Sprintf("warning: topic %s is of type %s, and these messages are of type %s, which gRPC producers are refused for", topic, kind, f.kind)
	if by := makes[kind]; by != "" {
		text += "; " + by + " makes them " + kind
	}
	return text
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// corpus is SQL92 expressions, the properties of messages, and what Apache RocketMQ said of
// each pair. internal/wire/filter has a test of the same file.
type corpus struct {
	Made        string       `json:"made"`
	Messages    []string     `json:"messages"` // properties as they are stored
	Expressions []expression `json:"expressions"`
}

type expression struct {
	Text    string `json:"text"`
	Code    int32  `json:"code,omitempty"` // of the refusal
	Matches []int  `json:"matches,omitempty"`
}

const corpusFile = "internal/wire/filter/testdata/apache-5.5.0.json"

// filtersSuite pulls by the expressions of the corpus and holds that the server says of
// each message what Apache said. With --record it makes a new corpus of what Apache says.
func filtersSuite(ctx context.Context, h *harness) error {
	path := filepath.Join(h.root, filepath.FromSlash(corpusFile))
	var c corpus
	if h.record {
		if !h.apache {
			return errors.New("--record is for --server apache")
		}
		c = newCorpus()
	} else if text, err := os.ReadFile(path); err != nil {
		return err
	} else if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	w, err := dial(ctx, h)
	if err != nil {
		return err
	}
	defer w.close()
	answers, err := w.filtered(&c)
	if err != nil {
		return err
	}
	if h.record {
		c.Expressions = answers
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		h.report("filters: "+corpusFile, os.WriteFile(path, c.text(), 0o644))
		return nil
	}
	refused := 0
	for i, want := range c.Expressions {
		got := answers[i]
		switch {
		case got.Code == want.Code && slices.Equal(got.Matches, want.Matches):
		case !h.apache && got.Code == remoting.ResSubscriptionParseFailed && want.Code == 0:
			refused++ // TestDiffSQL92MustEnd; the filter's own test looks at each
		default:
			h.report("filter "+strconv.Quote(want.Text), fmt.Errorf("code %d, messages %v; want code %d, messages %v", got.Code, got.Matches, want.Code, want.Matches))
		}
	}
	fmt.Printf("%d expressions on %d messages, of which %d refused for what follows their end\n", len(answers), len(c.Messages), refused)
	h.report("filters", nil)
	return nil
}

// filtered asks the server for all of the corpus.
func (w *wire) filtered(c *corpus) (answers []expression, err error) {
	err = attempt(func() {
		topic, group := w.topic(1), w.group()
		for i, properties := range c.Messages {
			w.ok(w.send(topic, strconv.Itoa(i), properties))
		}
		w.until("dispatch", func() bool { return w.end(topic, 0) == int64(len(c.Messages)) })
		for i := range c.Expressions {
			answers = append(answers, w.filter(topic, group, c.Expressions[i].Text, int64(len(c.Messages))))
		}
	})
	return answers, err
}

// filter pulls a queue to its end by one expression. Whether it can be read is asked before:
// to a pull by one that can't, Apache gives everything.
func (w *wire) filter(topic, group, text string, end int64) expression {
	e := expression{Text: text}
	check := remoting.CheckClientBody{ClientID: "c", Group: group, SubscriptionData: &remoting.SubscriptionData{Topic: topic, ExpressionType: "SQL92", SubString: text}}
	if a := w.call(w.broker(), remoting.ReqCheckClientConfig, nil, remoting.Marshal(&check)); a.Code != remoting.ResSuccess {
		e.Code = a.Code
		return e
	}
	h := &remoting.PullMessageRequest{ConsumerGroup: group, Topic: topic, MaxMsgNums: 32, SysFlag: remoting.PullSubscription,
		Subscription: text, ExpressionType: "SQL92", SubVersion: time.Now().UnixMilli()}
	for h.QueueOffset < end {
		a := w.call(w.broker(), remoting.ReqPullMessage, h, nil)
		if a.Code != remoting.ResSuccess && a.Code != remoting.ResPullRetryImmediately {
			e.Code = a.Code
			return e
		}
		var next remoting.PullMessageResponse
		w.must(a.Decode(&next))
		for body := a.Body; len(body) > 0; {
			var m message.Message
			n, err := message.DecodeStored(body, &m)
			w.must(err)
			number, err := strconv.Atoi(string(m.Body))
			w.must(err)
			e.Matches = append(e.Matches, number)
			body = body[n:]
		}
		if next.NextBeginOffset <= h.QueueOffset {
			w.must(fmt.Errorf("%q: offset %d is followed by %d", text, h.QueueOffset, next.NextBeginOffset))
		}
		h.QueueOffset = next.NextBeginOffset
	}
	return e
}

// text is the corpus with one line for each message and expression.
func (c *corpus) text() []byte {
	var b strings.Builder
	line := func(v any) {
		text, _ := json.Marshal(v)
		b.Write(text)
	}
	b.WriteString("{\"made\": ")
	line(c.Made)
	b.WriteString(",\n\"messages\": [\n")
	for i, m := range c.Messages {
		line(m)
		b.WriteString(separator(i, len(c.Messages)))
	}
	b.WriteString("],\n\"expressions\": [\n")
	for i := range c.Expressions {
		line(&c.Expressions[i])
		b.WriteString(separator(i, len(c.Expressions)))
	}
	b.WriteString("]}\n")
	return []byte(b.String())
}

func separator(i, n int) string {
	if i < n-1 {
		return ",\n"
	}
	return "\n"
}

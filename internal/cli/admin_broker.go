package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// What a broker is that a name server knows of.
const (
	brokerUp      = "up"
	brokerSilent  = "does not answer"
	brokerGone    = "gone"
	brokerStopped = "stopped"
)

// brokerLine is what a broker is, in the words of brokerList.
type brokerLine struct {
	Broker     string     `json:"broker"`
	ID         int64      `json:"id"`
	Cluster    string     `json:"cluster"`
	Address    string     `json:"address"`
	State      string     `json:"state"`
	Since      *time.Time `json:"since,omitempty"` // that it runs or is gone; nil: unknown
	Version    string     `json:"version,omitempty"`
	Permission string     `json:"permission,omitempty"`
	In         *flow      `json:"in,omitempty"`
	Out        *flow      `json:"out,omitempty"`
	Error      string     `json:"error,omitempty"`
}

// flow is messages that come in or go out. Apache's server knows no rate when it has just been
// started.
type flow struct {
	PerSecond *float64 `json:"perSecond,omitempty"`
	Today     int64    `json:"today"`
}

func brokerList(r *remote) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the brokers that the name server knows, with what each says of itself, and those that are gone",
		Long: "Lists the brokers that the name server knows, masters (id 0) and slaves, and asks each what it is.\n" +
			"SINCE is when it was started, or since when it is gone: a name server of Bolide's remembers for a day\n" +
			"brokers that were stopped, and those whose connection ended without a farewell (gone). Messages are\n" +
			"those a second over the last ten, and those since midnight at the broker or its start.",
		Args: none,
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line and broker")
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.open()
		defer r.close()
		all, err := r.brokerLines(c.Context())
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("name server %s knows no broker", r.namesrv)
		}
		if asJSON {
			return printBrokersJSON(c.OutOrStdout(), all)
		}
		printBrokers(c.OutOrStdout(), all)
		return nil
	}
	return c
}

// brokerLines asks for all brokers, in the order of their names and ids.
func (r *remote) brokerLines(ctx context.Context) ([]brokerLine, error) {
	info, err := r.cluster(ctx)
	if err != nil {
		return nil, err
	}
	gone, err := r.gone(ctx)
	if err != nil {
		return nil, err
	}
	var all []brokerLine
	for name, b := range info.BrokerAddrTable {
		for id, addr := range b.BrokerAddrs {
			all = append(all, brokerLine{Broker: name, ID: id, Cluster: b.Cluster, Address: addr})
		}
	}
	for i := range all {
		err := r.askBroker(ctx, &all[i])
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil: // which is an answer, too
			all[i].Error = plain(err).Error()
			if errors.As(err, new(silence)) {
				all[i].State = brokerSilent
			}
		}
	}
	for _, g := range gone {
		since := time.UnixMilli(g.Since)
		all = append(all, brokerLine{Broker: g.Name, Cluster: g.Cluster, Address: g.Address, Since: &since,
			State: map[bool]string{true: brokerStopped, false: brokerGone}[g.Stopped]})
	}
	slices.SortFunc(all, func(a, b brokerLine) int { return cmp.Or(strings.Compare(a.Broker, b.Broker), cmp.Compare(a.ID, b.ID)) })
	return all, nil
}

// askBroker asks a broker what it is.
func (r *remote) askBroker(ctx context.Context, b *brokerLine) error {
	answer, err := r.call(ctx, b.Address, remoting.ReqGetBrokerRuntimeInfo, nil, nil)
	if !errors.As(err, new(silence)) {
		b.State = brokerUp
	}
	if err != nil {
		return err
	}
	var info remoting.KVTable
	if err := remoting.Unmarshal(answer.Body, &info); err != nil {
		return fmt.Errorf("runtime info of %s: %w", b.Address, err)
	}
	b.Version = info.Table["brokerVersionDesc"]
	if own := info.Table["bolideVersion"]; own != "" {
		b.Version = "bolide " + own
	}
	if ms, err := strconv.ParseInt(info.Table["bootTimestamp"], 10, 64); err == nil {
		since := time.UnixMilli(ms)
		b.Since = &since
	}
	b.In, b.Out = flowOf(info.Table, "putTps", "msgPut"), flowOf(info.Table, "getTransferredTps", "msgGet")
	answer, err = r.call(ctx, b.Address, remoting.ReqGetBrokerConfig, nil, nil)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(answer.Body))
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "brokerPermission="); ok {
			b.Permission = permission(text)
		}
	}
	return lines.Err()
}

// flowOf reads rates of the last 10, 60 and 600 seconds, and what was counted until now and
// until this morning.
func flowOf(info map[string]string, rates, counts string) *flow {
	now, err := strconv.ParseInt(info[counts+"TotalTodayNow"], 10, 64)
	morning, morningErr := strconv.ParseInt(info[counts+"TotalTodayMorning"], 10, 64)
	if err != nil || morningErr != nil {
		return nil
	}
	f := &flow{Today: now - morning}
	if rate, err := strconv.ParseFloat(strings.SplitN(info[rates], " ", 2)[0], 64); err == nil {
		f.PerSecond = &rate
	}
	return f
}

// permission is what a broker as a whole allows, in words.
func permission(text string) string {
	bits, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return ""
	}
	return permitted(bits)
}

// permitted is a permission in words.
func permitted(bits int64) string {
	switch bits & (permRead | permWrite) {
	case permRead | permWrite:
		return "read, write"
	case permRead:
		return "read"
	case permWrite:
		return "write"
	}
	return "none"
}

func printBrokersJSON(out io.Writer, all []brokerLine) error {
	e := json.NewEncoder(out)
	for i := range all {
		if all[i].Since != nil {
			utc := all[i].Since.UTC()
			all[i].Since = &utc
		}
		if err := e.Encode(&all[i]); err != nil {
			return err
		}
	}
	return nil
}

func printBrokers(out io.Writer, all []brokerLine) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "BROKER\tID\tCLUSTER\tADDRESS\tSTATE\tSINCE\tVERSION\tPERMISSION\tIN/S\tOUT/S\tIN TODAY\tOUT TODAY")
	for i := range all {
		b := &all[i]
		since := "-"
		if b.Since != nil {
			since = b.Since.Format(time.DateTime)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", b.Broker, b.ID, b.Cluster, b.Address, b.State, since,
			orDash(b.Version), orDash(b.Permission), b.In.rate(), b.Out.rate(), b.In.today(), b.Out.today())
	}
}

func (f *flow) rate() string {
	if f == nil || f.PerSecond == nil {
		return "-"
	}
	return strconv.FormatFloat(*f.PerSecond, 'f', 1, 64)
}

func (f *flow) today() string {
	if f == nil {
		return "-"
	}
	return strconv.FormatInt(f.Today, 10)
}

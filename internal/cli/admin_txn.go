package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/bolidemq/bolide/internal/wire/receipt"
	"github.com/bolidemq/bolide/internal/wire/remoting"
)

// maxTransactions is how many a server lists at most.
const maxTransactions = 10_000

// txnList lists half messages that nobody has decided yet.
func txnList(r *remote) *cobra.Command {
	var ask remoting.ListTransactionsRequest
	c := &cobra.Command{
		Use:   "list",
		Short: "List half messages that are neither committed nor rolled back, the oldest first",
		Args:  none,
	}
	c.Flags().StringVar(&ask.Topic, "topic", "", "only those for `TOPIC`")
	c.Flags().StringVar(&ask.Group, "group", "", "only those of producer group `GROUP`; a producer over gRPC is of the group of its topic's name")
	numberVar(c.Flags(), &ask.Limit, "limit", 100, 0, maxTransactions, "`NUMBER` to list of each broker")
	c.RunE = func(c *cobra.Command, _ []string) error {
		r.open()
		defer r.close()
		all, err := r.census(c.Context())
		if err != nil {
			return err
		}
		err = all.each(c.Context(), func(b master) error {
			list, err := r.transactions(c.Context(), b, ask)
			if err == nil {
				printTransactions(c.OutOrStdout(), b.broker, list)
			}
			return err
		})
		if err != nil {
			return err
		}
		return all.incomplete("these are not all")
	}
	return c
}

func (r *remote) transactions(ctx context.Context, at master, ask remoting.ListTransactionsRequest) (*remoting.TransactionList, error) {
	answer, err := r.call(ctx, at.addr, remoting.ReqBolideListTransactions, &ask, nil)
	if refusedWith(err, remoting.ResRequestCodeNotSupported) {
		return nil, fmt.Errorf("%s is no bolide server, only those list transactions", at.addr)
	}
	if err != nil {
		return nil, err
	}
	list := new(remoting.TransactionList)
	if err := remoting.Unmarshal(answer.Body, list); err != nil {
		return nil, fmt.Errorf("transactions: %w", err)
	}
	return list, nil
}

func printTransactions(out io.Writer, broker string, list *remoting.TransactionList) {
	fmt.Fprintf(out, "%d undecided on %s\n", list.Total, broker)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if len(list.Transactions) > 0 {
		fmt.Fprintln(w, "TRANSACTION\tTOPIC\tGROUP\tMESSAGE\tBYTES\tSINCE\tAGE\tCHECKS\tNEXT CHECK")
	}
	for i := range list.Transactions {
		t := &list.Transactions[i]
		id := receipt.Transaction{QueueOffset: t.TranStateTableOffset, LogOffset: t.CommitLogOffset, Broker: broker}
		next := "due"
		if t.Due > list.Now {
			next = "in " + short(t.Due-list.Now)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%d\t%s\n", id, t.Topic, t.Group, t.MsgID, t.Size,
			time.UnixMilli(t.StoreTime).Format(time.DateTime), short(list.Now-t.StoreTime), t.Checks, next)
	}
	w.Flush()
	if more := list.Total - int64(len(list.Transactions)); more > 0 {
		fmt.Fprintf(out, "and %d more; --limit lists them\n", more)
	}
}

// txnDecide decides listed transactions in their producers' place.
func txnDecide(r *remote, verb string, what int32) *cobra.Command {
	c := &cobra.Command{
		Use:   verb + " TRANSACTION...",
		Short: map[string]string{"commit": "Commit half messages: their consumers get them", "rollback": "Roll half messages back: nobody gets them"}[verb],
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("%s needs a transaction id, as bolide admin txn list shows them: %s", c.CommandPath(), c.UseLine())
			}
			return nil
		},
		Example: "  bolide admin txn " + verb + " t1.7.3k2.broker-a",
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		r.open()
		defer r.close()
		brokers, err := r.masters(c.Context())
		if err != nil {
			return err
		}
		for _, text := range args {
			id, err := receipt.ParseTransaction(text)
			if err != nil {
				return fmt.Errorf("%w (bolide admin txn list shows the ids)", err)
			}
			if err := r.decide(c.Context(), brokers, id, what); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s\n", text, map[string]string{"commit": "committed", "rollback": "rolled back"}[verb])
		}
		return nil
	}
	return c
}

func (r *remote) decide(ctx context.Context, brokers []master, id receipt.Transaction, what int32) error {
	for _, b := range brokers {
		if b.broker != id.Broker {
			continue
		}
		list, err := r.transactions(ctx, b, remoting.ListTransactionsRequest{Limit: maxTransactions})
		if err != nil {
			return err
		}
		for i := range list.Transactions {
			t := &list.Transactions[i]
			if t.TranStateTableOffset != id.QueueOffset || t.CommitLogOffset != id.LogOffset {
				continue
			}
			_, err := r.call(ctx, b.addr, remoting.ReqEndTransaction, &remoting.EndTransactionRequest{Topic: t.Topic, ProducerGroup: t.Group,
				TranStateTableOffset: t.TranStateTableOffset, CommitLogOffset: t.CommitLogOffset, CommitOrRollback: what, MsgID: t.MsgID, TransactionID: t.MsgID}, nil)
			return err
		}
		return fmt.Errorf("it is decided already, or was never on %s", b.broker)
	}
	return fmt.Errorf("there is no broker %s", id.Broker)
}

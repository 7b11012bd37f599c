package grpcv2

import (
	"context"
	"errors"
	"strconv"
	"sync"

	v2 "github.com/apache/rocketmq-clients/golang/v5/protocol/v2"
	"google.golang.org/grpc"

	"github.com/bolidemq/bolide/internal/proxy"
)

var errStreamEnded = errors.New("the client's telemetry stream has ended")

// session is one telemetry stream. It implements proxy.Commander.
//
// Sends are serialised by sending, which is held while the client does not read;
// therefore no other lock is held around a send. mu guards the commands that wait for
// their answer, by nonce.
type session struct {
	stream  grpc.ServerStreamingServer[v2.TelemetryCommand]
	sending sync.Mutex
	mu      struct {
		sync.Mutex
		ended   bool
		next    uint64
		waiting map[string]chan *v2.TelemetryCommand
	}
}

func newSession(stream grpc.ServerStreamingServer[v2.TelemetryCommand]) *session {
	ses := &session{stream: stream}
	ses.mu.waiting = make(map[string]chan *v2.TelemetryCommand)
	return ses
}

func (ses *session) send(cmd *v2.TelemetryCommand) error {
	ses.sending.Lock()
	defer ses.sending.Unlock()
	return ses.stream.Send(cmd)
}

// end gives up on all answers.
func (ses *session) end() {
	ses.mu.Lock()
	defer ses.mu.Unlock()
	ses.mu.ended = true
	for nonce, ch := range ses.mu.waiting {
		close(ch)
		delete(ses.mu.waiting, nonce)
	}
}

func (ses *session) answered(nonce string, cmd *v2.TelemetryCommand) {
	ses.mu.Lock()
	ch, is := ses.mu.waiting[nonce]
	delete(ses.mu.waiting, nonce)
	ses.mu.Unlock()
	if is {
		ch <- cmd
	}
}

// call sends what command makes of a nonce and waits for the client's answer.
func (ses *session) call(ctx context.Context, command func(nonce string) *v2.TelemetryCommand) (*v2.TelemetryCommand, error) {
	ch := make(chan *v2.TelemetryCommand, 1)
	ses.mu.Lock()
	if ses.mu.ended {
		ses.mu.Unlock()
		return nil, errStreamEnded
	}
	ses.mu.next++
	nonce := strconv.FormatUint(ses.mu.next, 10)
	ses.mu.waiting[nonce] = ch
	ses.mu.Unlock()
	forget := func() {
		ses.mu.Lock()
		delete(ses.mu.waiting, nonce)
		ses.mu.Unlock()
	}
	if err := ses.send(command(nonce)); err != nil {
		forget()
		return nil, err
	}
	select {
	case cmd, is := <-ch:
		if !is {
			return nil, errStreamEnded
		}
		return cmd, nil
	case <-ctx.Done():
		forget()
		return nil, ctx.Err()
	}
}

// StackTrace implements proxy.Commander.
func (ses *session) StackTrace(ctx context.Context) (string, error) {
	cmd, err := ses.call(ctx, func(nonce string) *v2.TelemetryCommand {
		return &v2.TelemetryCommand{Command: &v2.TelemetryCommand_PrintThreadStackTraceCommand{
			PrintThreadStackTraceCommand: &v2.PrintThreadStackTraceCommand{Nonce: nonce}}}
	})
	if err != nil {
		return "", err
	}
	if code := cmd.GetStatus().GetCode(); code != v2.Code_OK && code != v2.Code_CODE_UNSPECIFIED {
		return "", errors.New(cmd.GetStatus().GetMessage())
	}
	return cmd.GetThreadStackTrace().GetThreadStackTrace(), nil
}

// Verify implements proxy.Commander.
func (ses *session) Verify(ctx context.Context, topic string, record []byte) (proxy.Verdict, error) {
	msg, err := messageOf(topic, record)
	if err != nil {
		return proxy.VerdictNone, err
	}
	cmd, err := ses.call(ctx, func(nonce string) *v2.TelemetryCommand {
		return &v2.TelemetryCommand{Command: &v2.TelemetryCommand_VerifyMessageCommand{
			VerifyMessageCommand: &v2.VerifyMessageCommand{Nonce: nonce, Message: msg}}}
	})
	if err != nil {
		return proxy.VerdictNone, err
	}
	switch cmd.GetStatus().GetCode() {
	case v2.Code_OK:
		return proxy.VerdictConsumed, nil
	case v2.Code_FAILED_TO_CONSUME_MESSAGE:
		return proxy.VerdictFailed, nil
	case v2.Code_MESSAGE_CORRUPTED:
		return proxy.VerdictCorrupted, nil
	default:
		return proxy.VerdictNone, nil
	}
}

// Recover implements proxy.Commander.
func (ses *session) Recover(topic string, record []byte, transactionID string) error {
	msg, err := messageOf(topic, record)
	if err != nil {
		return err
	}
	return ses.send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_RecoverOrphanedTransactionCommand{
		RecoverOrphanedTransactionCommand: &v2.RecoverOrphanedTransactionCommand{Message: msg, TransactionId: transactionID}}})
}

// Unsubscribe implements proxy.Commander.
func (ses *session) Unsubscribe(lite string) error {
	return ses.send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_NotifyUnsubscribeLiteCommand{
		NotifyUnsubscribeLiteCommand: &v2.NotifyUnsubscribeLiteCommand{LiteTopic: lite}}})
}

// Reconnect implements proxy.Commander.
func (ses *session) Reconnect() error {
	return ses.send(&v2.TelemetryCommand{Command: &v2.TelemetryCommand_ReconnectEndpointsCommand{
		ReconnectEndpointsCommand: &v2.ReconnectEndpointsCommand{}}})
}

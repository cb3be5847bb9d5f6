package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// session copies what it consumes, in upper case, one transaction at a time.
type session struct {
	*kgo.GroupTransactSession
}

func openSession(r *request) (*session, error) {
	made, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(r.Bootstrap), kgo.ConsumerGroup(r.Group), kgo.ConsumeTopics(r.Topics...),
		kgo.TransactionalID(r.TransactionalID), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RequireStableFetchOffsets(),
		kgo.HeartbeatInterval(300*time.Millisecond), kgo.MetadataMinAge(100*time.Millisecond),
	)
	if err != nil {
		return nil, err
	}
	return &session{made}, nil
}

// copy ends a transaction with the next records; it tells their values and whether they are committed.
func (s *session) copy(ctx context.Context, r *request) (any, error) {
	if err := s.Begin(); err != nil {
		return nil, err
	}
	values := []string{}
	for len(values) < r.Count {
		fetches := s.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("%w after %d records", err, len(values))
		}
		fetches.EachRecord(func(record *kgo.Record) {
			values = append(values, string(record.Value))
			s.Produce(ctx, &kgo.Record{Topic: r.To, Value: bytes.ToUpper(record.Value)}, nil)
		})
	}
	committed, err := s.End(ctx, kgo.TransactionEndTry(r.Commit))
	return []any{values, committed}, err
}

func transact(ctx context.Context, r *request) (any, error) {
	if r.Op == "session.open" {
		made, err := openSession(r)
		if err == nil {
			sessions.Store(r.Name, made)
		}
		return nil, err
	}
	found, known := sessions.Load(r.Name)
	if !known {
		return nil, fmt.Errorf("no session %s", r.Name)
	}
	switch r.Op {
	case "session.copy":
		return found.(*session).copy(ctx, r)
	case "session.close":
		sessions.Delete(r.Name)
		found.(*session).Close()
		return nil, nil
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

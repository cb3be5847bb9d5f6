package main

import (
	"context"
	"fmt"
	"sort"
	"sync"
)

// joined is a consumer of a library that keeps no record of what it has seen.
type joined interface {
	commit(ctx context.Context, offsets []position) error
	log() *log
	close() error
}

// owned is one with what it takes to ask for its group.
type owned struct {
	joined
	library client
	asked   *request
}

func (o owned) state() any { return o.log().state() }

func (o owned) records() any { return o.log().records() }

func (o owned) committed(ctx context.Context, r *request) (any, error) {
	return o.library.admin(ctx, &request{
		Op: "admin.committed", Bootstrap: o.asked.Bootstrap, Group: o.asked.Group, Partitions: r.Partitions,
	})
}

func (o owned) close(bool) error { return o.joined.close() }

// log is what a member has seen.
type log struct {
	mu         sync.Mutex
	held       [][2]any
	generation any
	id         string
	read       [][4]any
	rebalances int
	fatal      string
}

func (l *log) assigned(held [][2]any, generation int32, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held, l.generation, l.id = held, generation, id
	l.rebalances++
}

func (l *log) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fatal = code(err)
}

func (l *log) add(topic string, partition int32, offset int64, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = append(l.read, [4]any{topic, partition, offset, text})
}

func (l *log) state() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	state := map[string]any{
		"assignment": append([][2]any{}, l.held...), "generation": l.generation, "member_id": l.id,
		"rebalances": l.rebalances, "read": len(l.read), "fatal": nil,
	}
	if l.fatal != "" {
		state["fatal"] = l.fatal
	}
	return state
}

func (l *log) records() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([][4]any{}, l.read...)
}

func sorted(rows []map[string]any) []map[string]any {
	sort.Slice(rows, func(i, j int) bool { return fmt.Sprint(rows[i]) < fmt.Sprint(rows[j]) })
	return rows
}

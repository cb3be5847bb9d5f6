package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type partition struct {
	topic string
	id    int32
}

// franzMember is one group consumer, polling in a goroutine of its own.
type franzMember struct {
	client *kgo.Client
	group  string
	stop   context.CancelFunc
	done   chan struct{}

	mu         sync.Mutex
	held       map[partition]bool
	read       [][4]any
	rebalances int
	heard      [][2]any
	fatal      string
}

type franz struct{}

func (franz) start(r *request) (member, error) {
	m := &franzMember{group: r.Group, held: map[partition]bool{}, done: make(chan struct{})}
	options, err := m.options(r)
	if err != nil {
		return nil, err
	}
	if m.client, err = kgo.NewClient(options...); err != nil {
		return nil, err
	}
	if len(r.Config) > 0 {
		// who is kept out tries for ever, and tells nobody
		asked, enough := context.WithTimeout(context.Background(), patience)
		defer enough()
		if err := m.client.Ping(asked); err != nil {
			m.client.Close()
			return nil, err
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	go m.poll(ctx)
	return m, nil
}

func (m *franzMember) options(r *request) ([]kgo.Opt, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(r.Bootstrap), kgo.ConsumerGroup(r.Group), kgo.ClientID(r.Name),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.MetadataMaxAge(time.Second),
		kgo.FetchMaxWait(500 * time.Millisecond), // as other clients: added partitions wait for the fetch before
		kgo.OnPartitionsAssigned(m.assigned), kgo.OnPartitionsRevoked(m.revoked), kgo.OnPartitionsLost(m.lost),
	}
	locks, err := keys(r.Config)
	if err != nil {
		return nil, err
	}
	options = append(options, locks...)
	if r.Pattern != "" {
		options = append(options, kgo.ConsumeRegex(), kgo.ConsumeTopics(r.Pattern))
	} else {
		options = append(options, kgo.ConsumeTopics(r.Topics...))
	}
	if r.Instance != "" {
		options = append(options, kgo.InstanceID(r.Instance))
	}
	if r.Protocol == "consumer" {
		return append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer())), nil
	}
	balancers := map[string]kgo.GroupBalancer{
		"range": kgo.RangeBalancer(), "roundrobin": kgo.RoundRobinBalancer(),
		"sticky": kgo.StickyBalancer(), "cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	balancer, known := balancers[r.Assignor]
	if !known {
		return nil, fmt.Errorf("no assignor %q", r.Assignor)
	}
	session := time.Duration(r.SessionMs) * time.Millisecond
	beat := kgo.HeartbeatInterval(300 * time.Millisecond)
	return append(options, kgo.Balancers(balancer), kgo.SessionTimeout(session), beat), nil
}

func (m *franzMember) assigned(_ context.Context, _ *kgo.Client, added map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rebalances++
	m.note("assigned", added)
	for topic, ids := range added {
		for _, id := range ids {
			m.held[partition{topic, id}] = true
		}
	}
}

func (m *franzMember) revoked(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	m.drop("revoked", gone)
}

func (m *franzMember) lost(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	m.drop("lost", gone)
}

// note keeps what a callback was called with; with the lock held.
func (m *franzMember) note(callback string, partitions map[string][]int32) {
	ids := []int32{}
	for _, each := range partitions {
		ids = append(ids, each...)
	}
	slices.Sort(ids)
	m.heard = append(m.heard, [2]any{callback, ids})
}

func (m *franzMember) heardSoFar() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([][2]any{}, m.heard...)
}

func (m *franzMember) drop(callback string, gone map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(callback, gone)
	for topic, ids := range gone {
		for _, id := range ids {
			delete(m.held, partition{topic, id})
		}
	}
}

func (m *franzMember) poll(ctx context.Context) {
	defer close(m.done)
	for ctx.Err() == nil {
		fetches := m.client.PollFetches(ctx)
		for _, failed := range fetches.Errors() {
			if ended(failed.Err) {
				m.mu.Lock()
				m.fatal = code(failed.Err)
				m.mu.Unlock()
				return
			}
		}
		m.mu.Lock()
		fetches.EachRecord(func(r *kgo.Record) {
			m.read = append(m.read, [4]any{r.Topic, r.Partition, r.Offset, string(r.Value)})
		})
		m.mu.Unlock()
	}
}

// ended tells errors that no retry mends from those the client gets over by itself.
func ended(err error) bool {
	for _, final := range []error{kerr.FencedInstanceID, kerr.UnreleasedInstanceID, kerr.InvalidRegularExpression} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}

func (m *franzMember) state() any {
	id, generation := m.client.GroupMetadata()
	m.mu.Lock()
	defer m.mu.Unlock()
	held := make([][2]any, 0, len(m.held))
	for each := range m.held {
		held = append(held, [2]any{each.topic, each.id})
	}
	state := map[string]any{
		"assignment": held, "generation": generation, "member_id": id,
		"rebalances": m.rebalances, "read": len(m.read), "fatal": nil,
	}
	if m.fatal != "" {
		state["fatal"] = m.fatal
	}
	return state
}

func (m *franzMember) records() any {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([][4]any{}, m.read...)
}

func (m *franzMember) commit(ctx context.Context, rows []position) error {
	if rows == nil {
		return m.client.CommitUncommittedOffsets(ctx)
	}
	offsets := map[string]map[int32]kgo.EpochOffset{}
	for _, each := range rows {
		if offsets[each.topic] == nil {
			offsets[each.topic] = map[int32]kgo.EpochOffset{}
		}
		offsets[each.topic][each.partition] = kgo.EpochOffset{Epoch: -1, Offset: each.offset}
	}
	var failed error
	m.client.CommitOffsetsSync(ctx, offsets,
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			if failed = err; err != nil {
				return // without a response
			}
			for _, topic := range response.Topics {
				for _, each := range topic.Partitions {
					failed = errors.Join(failed, kerr.ErrorForCode(each.ErrorCode))
				}
			}
		})
	return failed
}

func (m *franzMember) committed(ctx context.Context, r *request) (any, error) {
	partitions, err := r.places()
	if err != nil {
		return nil, err
	}
	found, err := kadm.NewClient(m.client).FetchOffsets(ctx, m.group)
	if err != nil {
		return nil, err
	}
	rows := []position{}
	for _, each := range partitions {
		if offset, ok := found.Lookup(each.topic, each.partition); ok && offset.At >= 0 {
			rows = append(rows, position{each.topic, each.partition, offset.At})
		}
	}
	return rows, nil
}

// close ends the member as Close does; with tell, what came of leaving the group is returned.
func (m *franzMember) close(tell bool) error {
	m.stop()
	<-m.done
	err := m.client.LeaveGroupContext(context.Background())
	m.client.Close()
	if tell {
		return err
	}
	return nil
}

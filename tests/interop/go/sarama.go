package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

type saramaClient struct{}

func saramaConfig(clientID string) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	if clientID != "" {
		config.ClientID = clientID
	}
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	return config
}

// saramaMember runs one ConsumerGroup: a session for each generation.
type saramaMember struct {
	seen  log
	group sarama.ConsumerGroup
	stop  context.CancelFunc
	done  chan struct{}

	mu      sync.Mutex
	session sarama.ConsumerGroupSession
}

func (saramaClient) start(r *request) (member, error) {
	config := saramaConfig(r.ClientID)
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.InstanceId = r.Instance
	config.Consumer.Group.Session.Timeout = time.Duration(r.SessionMs) * time.Millisecond
	config.Consumer.Group.Heartbeat.Interval = beat
	strategies := map[string]sarama.BalanceStrategy{
		"range": sarama.NewBalanceStrategyRange(), "sticky": sarama.NewBalanceStrategySticky(),
		"roundrobin": sarama.NewBalanceStrategyRoundRobin(),
	}
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{strategies[r.Assignor]}
	group, err := sarama.NewConsumerGroup([]string{r.Bootstrap}, r.Group, config)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &saramaMember{group: group, stop: stop, done: make(chan struct{})}
	go m.consume(ctx, r.Topics)
	return owned{m, saramaClient{}, r}, nil
}

func (m *saramaMember) consume(ctx context.Context, topics []string) {
	defer close(m.done)
	for ctx.Err() == nil {
		err := m.group.Consume(ctx, topics, m)
		if errors.Is(err, sarama.ErrFencedInstancedId) {
			m.seen.failed(err)
			return
		}
	}
}

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	held := [][2]any{}
	for topic, ids := range session.Claims() {
		for _, id := range ids {
			held = append(held, [2]any{topic, id})
		}
	}
	m.seen.assigned(held, session.GenerationID(), session.MemberID())
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = session
	return nil
}

func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case each, more := <-claim.Messages():
			if !more {
				return nil
			}
			m.seen.add(each.Topic, each.Partition, each.Offset, string(each.Value))
			session.MarkMessage(each, "")
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *saramaMember) log() *log { return &m.seen }

// commit moves the marks to the offsets, down as well as up, and commits all marks.
func (m *saramaMember) commit(_ context.Context, offsets []position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, each := range offsets {
		m.session.ResetOffset(each.topic, each.partition, each.offset, "")
		m.session.MarkOffset(each.topic, each.partition, each.offset, "")
	}
	m.session.Commit()
	return nil
}

func (m *saramaMember) close() error {
	m.stop()
	<-m.done
	return m.group.Close()
}

func (saramaClient) produce(_ context.Context, r *request) (any, error) {
	config := saramaConfig("")
	if config.Producer.Idempotent = r.Config["idempotent"] != ""; config.Producer.Idempotent {
		config.Net.MaxOpenRequests = 1
	}
	if err := config.Producer.Compression.UnmarshalText([]byte(r.Config["compression"])); err != nil {
		return nil, err
	}
	producer, err := sarama.NewSyncProducer([]string{r.Bootstrap}, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	rows := [][2]any{}
	for _, each := range r.Rows {
		partition, offset, err := producer.SendMessage(&sarama.ProducerMessage{
			Topic: r.Topic, Partition: each.partition, Value: sarama.StringEncoder(each.text),
		})
		if err != nil {
			return nil, err
		}
		rows = append(rows, [2]any{partition, offset})
	}
	return rows, nil
}

func (saramaClient) admin(_ context.Context, r *request) (any, error) {
	admin, err := sarama.NewClusterAdmin([]string{r.Bootstrap}, saramaConfig(""))
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	switch r.Op {
	case "admin.create_topic":
		detail := sarama.TopicDetail{NumPartitions: int32(r.count()), ReplicationFactor: 1}
		return nil, admin.CreateTopic(r.Topic, &detail, false)
	case "admin.delete_topic":
		return nil, admin.DeleteTopic(r.Topic)
	case "admin.describe_topic":
		return saramaTopic(admin, r.Topic)
	case "admin.list":
		return admin.ListConsumerGroups()
	case "admin.describe":
		return saramaDescribe(admin, r.Group)
	case "admin.offsets", "admin.committed":
		return saramaOffsets(admin, r)
	case "admin.delete":
		return nil, admin.DeleteConsumerGroup(r.Group)
	case "admin.delete_offset":
		return nil, admin.DeleteConsumerGroupOffset(r.Group, r.Topic, 0)
	case "admin.remove":
		return saramaRemove(admin, r)
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

func saramaTopic(admin sarama.ClusterAdmin, topic string) (any, error) {
	found, err := admin.DescribeTopics([]string{topic})
	if err != nil {
		return nil, err
	}
	rows := [][2]any{}
	for _, each := range found[0].Partitions {
		rows = append(rows, [2]any{each.ID, len(each.Replicas)})
	}
	return map[string]any{"code": found[0].Err, "partitions": len(rows), "internal": found[0].IsInternal}, nil
}

func saramaDescribe(admin sarama.ClusterAdmin, group string) (any, error) {
	found, err := admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return nil, err
	}
	members := []map[string]any{}
	for _, each := range found[0].Members {
		assigned, err := each.GetMemberAssignment()
		if err != nil {
			return nil, err
		}
		members = append(members, map[string]any{
			"client": each.ClientId, "host": each.ClientHost, "instance": each.GroupInstanceId, "held": assigned.Topics,
		})
	}
	return map[string]any{
		"state": found[0].State, "assignor": found[0].Protocol, "type": found[0].ProtocolType,
		"code": found[0].Err, "members": sorted(members),
	}, nil
}

// saramaOffsets is [topic, partition, offset] for every committed offset, or for those asked for.
func saramaOffsets(admin sarama.ClusterAdmin, r *request) (any, error) {
	var asked map[string][]int32
	if r.Op == "admin.committed" {
		places, err := r.places()
		if err != nil {
			return nil, err
		}
		asked = map[string][]int32{}
		for _, each := range places {
			asked[each.topic] = append(asked[each.topic], each.partition)
		}
	}
	found, err := admin.ListConsumerGroupOffsets(r.Group, asked)
	if err != nil {
		return nil, err
	}
	rows := []position{}
	for topic, blocks := range found.Blocks {
		for partition, block := range blocks {
			if block.Err != sarama.ErrNoError {
				return nil, block.Err
			}
			if block.Offset >= 0 {
				rows = append(rows, position{topic, partition, block.Offset})
			}
		}
	}
	return inOrder(rows), nil
}

func saramaRemove(admin sarama.ClusterAdmin, r *request) (any, error) {
	left, err := admin.RemoveMemberFromConsumerGroup(r.Group, r.Instances)
	if err != nil {
		return nil, err
	}
	codes := map[string]any{"group": left.Err}
	for _, each := range left.Members {
		codes[*each.GroupInstanceId] = each.Err
	}
	return codes, nil
}

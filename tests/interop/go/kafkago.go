package main

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

type kafkaGo struct{}

// kafkaGoMember runs one ConsumerGroup, and a Reader for each partition of a generation.
type kafkaGoMember struct {
	seen  log
	group *kafka.ConsumerGroup
	stop  context.CancelFunc
	done  chan struct{}

	mu         sync.Mutex
	generation *kafka.Generation
	next       map[string]map[int]int64
}

func (kafkaGo) start(r *request) (member, error) {
	balancers := map[string]kafka.GroupBalancer{
		"range": kafka.RangeGroupBalancer{}, "roundrobin": kafka.RoundRobinGroupBalancer{},
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: r.Group, Brokers: []string{r.Bootstrap}, Topics: r.Topics, StartOffset: kafka.FirstOffset,
		Dialer:         &kafka.Dialer{ClientID: r.ClientID, Timeout: 10 * time.Second},
		GroupBalancers: []kafka.GroupBalancer{balancers[r.Assignor]}, HeartbeatInterval: beat,
		SessionTimeout: time.Duration(r.SessionMs) * time.Millisecond, JoinGroupBackoff: beat,
	})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &kafkaGoMember{group: group, stop: stop, done: make(chan struct{})}
	go m.consume(ctx, r.Bootstrap)
	return owned{m, kafkaGo{}, r}, nil
}

func (m *kafkaGoMember) consume(ctx context.Context, bootstrap string) {
	defer close(m.done)
	for ctx.Err() == nil {
		generation, err := m.group.Next(ctx)
		if err != nil {
			continue // it tries again by itself
		}
		m.take(generation)
		for topic, assigned := range generation.Assignments {
			for _, each := range assigned {
				generation.Start(func(ctx context.Context) { m.read(ctx, bootstrap, topic, each) })
			}
		}
	}
}

func (m *kafkaGoMember) take(generation *kafka.Generation) {
	held := [][2]any{}
	for topic, assigned := range generation.Assignments {
		for _, each := range assigned {
			held = append(held, [2]any{topic, each.ID})
		}
	}
	m.seen.assigned(held, generation.ID, generation.MemberID)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation, m.next = generation, map[string]map[int]int64{}
}

func (m *kafkaGoMember) read(ctx context.Context, bootstrap, topic string, from kafka.PartitionAssignment) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, Topic: topic, Partition: from.ID, MaxWait: beat,
	})
	defer reader.Close()
	if err := reader.SetOffset(from.Offset); err != nil {
		m.seen.failed(err)
		return
	}
	for {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return
		}
		m.seen.add(message.Topic, int32(message.Partition), message.Offset, string(message.Value))
		m.mu.Lock()
		if m.next[topic] == nil {
			m.next[topic] = map[int]int64{}
		}
		m.next[topic][message.Partition] = message.Offset + 1
		m.mu.Unlock()
	}
}

func (m *kafkaGoMember) log() *log { return &m.seen }

func (m *kafkaGoMember) commit(_ context.Context, offsets []position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	wanted := m.next
	if offsets != nil {
		wanted = map[string]map[int]int64{}
		for _, each := range offsets {
			if wanted[each.topic] == nil {
				wanted[each.topic] = map[int]int64{}
			}
			wanted[each.topic][int(each.partition)] = each.offset
		}
	}
	return m.generation.CommitOffsets(wanted)
}

func (m *kafkaGoMember) close() error {
	m.stop()
	<-m.done
	return m.group.Close()
}

func (kafkaGo) produce(ctx context.Context, r *request) (any, error) {
	names := map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	writer := &kafka.Writer{
		Addr: kafka.TCP(r.Bootstrap), Topic: r.Topic, RequiredAcks: kafka.RequireAll, BatchTimeout: 10 * time.Millisecond,
		Compression: names[r.Config["compression"]],
		Balancer:    kafka.BalancerFunc(func(message kafka.Message, _ ...int) int { return message.WriterData.(int) }),
	}
	defer writer.Close()
	messages := []kafka.Message{}
	for _, each := range r.Rows {
		messages = append(messages, kafka.Message{WriterData: int(each.partition), Value: []byte(each.text)})
	}
	return len(messages), writer.WriteMessages(ctx, messages...)
}

func (kafkaGo) admin(ctx context.Context, r *request) (any, error) {
	client := &kafka.Client{Addr: kafka.TCP(r.Bootstrap), Timeout: patience}
	switch r.Op {
	case "admin.create_topic":
		topic := kafka.TopicConfig{Topic: r.Topic, NumPartitions: r.count(), ReplicationFactor: 1}
		made, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
		if err != nil {
			return nil, err
		}
		return nil, made.Errors[r.Topic]
	case "admin.delete_topic":
		gone, err := client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{r.Topic}})
		if err != nil {
			return nil, err
		}
		return nil, gone.Errors[r.Topic]
	case "admin.describe_topic":
		return kafkaGoTopic(ctx, client, r.Topic)
	case "admin.list":
		return kafkaGoList(ctx, client)
	case "admin.describe":
		return kafkaGoDescribe(ctx, client, r.Group)
	case "admin.offsets":
		return kafkaGoOffsets(ctx, client, r.Group, nil)
	case "admin.committed":
		places, err := r.places()
		if err != nil {
			return nil, err
		}
		asked := map[string][]int{}
		for _, each := range places {
			asked[each.topic] = append(asked[each.topic], int(each.partition))
		}
		return kafkaGoOffsets(ctx, client, r.Group, asked)
	case "admin.delete":
		gone, err := client.DeleteGroups(ctx, &kafka.DeleteGroupsRequest{GroupIDs: []string{r.Group}})
		if err != nil {
			return nil, err
		}
		return nil, gone.Errors[r.Group]
	case "admin.delete_offset":
		gone, err := client.OffsetDelete(ctx, &kafka.OffsetDeleteRequest{
			GroupID: r.Group, Topics: map[string][]int{r.Topic: {0}},
		})
		if err != nil {
			return nil, err
		}
		for _, each := range gone.Topics[r.Topic] {
			err = errors.Join(err, each.Error)
		}
		return nil, errors.Join(gone.Error, err)
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

func kafkaGoTopic(ctx context.Context, client *kafka.Client, topic string) (any, error) {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return nil, err
	}
	row := map[string]any{"partitions": len(found.Topics[0].Partitions), "internal": found.Topics[0].Internal, "code": 0}
	if found.Topics[0].Error != nil {
		row["code"] = code(found.Topics[0].Error)
	}
	return row, nil
}

func kafkaGoList(ctx context.Context, client *kafka.Client) (any, error) {
	found, err := client.ListGroups(ctx, &kafka.ListGroupsRequest{})
	if err != nil {
		return nil, err
	}
	rows := map[string]string{}
	for _, each := range found.Groups {
		rows[each.GroupID] = each.ProtocolType
	}
	return rows, found.Error
}

func kafkaGoDescribe(ctx context.Context, client *kafka.Client, group string) (any, error) {
	found, err := client.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return nil, err
	}
	members := []map[string]any{}
	for _, each := range found.Groups[0].Members {
		held := map[string][]int{}
		for _, topic := range each.MemberAssignments.Topics {
			held[topic.Topic] = topic.Partitions
		}
		members = append(members, map[string]any{"client": each.ClientID, "host": each.ClientHost, "held": held})
	}
	return map[string]any{"state": found.Groups[0].GroupState, "members": sorted(members)}, found.Groups[0].Error
}

func kafkaGoOffsets(ctx context.Context, client *kafka.Client, group string, asked map[string][]int) (any, error) {
	found, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: asked})
	if err != nil {
		return nil, err
	}
	rows := []position{}
	for topic, partitions := range found.Topics {
		for _, each := range partitions {
			if each.Error != nil {
				return nil, each.Error
			}
			if each.CommittedOffset >= 0 {
				rows = append(rows, position{topic, int32(each.Partition), each.CommittedOffset})
			}
		}
	}
	return inOrder(rows), found.Error
}

func inOrder(rows []position) []position {
	sort.Slice(rows, func(i, j int) bool {
		return rows[i].topic < rows[j].topic || rows[i].topic == rows[j].topic && rows[i].partition < rows[j].partition
	})
	return rows
}

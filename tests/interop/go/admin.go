package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// admin runs one of kadm's operations with a client of its own.
func (franz) admin(ctx context.Context, r *request) (any, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(r.Bootstrap))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	switch r.Op {
	case "admin.list":
		return list(ctx, admin)
	case "admin.describe":
		if r.Protocol == "consumer" {
			return describeConsumer(ctx, admin, r.Group)
		}
		return describeClassic(ctx, admin, r.Group)
	case "admin.offsets":
		return offsets(ctx, admin, r.Group)
	case "admin.remove":
		return remove(ctx, admin, r)
	}
	return nil, fmt.Errorf("unknown operation %s", r.Op)
}

func (franz) produce(context.Context, *request) (any, error) {
	return nil, errors.New("the Java driver fills topics")
}

func list(ctx context.Context, admin *kadm.Client) (any, error) {
	rows := []map[string]any{}
	for _, kind := range []string{"Classic", "Consumer"} {
		groups, err := admin.ListGroupsByType(ctx, []string{kind})
		if err != nil {
			return nil, err
		}
		for _, each := range groups.Sorted() {
			rows = append(rows, map[string]any{
				"group": each.Group, "type": kind, "state": each.State, "protocol": each.ProtocolType,
			})
		}
	}
	return rows, nil
}

func describeClassic(ctx context.Context, admin *kadm.Client, group string) (any, error) {
	all, err := admin.DescribeGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	found := all[group]
	members := []map[string]any{}
	for _, each := range found.Members {
		held := [][2]any{}
		if assigned, ok := each.Assigned.AsConsumer(); ok {
			for _, topic := range assigned.Topics {
				for _, id := range topic.Partitions {
					held = append(held, [2]any{topic.Topic, id})
				}
			}
		}
		members = append(members, describedMember(each.MemberID, each.InstanceID, each.ClientID, each.ClientHost, held))
	}
	return map[string]any{
		"group": found.Group, "type": "Classic", "state": found.State, "assignor": found.Protocol, "members": members,
	}, found.Err
}

func describeConsumer(ctx context.Context, admin *kadm.Client, group string) (any, error) {
	all, err := admin.DescribeConsumerGroups(ctx, group)
	if err != nil {
		return nil, err
	}
	found := all[group]
	members := []map[string]any{}
	for _, each := range found.Members {
		held := [][2]any{}
		for topic, ids := range each.Assignment {
			for id := range ids {
				held = append(held, [2]any{topic, id})
			}
		}
		members = append(members, describedMember(each.MemberID, each.InstanceID, each.ClientID, each.ClientHost, held))
	}
	return map[string]any{
		"group": found.Group, "type": "Consumer", "state": found.State, "assignor": found.AssignorName,
		"epoch": found.Epoch, "members": members,
	}, found.Err
}

func describedMember(id string, instance *string, client, host string, held [][2]any) map[string]any {
	return map[string]any{
		"member_id": id, "instance": instance, "client_id": client, "host": host, "assignment": held,
	}
}

func offsets(ctx context.Context, admin *kadm.Client, group string) (any, error) {
	found, err := admin.FetchOffsets(ctx, group)
	rows := []position{}
	found.Each(func(each kadm.OffsetResponse) {
		rows = append(rows, position{each.Topic, each.Partition, each.At})
	})
	return rows, err
}

func remove(ctx context.Context, admin *kadm.Client, r *request) (any, error) {
	left, err := admin.LeaveGroup(ctx, kadm.LeaveGroup(r.Group).InstanceIDs(r.Instances...))
	if err != nil {
		return nil, err
	}
	results := map[string]any{}
	for id, each := range left {
		results[id] = nil
		if each.Err != nil {
			results[id] = code(each.Err)
		}
	}
	return results, nil
}

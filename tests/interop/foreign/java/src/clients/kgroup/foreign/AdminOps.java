package kgroup.foreign;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.ConsumerGroupListing;
import org.apache.kafka.clients.admin.DescribeClusterResult;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.config.ConfigResource;

/** What an operator does with one cluster, through Kafka's Admin. */
final class AdminOps {
    private final AdminClient admin;

    AdminOps(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        admin = AdminClient.create(properties);
    }

    Object run(String op, JsonNode request) throws Exception {
        String topic = request.path("topic").asText();
        String group = request.path("group").asText();
        switch (op) {
            case "admin.cluster":
                return cluster();
            case "admin.create_topic":
                NewTopic made = new NewTopic(topic, request.get("partitions").asInt(), (short) request.path("replicas").asInt(1));
                made.configs(strings(request.path("config")));
                return admin.createTopics(List.of(made)).all().get();
            case "admin.add_partitions":
                return admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(request.get("count").asInt())))
                        .all().get();
            case "admin.delete_topic":
                return admin.deleteTopics(List.of(topic)).all().get();
            case "admin.topics":
                return new TreeSet<>(admin.listTopics().names().get());
            case "admin.describe_topic":
                return topic(topic);
            case "admin.config":
                return config(topic, request.get("keys"));
            case "admin.set_config":
                return setConfig(topic, strings(request.get("config")));
            case "admin.list":
                return list();
            case "admin.describe":
                return describe(group);
            case "admin.offsets":
                return offsets(group);
            case "admin.delete":
                return admin.deleteConsumerGroups(List.of(group)).all().get();
            default:
                return LateAdmin.run(admin, op, request);
        }
    }

    static Map<String, String> strings(JsonNode object) {
        Map<String, String> found = new HashMap<>();
        object.properties().forEach(each -> found.put(each.getKey(), each.getValue().asText()));
        return found;
    }

    private Object cluster() throws Exception {
        DescribeClusterResult cluster = admin.describeCluster();
        Map<String, Object> row = new TreeMap<>();
        row.put("nodes", cluster.nodes().get().size());
        row.put("controller is a node", cluster.nodes().get().contains(cluster.controller().get()));
        row.put("has an id", !cluster.clusterId().get().isEmpty());
        return row;
    }

    private Object topic(String name) throws Exception {
        KafkaFuture<?> all = (KafkaFuture<?>) Late.call(
                admin.describeTopics(List.of(name)), "allTopicNames|all");
        TopicDescription found = (TopicDescription) ((Map<?, ?>) all.get()).get(name);
        List<List<Object>> rows = new ArrayList<>();
        for (TopicPartitionInfo each : found.partitions()) {
            rows.add(List.of(each.partition(), each.leader() != null, each.replicas().size(), each.isr().size()));
        }
        return Map.of("internal", found.isInternal(), "partitions", rows);
    }

    private Object config(String topic, JsonNode keys) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<String, Object> found = new TreeMap<>();
        for (ConfigEntry each : admin.describeConfigs(List.of(resource)).all().get().get(resource).entries()) {
            for (JsonNode key : keys) {
                if (key.asText().equals(each.name())) {
                    found.put(each.name(), List.of(each.value(), each.source().toString(), each.isReadOnly()));
                }
            }
        }
        return found;
    }

    private Object setConfig(String topic, Map<String, String> wanted) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        wanted.forEach((key, value) ->
                changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<ConfigResource, Collection<AlterConfigOp>> all = Map.of(resource, changes);
        return admin.incrementalAlterConfigs(all).all().get();
    }

    private Object list() throws Exception {
        Map<String, Object> rows = new TreeMap<>();
        for (ConsumerGroupListing each : admin.listConsumerGroups().all().get()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("simple", each.isSimpleConsumerGroup());
            row.put("state", text(Late.optional(each, "state")));
            row.put("type", text(Late.optional(each, "type")));
            rows.put(each.groupId(), row);
        }
        return rows;
    }

    private Object describe(String group) throws Exception {
        ConsumerGroupDescription found =
                admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
        Map<String, Object> row = new TreeMap<>();
        row.put("state", text(Late.call(found, "groupState|state")));
        row.put("assignor", found.partitionAssignor());
        row.put("simple", found.isSimpleConsumerGroup());
        row.put("coordinator", found.coordinator() != null);
        row.put("type", text(Late.optional(found, "type")));
        row.put("epoch", Late.optional(found, "groupEpoch"));
        List<Map<String, Object>> members = new ArrayList<>();
        for (MemberDescription each : found.members()) {
            Map<String, Object> member = new TreeMap<>();
            member.put("client", each.clientId());
            member.put("host", each.host());
            member.put("instance", Late.optional(each, "groupInstanceId"));
            member.put("assignment", pairs(each.assignment().topicPartitions()));
            members.add(member);
        }
        members.sort((a, b) -> a.toString().compareTo(b.toString()));
        row.put("members", members);
        return row;
    }

    static List<String> pairs(Collection<TopicPartition> partitions) {
        return partitions.stream().map(TopicPartition::toString).sorted().collect(Collectors.toList());
    }

    static String text(Object value) {
        return value == null ? null : value.toString();
    }

    private Object offsets(String group) throws Exception {
        Map<String, Object> rows = new TreeMap<>();
        Map<TopicPartition, OffsetAndMetadata> found =
                admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        found.forEach((partition, offset) -> rows.put(
                partition.toString(), offset == null ? null : List.of(offset.offset(), offset.metadata())));
        return rows;
    }
}

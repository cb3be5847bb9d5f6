package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import kgroup.foreign.Failure;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupResult;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** What the newest Admin tells and no old one: ids, epochs, targets; and a producer to fill topics. */
final class AdminOps {
    static final Set<String> OPERATIONS =
            Set.of("admin.produce", "admin.list", "admin.describe", "admin.offsets", "admin.remove");

    private final Admin admin;
    private final KafkaProducer<String, String> producer;

    AdminOps(String bootstrap) {
        admin = Admin.create(Map.<String, Object>of("bootstrap.servers", bootstrap));
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "acks", "all");
        producer = new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
    }

    Object run(String op, JsonNode request) throws Exception {
        switch (op) {
            case "admin.produce":
                return produce(request);
            case "admin.list":
                return list();
            case "admin.describe":
                return describe(group(request));
            case "admin.offsets":
                return offsets(group(request));
            case "admin.remove":
                return remove(group(request), request.path("instances"));
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    private static String group(JsonNode request) {
        return request.get("group").asText();
    }

    private Object produce(JsonNode request) throws Exception {
        String topic = request.get("topic").asText();
        List<java.util.concurrent.Future<?>> sent = new ArrayList<>();
        for (JsonNode row : request.get("rows")) {
            sent.add(producer.send(new ProducerRecord<>(topic, row.get(0).asInt(), null, row.get(1).asText())));
        }
        producer.flush();
        for (java.util.concurrent.Future<?> each : sent) {
            each.get();
        }
        return sent.size();
    }

    private List<Map<String, Object>> list() throws Exception {
        List<Map<String, Object>> rows = new ArrayList<>();
        for (GroupListing group : admin.listGroups().all().get()) {
            Map<String, Object> row = new LinkedHashMap<>();
            row.put("group", group.groupId());
            row.put("type", text(group.type()));
            row.put("state", text(group.groupState()));
            row.put("protocol", group.protocol());
            rows.add(row);
        }
        return rows;
    }

    private Map<String, Object> describe(String group) throws Exception {
        ConsumerGroupDescription found =
                admin.describeConsumerGroups(List.of(group)).describedGroups().get(group).get();
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("group", found.groupId());
        row.put("type", found.type().toString());
        row.put("state", found.groupState().toString());
        row.put("assignor", found.partitionAssignor());
        row.put("epoch", found.groupEpoch().orElse(null));
        row.put("members", found.members().stream().map(AdminOps::member).collect(Collectors.toList()));
        return row;
    }

    private static Map<String, Object> member(MemberDescription member) {
        Map<String, Object> row = new LinkedHashMap<>();
        row.put("member_id", member.consumerId());
        row.put("instance", member.groupInstanceId().orElse(null));
        row.put("client_id", member.clientId());
        row.put("host", member.host());
        row.put("epoch", member.memberEpoch().orElse(null));
        row.put("assignment", pairs(member.assignment().topicPartitions()));
        row.put("target", member.targetAssignment().map(target -> pairs(target.topicPartitions())).orElse(null));
        return row;
    }

    private static List<List<Object>> pairs(Collection<TopicPartition> partitions) {
        return partitions.stream().map(p -> List.<Object>of(p.topic(), p.partition())).collect(Collectors.toList());
    }

    private static String text(Optional<?> value) {
        return value.map(Object::toString).orElse(null);
    }

    private List<List<Object>> offsets(String group) throws Exception {
        List<List<Object>> rows = new ArrayList<>();
        admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get().forEach((partition, offset) -> {
            if (offset != null) {
                rows.add(List.of(partition.topic(), partition.partition(), offset.offset()));
            }
        });
        return rows;
    }

    /** Per instance id null or the error's code; without instance ids all members go, and the result is empty. */
    private Map<String, String> remove(String group, JsonNode instances) throws Exception {
        if (!instances.isArray()) {
            admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions()).all().get();
            return Map.of();
        }
        List<MemberToRemove> members = new ArrayList<>();
        instances.forEach(instance -> members.add(new MemberToRemove(instance.asText())));
        RemoveMembersFromConsumerGroupResult result =
                admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(members));
        Map<String, String> codes = new HashMap<>();
        for (MemberToRemove member : members) {
            codes.put(member.groupInstanceId(), outcome(result, member));
        }
        return codes;
    }

    private static String outcome(RemoveMembersFromConsumerGroupResult result, MemberToRemove member)
            throws InterruptedException {
        try {
            result.memberResult(member).get();
            return null;
        } catch (ExecutionException failure) {
            return Failure.code(Failure.cause(failure));
        }
    }
}

package kgroup.foreign;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;

/** Operations that Admin learnt after 2.3; ABSENT in older clients. */
final class LateAdmin {
    private static final String PACKAGE = "clients.admin.";

    private LateAdmin() {}

    static Object run(AdminClient admin, String op, JsonNode request) throws Exception {
        String group = request.path("group").asText();
        switch (op) {
            case "admin.alter_offsets":
                return get(Late.call(admin, "alterConsumerGroupOffsets", group, offsets(request.get("offsets"))), "all");
            case "admin.delete_offsets":
                Object deleted = Late.call(admin, "deleteConsumerGroupOffsets", group, partitions(request));
                return get(deleted, "all");
            case "admin.remove":
                return remove(admin, group, request.path("instances"));
            case "admin.list_offsets":
                return listOffsets(admin, request);
            case "admin.features":
                return features(admin);
            case "admin.transactions":
                return transactions(admin, request.get("transaction").asText());
            case "admin.producers":
                return producers(admin, request);
            case "admin.fence":
                return get(Late.call(admin, "fenceProducers", List.of(request.get("transaction").asText())), "all");
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    private static Object get(Object result, String names) throws Exception {
        return ((KafkaFuture<?>) Late.call(result, names)).get();
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode rows) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode row : rows) {
            TopicPartition partition = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
            offsets.put(partition, new OffsetAndMetadata(row.get(2).asLong(), row.path(3).asText("")));
        }
        return offsets;
    }

    private static Set<TopicPartition> partitions(JsonNode request) {
        Set<TopicPartition> partitions = new HashSet<>();
        for (JsonNode row : request.get("partitions")) {
            partitions.add(new TopicPartition(row.get(0).asText(), row.get(1).asInt()));
        }
        return partitions;
    }

    /** Per instance id OK or the error's code; without instance ids all members go (since 2.6). */
    private static Object remove(AdminClient admin, String group, JsonNode instances) throws Exception {
        String options = PACKAGE + "RemoveMembersFromConsumerGroupOptions";
        if (!instances.isArray()) {
            get(Late.call(admin, "removeMembersFromConsumerGroup", group, Late.make(options)), "all");
            return "OK";
        }
        List<Object> members = new ArrayList<>();
        for (JsonNode each : instances) {
            members.add(Late.make(PACKAGE + "MemberToRemove", each.asText()));
        }
        Object result = Late.call(admin, "removeMembersFromConsumerGroup", group, Late.make(options, members));
        Map<String, String> codes = new TreeMap<>();
        for (Object member : members) {
            KafkaFuture<?> outcome = (KafkaFuture<?>) Late.call(result, "memberResult", member);
            String name = (String) Late.call(member, "groupInstanceId");
            try {
                outcome.get();
                codes.put(name, "OK");
            } catch (Exception failed) {
                codes.put(name, Failure.code(Failure.cause(failed)));
            }
        }
        return codes;
    }

    /** Offset and whether there is a timestamp, for a spec's name: earliest, latest, maxTimestamp. */
    private static Object listOffsets(AdminClient admin, JsonNode request) throws Exception {
        Object spec = Late.call(PACKAGE + "OffsetSpec", request.get("spec").asText());
        Map<TopicPartition, Object> asked = new HashMap<>();
        partitions(request).forEach(each -> asked.put(each, spec));
        Map<String, Object> rows = new TreeMap<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) get(Late.call(admin, "listOffsets", asked), "all")).entrySet()) {
            boolean timed = (Long) Late.call(each.getValue(), "timestamp") >= 0;
            rows.put(each.getKey().toString(), List.of(Late.call(each.getValue(), "offset"), timed));
        }
        return rows;
    }

    /** Levels of the features that both kinds of server have. */
    private static Object features(AdminClient admin) throws Exception {
        Object metadata = get(Late.call(admin, "describeFeatures"), "featureMetadata");
        Map<String, Object> rows = new TreeMap<>();
        for (String which : new String[] {"finalizedFeatures", "supportedFeatures"}) {
            Map<?, ?> features = (Map<?, ?>) Late.call(metadata, which);
            for (String name : new String[] {"group.version", "transaction.version"}) {
                Object found = features.get(name);
                rows.put(which + " " + name, found == null ? "none" : found.toString());
            }
        }
        return rows;
    }

    private static Object transactions(AdminClient admin, String id) throws Exception {
        Map<String, Object> rows = new TreeMap<>();
        for (Object each : (Collection<?>) get(Late.call(admin, "listTransactions"), "all")) {
            if (id.equals(Late.call(each, "transactionalId"))) {
                rows.put("listed", Late.call(each, "state").toString());
            }
        }
        Object all = get(Late.call(admin, "describeTransactions", List.of(id)), "all");
        Object found = ((Map<?, ?>) all).get(id);
        rows.put("described", Late.call(found, "state").toString());
        rows.put("timeout", Late.call(found, "transactionTimeoutMs"));
        Set<TopicPartition> partitions = new HashSet<>();
        for (Object each : (Set<?>) Late.call(found, "topicPartitions")) {
            partitions.add((TopicPartition) each);
        }
        rows.put("partitions", AdminOps.pairs(partitions));
        return rows;
    }

    private static Object producers(AdminClient admin, JsonNode request) throws Exception {
        Map<String, Object> rows = new TreeMap<>();
        Object all = get(Late.call(admin, "describeProducers", partitions(request)), "all");
        for (Map.Entry<?, ?> each : ((Map<?, ?>) all).entrySet()) {
            List<Object> active = new ArrayList<>();
            for (Object state : (List<?>) Late.call(each.getValue(), "activeProducers")) {
                active.add(List.of(
                        Late.call(state, "lastSequence"), Late.call(state, "currentTransactionStartOffset").toString()));
            }
            rows.put(each.getKey().toString(), active);
        }
        return rows;
    }
}

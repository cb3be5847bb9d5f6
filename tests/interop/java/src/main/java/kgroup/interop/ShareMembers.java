package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Members of share groups that acknowledge each record as they are told to. */
final class ShareMembers {
    private final Map<String, KafkaShareConsumer<String, String>> members = new ConcurrentHashMap<>();
    private final Map<String, Map<Long, ConsumerRecord<String, String>>> locked = new ConcurrentHashMap<>();

    Object run(String op, JsonNode request) {
        String name = request.get("name").asText();
        switch (op) {
            case "share.open":
                open(name, request);
                return null;
            case "share.poll":
                return poll(name, Duration.ofMillis(request.get("ms").asLong()));
            case "share.read":
                return read(members.get(name), Duration.ofMillis(request.get("ms").asLong()));
            case "share.acknowledge":
                return acknowledge(name, request);
            case "share.close":
                members.remove(name).close(Duration.ofSeconds(10));
                return null;
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    private void open(String name, JsonNode request) {
        Map<String, Object> config = Map.of(
                "bootstrap.servers", request.get("bootstrap").asText(),
                "group.id", request.get("group").asText(),
                "client.id", name,
                "max.poll.records", request.get("at_most").asInt(),
                "share.acquire.mode", request.path("mode").asText("batch_optimized"),
                "share.acknowledgement.mode", "explicit");
        KafkaShareConsumer<String, String> member =
                new KafkaShareConsumer<>(config, new StringDeserializer(), new StringDeserializer());
        List<String> topics = new ArrayList<>();
        request.path("topics").forEach(each -> topics.add(each.asText()));
        member.subscribe(topics.isEmpty() ? List.of(request.get("topic").asText()) : topics);
        members.put(name, member);
    }

    /** The offset and delivery count of each record of one partition that was acquired. */
    private List<List<Long>> poll(String name, Duration time) {
        Map<Long, ConsumerRecord<String, String>> mine = locked.computeIfAbsent(name, key -> new HashMap<>());
        List<List<Long>> found = new ArrayList<>();
        for (ConsumerRecord<String, String> each : members.get(name).poll(time)) {
            mine.put(each.offset(), each);
            found.add(List.of(each.offset(), (long) each.deliveryCount().orElse((short) 0)));
        }
        return found;
    }

    /** Accepts all that comes; topic, partition and offset of each partition's last record. */
    private List<List<Object>> read(KafkaShareConsumer<String, String> member, Duration time) {
        Map<TopicPartition, Long> last = new HashMap<>();
        for (ConsumerRecord<String, String> each : member.poll(time)) {
            member.acknowledge(each);
            last.merge(new TopicPartition(each.topic(), each.partition()), each.offset(), Math::max);
        }
        List<List<Object>> found = new ArrayList<>();
        member.commitSync().forEach((place, error) -> {
            if (error.isEmpty() && last.containsKey(place.topicPartition())) {
                found.add(List.of(place.topic(), place.partition(), last.get(place.topicPartition())));
            }
        });
        return found;
    }

    /** Acknowledges records by their offsets; the errors of the commit, in words. */
    private List<String> acknowledge(String name, JsonNode request) {
        KafkaShareConsumer<String, String> member = members.get(name);
        for (JsonNode offset : request.get("offsets")) {
            ConsumerRecord<String, String> record = locked.get(name).remove(offset.asLong());
            member.acknowledge(record, AcknowledgeType.valueOf(request.get("type").asText()));
        }
        List<String> errors = new ArrayList<>();
        member.commitSync().values().forEach(error -> error.ifPresent(thrown -> errors.add(thrown.toString())));
        return errors;
    }
}

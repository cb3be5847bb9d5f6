package kgroup.foreign;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** A consumer without a group: all of a topic, and where its logs begin and end. */
final class Reader {
    private Reader() {}

    static Map<String, Object> read(JsonNode request) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", request.get("bootstrap").asText());
        properties.put("isolation.level", request.path("isolation").asText("read_uncommitted"));
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        try (KafkaConsumer<String, String> consumer =
                new KafkaConsumer<>(properties, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (PartitionInfo info : consumer.partitionsFor(request.get("topic").asText())) {
                partitions.add(new TopicPartition(info.topic(), info.partition()));
            }
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            Map<String, Object> found = new TreeMap<>();
            found.put("begin", rows(consumer.beginningOffsets(partitions)));
            found.put("end", rows(ends));
            found.put("since", since(consumer, partitions, request.path("since").asLong(0)));
            found.put("rows", rows(consumer, partitions, ends));
            return found;
        }
    }

    private static List<List<Object>> rows(
            KafkaConsumer<String, String> consumer, List<TopicPartition> partitions, Map<TopicPartition, Long> ends) {
        consumer.assign(partitions);
        consumer.seekToBeginning(partitions);
        List<List<Object>> rows = new ArrayList<>();
        while (ends.entrySet().stream().anyMatch(end -> consumer.position(end.getKey()) < end.getValue())) {
            for (ConsumerRecord<String, String> each : consumer.poll(Duration.ofMillis(100))) {
                rows.add(List.of(each.partition(), each.offset(), String.valueOf(each.key()), each.value()));
            }
        }
        rows.sort(Comparator.<List<Object>>comparingInt(row -> (Integer) row.get(0))
                .thenComparingLong(row -> (Long) row.get(1)));
        return rows;
    }

    private static Map<String, Long> rows(Map<TopicPartition, Long> offsets) {
        Map<String, Long> rows = new TreeMap<>();
        offsets.forEach((partition, offset) -> rows.put(partition.toString(), offset));
        return rows;
    }

    private static Map<String, Object> since(
            KafkaConsumer<String, String> consumer, Collection<TopicPartition> partitions, long timestamp) {
        Map<TopicPartition, Long> asked = new HashMap<>();
        partitions.forEach(each -> asked.put(each, timestamp));
        Map<String, Object> rows = new TreeMap<>();
        for (Map.Entry<TopicPartition, OffsetAndTimestamp> each : consumer.offsetsForTimes(asked).entrySet()) {
            rows.put(each.getKey().toString(), each.getValue() == null ? null : each.getValue().offset());
        }
        return rows;
    }
}

package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** Consume-transform-produce: transactional producers that commit a member's offsets. */
final class Transactions {
    private final Map<String, KafkaProducer<String, String>> producers = new ConcurrentHashMap<>();

    Object run(String op, JsonNode request, Member member) throws Exception {
        String name = request.get("name").asText();
        switch (op) {
            case "tx.open":
                return open(name, request);
            case "tx.copy":
                return copy(producers.get(name), member, request);
            case "tx.end":
                end(producers.get(name), request.get("commit").asBoolean());
                return null;
            case "tx.close":
                producers.remove(name).close(Duration.ofSeconds(5));
                return null;
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    private Object open(String name, JsonNode request) {
        Map<String, Object> config = Map.of(
                "bootstrap.servers", request.get("bootstrap").asText(),
                "transactional.id", request.get("transactional_id").asText());
        KafkaProducer<String, String> producer =
                new KafkaProducer<>(config, new StringSerializer(), new StringSerializer());
        producers.put(name, producer);
        producer.initTransactions();
        return null;
    }

    /** Begins a transaction, writes what the member read since the last copy, and adds the offsets behind it. */
    private static Object copy(KafkaProducer<String, String> producer, Member member, JsonNode request)
            throws Exception {
        String to = request.get("to").asText();
        return member.ask(() -> {
            List<ConsumerRecord<String, String>> fresh = member.take(request.get("up_to").asText());
            producer.beginTransaction();
            Map<TopicPartition, OffsetAndMetadata> behind = new HashMap<>();
            for (ConsumerRecord<String, String> each : fresh) {
                producer.send(new ProducerRecord<>(to, each.value().toUpperCase(java.util.Locale.ROOT)));
                behind.put(
                        new TopicPartition(each.topic(), each.partition()), new OffsetAndMetadata(each.offset() + 1));
            }
            producer.sendOffsetsToTransaction(behind, member.metadata());
            producer.flush();
            return fresh.size();
        });
    }

    private static void end(KafkaProducer<String, String> producer, boolean commit) {
        if (commit) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }
}

package kgroup.foreign;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringSerializer;

/** Named producers: plain, idempotent, transactional. */
final class ProducerOps {
    private final String bootstrap;
    private final Map<String, KafkaProducer<String, String>> open = new ConcurrentHashMap<>();

    ProducerOps(String bootstrap) {
        this.bootstrap = bootstrap;
    }

    Object run(String op, JsonNode request, Member member) throws Exception {
        String name = request.get("name").asText();
        switch (op) {
            case "producer.open":
                return open(name, request);
            case "producer.begin":
                open.get(name).beginTransaction();
                return null;
            case "producer.send":
                return send(open.get(name), request);
            case "producer.offsets":
                return offsets(open.get(name), request, member);
            case "producer.commit":
                open.get(name).commitTransaction();
                return null;
            case "producer.abort":
                open.get(name).abortTransaction();
                return null;
            case "producer.close":
                open.remove(name).close();
                return null;
            default:
                throw new IllegalArgumentException("unknown operation " + op);
        }
    }

    private Object open(String name, JsonNode request) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("client.id", name);
        request.path("config").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
        KafkaProducer<String, String> producer =
                new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer());
        open.put(name, producer);
        if (properties.containsKey("transactional.id")) {
            producer.initTransactions();
        }
        return null;
    }

    /** Partition and offset of every row, in order. */
    private static Object send(KafkaProducer<String, String> producer, JsonNode request) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (JsonNode row : request.get("rows")) {
            sent.add(producer.send(new ProducerRecord<>(
                    request.get("topic").asText(), row.get(0).asInt(), null, row.get(1).asText())));
        }
        producer.flush();
        List<List<Object>> rows = new ArrayList<>();
        for (Future<RecordMetadata> each : sent) {
            rows.add(List.of(each.get().partition(), each.get().offset()));
        }
        return rows;
    }

    /** By the group's metadata where the client has it (2.5), else, or when asked to, by the bare group id. */
    private static Object offsets(KafkaProducer<String, String> producer, JsonNode request, Member member)
            throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode row : request.get("offsets")) {
            TopicPartition partition = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
            offsets.put(partition, new OffsetAndMetadata(row.get(2).asLong()));
        }
        Object group = member == null ? request.get("group").asText() : member.askMetadata();
        return Late.call(producer, "sendOffsetsToTransaction", offsets, group);
    }
}

package kgroup.interop;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * One KafkaConsumer as a process: reads, commits, and writes down what was acknowledged.
 * Arguments: bootstrap, group, protocol, instance ("": none), journal, topic.
 */
public final class SoakConsumer {
    private final String group;
    private final Path journal;

    private SoakConsumer(String group, Path journal) {
        this.group = group;
        this.journal = journal;
    }

    public static void main(String[] args) throws IOException {
        SoakConsumer soak = new SoakConsumer(args[1], Path.of(args[4]));
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties(args))) {
            consumer.subscribe(List.of(args[5]));
            while (true) {
                soak.once(consumer);
            }
        }
    }

    private static Properties properties(String[] args) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("group.id", args[1]);
        properties.put("group.protocol", args[2]);
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("reconnect.backoff.max.ms", "500");
        properties.put("fetch.min.bytes", "5000");
        properties.put("default.api.timeout.ms", "10000");
        properties.put("request.timeout.ms", "5000");
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        if (args[2].equals("classic")) {
            properties.put("session.timeout.ms", "6000");
            properties.put("heartbeat.interval.ms", "1000");
            properties.put("partition.assignment.strategy", RangeAssignor.class.getName());
        }
        if (!args[3].isEmpty()) {
            properties.put("group.instance.id", args[3]);
        }
        return properties;
    }

    /** Whatever cannot be repaired by going on ends the process: it is started again. */
    private void once(KafkaConsumer<byte[], byte[]> consumer) throws IOException {
        try {
            Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
            for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(500))) {
                TopicPartition from = new TopicPartition(each.topic(), each.partition());
                read.put(from, new OffsetAndMetadata(each.offset() + 1));
            }
            if (!read.isEmpty()) {
                consumer.commitSync(read);
                note(read);
            }
        } catch (RetriableException | CommitFailedException | RebalanceInProgressException again) {
            // What was not committed is read again by whoever owns the partition now.
        } catch (KafkaException failure) {
            System.err.println(failure);
            throw failure;
        }
    }

    private void note(Map<TopicPartition, OffsetAndMetadata> committed) throws IOException {
        StringBuilder lines = new StringBuilder();
        committed.forEach((from, at) -> lines.append(
                String.format("[\"%s\", %d, %d]%n", group, from.partition(), at.offset())));
        Files.writeString(journal, lines, StandardCharsets.UTF_8,
                StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}

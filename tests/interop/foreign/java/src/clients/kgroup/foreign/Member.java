package kgroup.foreign;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** One KafkaConsumer in a thread of its own: polls, and between polls does what it is asked to. */
public class Member implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", "RangeAssignor",
            "roundrobin", "RoundRobinAssignor",
            "sticky", "StickyAssignor",
            "cooperative-sticky", "CooperativeStickyAssignor");

    protected KafkaConsumer<String, String> consumer;
    private final BlockingQueue<FutureTask<?>> asked = new LinkedBlockingQueue<>();
    private final List<ConsumerRecord<String, String>> read = Collections.synchronizedList(new ArrayList<>());
    protected boolean running = true;
    private volatile int rebalances;
    protected volatile String fatal;
    private volatile Map<String, Object> snapshot = Map.of("assignment", List.of());

    protected Member() {}

    final void start(JsonNode request) {
        consumer = new KafkaConsumer<>(properties(request), new StringDeserializer(), new StringDeserializer());
        subscribe(request);
        Thread thread = new Thread(this::run, "member-" + request.get("name").asText());
        thread.setDaemon(true);
        thread.start();
    }

    protected void subscribe(JsonNode request) {
        List<String> topics = new ArrayList<>();
        request.get("topics").forEach(topic -> topics.add(topic.asText()));
        consumer.subscribe(topics, this);
    }

    protected Properties properties(JsonNode request) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", request.get("bootstrap").asText());
        properties.put("group.id", request.get("group").asText());
        properties.put("client.id", request.path("client_id").asText(request.get("name").asText()));
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("retry.backoff.ms", "50");
        if (request.hasNonNull("instance")) {
            properties.put("group.instance.id", request.get("instance").asText());
        }
        if (request.get("protocol").asText().equals("consumer")) {
            Late.type("clients.consumer.GroupProtocol");
            properties.put("group.protocol", "consumer");
        } else {
            Class<?> assignor = Late.type("clients.consumer." + ASSIGNORS.get(request.get("assignor").asText()));
            properties.put("session.timeout.ms", request.get("session_ms").asText());
            properties.put("heartbeat.interval.ms", "300");
            properties.put("partition.assignment.strategy", assignor.getName());
        }
        request.path("config").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
        return properties;
    }

    private void run() {
        while (running) {
            if (fatal == null) {
                poll();
            }
            try {
                FutureTask<?> task = fatal == null ? asked.poll() : asked.take();
                if (task != null) {
                    task.run();
                }
            } catch (InterruptedException stopped) {
                return;
            }
        }
    }

    protected final void poll() {
        try {
            ConsumerRecords<String, String> found = consumer.poll(POLL);
            found.forEach(read::add);
            publish();
            polled(found);
        } catch (Exception failure) {
            fatal = Failure.code(Failure.cause(failure));
        }
    }

    /** What is done with records that have just been read; in the polling thread. */
    protected void polled(ConsumerRecords<String, String> found) {}

    private void publish() throws Exception {
        Map<String, Object> state = new HashMap<>();
        state.put("assignment", pairs(consumer.assignment()));
        try {
            Object metadata = metadata();
            state.put("generation", Late.call(metadata, "generationId"));
            state.put("member_id", Late.call(metadata, "memberId"));
        } catch (Late.Absent older) {
            state.put("generation", null);
        }
        snapshot = state;
    }

    /** The group's metadata, since 2.5; in the polling thread only. */
    private Object metadata() throws Exception {
        return Late.call(consumer, "groupMetadata");
    }

    /** The same, from any thread. */
    Object askMetadata() throws Exception {
        return ask(this::metadata);
    }

    private static List<List<Object>> pairs(Collection<TopicPartition> partitions) {
        List<List<Object>> pairs = new ArrayList<>();
        partitions.forEach(each -> pairs.add(List.of(each.topic(), each.partition())));
        return pairs;
    }

    /** Runs in the polling thread, the only one that may touch the consumer. */
    public final <T> T ask(Callable<T> what) throws Exception {
        FutureTask<T> task = new FutureTask<>(what);
        asked.add(task);
        return task.get();
    }

    Map<String, Object> state() {
        Map<String, Object> state = new HashMap<>(snapshot);
        state.put("fatal", fatal);
        state.put("rebalances", rebalances);
        state.put("read", read.size());
        return state;
    }

    List<List<Object>> records() {
        List<List<Object>> rows = new ArrayList<>();
        synchronized (read) {
            read.forEach(r -> rows.add(List.of(r.topic(), r.partition(), r.offset(), r.value())));
        }
        return rows;
    }

    Object commit(JsonNode offsets) throws Exception {
        return ask(() -> {
            if (!offsets.isArray()) {
                consumer.commitSync();
                return null;
            }
            Map<TopicPartition, OffsetAndMetadata> parsed = new HashMap<>();
            for (JsonNode row : offsets) {
                TopicPartition partition = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
                parsed.put(partition, new OffsetAndMetadata(row.get(2).asLong(), row.path(3).asText("")));
            }
            consumer.commitSync(parsed);
            return null;
        });
    }

    /** With the call of one partition where there is none for several (before 2.4). */
    Object committed(JsonNode partitions) throws Exception {
        return ask(() -> {
            Set<TopicPartition> wanted = new HashSet<>();
            for (JsonNode pair : partitions) {
                wanted.add(new TopicPartition(pair.get(0).asText(), pair.get(1).asInt()));
            }
            Map<Object, Object> found = new HashMap<>();
            try {
                ((Map<?, ?>) Late.call(consumer, "committed", wanted)).forEach(found::put);
            } catch (Late.Absent older) {
                for (TopicPartition each : wanted) {
                    found.put(each, Late.call(consumer, "committed", each));
                }
            }
            List<List<Object>> rows = new ArrayList<>();
            found.forEach((key, value) -> {
                if (value != null) {
                    TopicPartition partition = (TopicPartition) key;
                    rows.add(List.of(partition.topic(), partition.partition(), ((OffsetAndMetadata) value).offset()));
                }
            });
            return rows;
        });
    }

    /** As the client does by itself. */
    protected void close(JsonNode leave) throws Exception {
        ask(() -> {
            running = false;
            consumer.close();
            return null;
        });
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        rebalances++;
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {}
}

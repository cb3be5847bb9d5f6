package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** One KafkaConsumer in a thread of its own: polls, and between polls does what it is asked to. */
final class Member implements ConsumerRebalanceListener {
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Map<String, String> ASSIGNORS = Map.of(
            "range", RangeAssignor.class.getName(),
            "roundrobin", RoundRobinAssignor.class.getName(),
            "sticky", StickyAssignor.class.getName(),
            "cooperative-sticky", CooperativeStickyAssignor.class.getName());

    private final KafkaConsumer<String, String> consumer;
    private final BlockingQueue<FutureTask<?>> asked = new LinkedBlockingQueue<>();
    private final List<ConsumerRecord<String, String>> read = Collections.synchronizedList(new ArrayList<>());
    private final List<ConsumerRecord<String, String>> uncopied = new ArrayList<>();
    private final boolean commits;
    private boolean running = true;
    private volatile int rebalances;
    private volatile String fatal;
    private volatile Map<String, Object> snapshot = Map.of();

    Member(JsonNode request) {
        commits = request.path("commits").asBoolean(false);
        consumer = new KafkaConsumer<>(properties(request), new StringDeserializer(), new StringDeserializer());
        subscribe(request);
        Thread thread = new Thread(this::run, "member-" + request.get("name").asText());
        thread.setDaemon(true);
        thread.start();
    }

    private static Properties properties(JsonNode request) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", request.get("bootstrap").asText());
        properties.put("group.id", request.get("group").asText());
        properties.put("client.id", request.get("name").asText());
        properties.put("auto.offset.reset", "earliest");
        properties.put("enable.auto.commit", "false");
        properties.put("metadata.max.age.ms", "1000");
        properties.put("retry.backoff.ms", "50");
        if (request.hasNonNull("instance")) {
            properties.put("group.instance.id", request.get("instance").asText());
        }
        if (consumerProtocol(request)) {
            properties.put("group.protocol", "consumer");
        } else {
            properties.put("group.protocol", "classic");
            properties.put("session.timeout.ms", request.get("session_ms").asText());
            properties.put("heartbeat.interval.ms", "300");
            properties.put("partition.assignment.strategy", ASSIGNORS.get(request.get("assignor").asText()));
        }
        request.get("config").properties().forEach(e -> properties.put(e.getKey(), e.getValue().asText()));
        return properties;
    }

    private static boolean consumerProtocol(JsonNode request) {
        return request.get("protocol").asText().equals("consumer");
    }

    private void subscribe(JsonNode request) {
        if (!request.hasNonNull("pattern")) {
            List<String> topics = new ArrayList<>();
            request.get("topics").forEach(topic -> topics.add(topic.asText()));
            consumer.subscribe(topics, this);
        } else if (consumerProtocol(request)) {
            consumer.subscribe(new SubscriptionPattern(request.get("pattern").asText()), this);
        } else {
            consumer.subscribe(Pattern.compile(request.get("pattern").asText()), this);
        }
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

    private void poll() {
        try {
            int before = read.size();
            consumer.poll(POLL).forEach(each -> {
                read.add(each);
                uncopied.add(each);
            });
            publish();
            if (commits && read.size() > before) {
                consumer.commitAsync();
            }
        } catch (Exception failure) {
            fatal = Failure.code(Failure.cause(failure));
        }
    }

    private void publish() {
        ConsumerGroupMetadata metadata = consumer.groupMetadata();
        Map<String, Object> state = new LinkedHashMap<>();
        state.put("assignment", pairs(consumer.assignment()));
        state.put("generation", metadata.generationId());
        state.put("member_id", metadata.memberId());
        snapshot = state;
    }

    private static List<List<Object>> pairs(Collection<TopicPartition> partitions) {
        List<List<Object>> pairs = new ArrayList<>();
        partitions.forEach(each -> pairs.add(List.of(each.topic(), each.partition())));
        return pairs;
    }

    /** Runs in the polling thread, the only one that may touch the consumer. */
    <T> T ask(Callable<T> what) throws Exception {
        FutureTask<T> task = new FutureTask<>(what);
        asked.add(task);
        return task.get();
    }

    Map<String, Object> state() {
        Map<String, Object> state = new HashMap<>(snapshot);
        state.putIfAbsent("assignment", List.of());
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
            if (offsets.isArray()) {
                consumer.commitSync(parse(offsets));
            } else {
                consumer.commitSync();
            }
            return null;
        });
    }

    private static Map<TopicPartition, OffsetAndMetadata> parse(JsonNode offsets) {
        Map<TopicPartition, OffsetAndMetadata> parsed = new HashMap<>();
        for (JsonNode row : offsets) {
            TopicPartition partition = new TopicPartition(row.get(0).asText(), row.get(1).asInt());
            parsed.put(partition, new OffsetAndMetadata(row.get(2).asLong()));
        }
        return parsed;
    }

    Object committed(JsonNode partitions) throws Exception {
        return ask(() -> {
            List<List<Object>> rows = new ArrayList<>();
            for (JsonNode pair : partitions) {
                TopicPartition partition = new TopicPartition(pair.get(0).asText(), pair.get(1).asInt());
                OffsetAndMetadata offset = consumer.committed(Set.of(partition)).get(partition);
                if (offset != null) {
                    rows.add(List.of(partition.topic(), partition.partition(), offset.offset()));
                }
            }
            return rows;
        });
    }

    /** The records read since the last call, up to that value; in the polling thread only. */
    List<ConsumerRecord<String, String>> take(String upTo) {
        while (fatal == null && uncopied.stream().noneMatch(each -> each.value().equals(upTo))) {
            poll();
        }
        List<ConsumerRecord<String, String>> fresh = List.copyOf(uncopied);
        uncopied.clear();
        return fresh;
    }

    ConsumerGroupMetadata metadata() {
        return consumer.groupMetadata();
    }

    /** Null: as the client does by itself; true: leave the group; false: stay in it. */
    void close(JsonNode leave) throws Exception {
        ask(() -> {
            running = false;
            CloseOptions options = CloseOptions.timeout(Duration.ofSeconds(10));
            if (leave.isBoolean()) {
                options.withGroupMembershipOperation(leave.asBoolean()
                        ? CloseOptions.GroupMembershipOperation.LEAVE_GROUP
                        : CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
            }
            consumer.close(options);
            return null;
        });
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        rebalances++;
    }

    /** What the Javadoc shows: the positions of what is let go of are committed; else it will be read again. */
    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        uncopied.removeIf(each -> partitions.contains(new TopicPartition(each.topic(), each.partition())));
        if (commits) {
            Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
            partitions.forEach(p -> positions.put(p, new OffsetAndMetadata(consumer.position(p))));
            consumer.commitSync(positions);
        }
    }
}

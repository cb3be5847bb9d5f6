import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A member is frozen, 45 seconds pass, and the other one is called with its partitions. */
class RebalanceTest {
    private Process server;
    private String bootstrap, control, token;

    @BeforeEach
    void start() throws Exception {
        Path ready = Files.createTempDirectory("kgroup").resolve("ready.json");
        String kgroup = System.getenv().getOrDefault("KGROUP", "kgroup");
        server = new ProcessBuilder(kgroup, "serve", "--memory", "--port", "0", "--control", "0",
                "--ready-file", ready.toString(), "--set", "group.initial.rebalance.delay.ms=0",
                "--set", "group.consumer.heartbeat.interval.ms=100",
                "--set", "group.consumer.min.heartbeat.interval.ms=100").inheritIO().start();
        until(() -> Files.exists(ready) || !server.isAlive());
        String json = Files.readString(ready);
        bootstrap = field(json, "bootstrap");
        control = field(json, "control");
        token = field(json, "token");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(new NewTopic("orders", 6, (short) 1))).all().get();
        }
    }

    @AfterEach
    void stop() throws Exception {
        server.destroy();
        server.waitFor(30, TimeUnit.SECONDS);
    }

    @ParameterizedTest
    @ValueSource(strings = {"classic", "consumer"})
    void theOtherMemberIsAssignedWhatTheFrozenOneHad(String protocol) throws Exception {
        try (Member a = new Member("orders-0", protocol); Member b = new Member("orders-1", protocol)) {
            until(() -> a.poll().size() + b.poll().size() == 6 && !a.owned.isEmpty() && !b.owned.isEmpty());
            // poll() throws in a member that is fenced while it asks where to begin, with Kafka as here.
            a.begins();
            ask("/members/freeze", "{\"member\": \"orders-0\"}", 200);
            ask("/advance", "{\"by\": \"45s\"}", 200);
            until(() -> b.poll().size() == 6);
            ask("/members/thaw", "{\"member\": \"orders-0\"}", 200);
            until(() -> { b.poll(); return a.poll().size() > 0 && a.lost; });
        }
    }

    @Test
    void aCommitThatFailsOnce() throws Exception {
        ask("/faults", "{\"rules\": [{\"keys\": [\"OffsetCommit\"], \"error\": \"NOT_COORDINATOR\"}]}", 200);
        try (Member a = new Member("orders-0", "classic")) {
            until(() -> a.poll().size() == 6);
            // It asks for the coordinator again, and commits.
            a.consumer.commitSync(Map.of(new TopicPartition("orders", 0), new OffsetAndMetadata(1)));
        }
        assertEquals("1", field(ask("/faults/1/wait", "{\"hits\": 1}", 200), "hits"));
    }

    @Test
    void negativeTimeIsRefused() throws Exception {
        ask("/advance", "{\"by\": \"-1s\"}", 400);
    }

    private String ask(String path, String body, int status) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(control + path))
                .header("Authorization", "Bearer " + token)
                .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        HttpResponse<String> answer = HttpClient.newHttpClient().send(request, HttpResponse.BodyHandlers.ofString());
        assertEquals(status, answer.statusCode(), answer.body());
        return answer.body();
    }

    private static String field(String json, String name) {
        Matcher found = Pattern.compile("\"" + name + "\": \"?([^\",}]+)").matcher(json);
        return found.find() ? found.group(1) : null;
    }

    private static void until(BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(120);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() > end) throw new AssertionError("not in time");
            Thread.sleep(5);
        }
    }

    /** A consumer, and what its listener was called with. */
    private final class Member implements AutoCloseable, ConsumerRebalanceListener {
        final KafkaConsumer<String, String> consumer;
        final Set<TopicPartition> owned = new HashSet<>();
        boolean lost;

        Member(String name, String protocol) {
            Map<String, Object> settings = new java.util.HashMap<>(Map.of("bootstrap.servers", bootstrap, "group.id", "pay",
                    "client.id", name, "group.protocol", protocol, "auto.offset.reset", "earliest",
                    "key.deserializer", StringDeserializer.class, "value.deserializer", StringDeserializer.class));
            if (protocol.equals("classic")) settings.put("heartbeat.interval.ms", 100);
            consumer = new KafkaConsumer<>(settings);
            consumer.subscribe(List.of("orders"), this);
        }

        Set<TopicPartition> poll() {
            consumer.poll(Duration.ofMillis(10));
            return owned;
        }

        void begins() {
            for (TopicPartition partition : Set.copyOf(owned)) consumer.position(partition);
        }

        @Override public void onPartitionsAssigned(Collection<TopicPartition> partitions) { owned.addAll(partitions); }
        @Override public void onPartitionsRevoked(Collection<TopicPartition> partitions) { owned.removeAll(partitions); }
        @Override public void onPartitionsLost(Collection<TopicPartition> partitions) { lost = true; owned.removeAll(partitions); }
        @Override public void close() { consumer.close(org.apache.kafka.clients.consumer.CloseOptions.timeout(Duration.ofSeconds(5))); }
    }
}

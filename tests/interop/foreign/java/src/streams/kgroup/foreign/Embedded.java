package kgroup.foreign;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.runtime.distributed.ConnectProtocol;
import org.apache.kafka.connect.runtime.distributed.ExtendedAssignment;
import org.apache.kafka.connect.runtime.distributed.ExtendedWorkerState;
import org.apache.kafka.connect.runtime.distributed.IncrementalCooperativeConnectProtocol;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.assignment.ProcessId;
import org.apache.kafka.streams.processor.internals.assignment.AssignmentInfo;
import org.apache.kafka.streams.processor.internals.assignment.SubscriptionInfo;
import org.apache.kafka.streams.state.HostInfo;

/**
 * Bytes of Connect's and Streams' embedded protocols as Kafka's own classes write them, and what they mean.
 * Arguments: a seed, and how many of each. Prints a JSON line each: kind, version, hex, means.
 */
public final class Embedded {
    private static final ObjectMapper JSON = new ObjectMapper();
    private final Random random;

    private Embedded(long seed) {
        random = new Random(seed);
    }

    public static void main(String[] args) throws Exception {
        Embedded made = new Embedded(Long.parseLong(args[0]));
        for (int i = 0; i < Integer.parseInt(args[1]); i++) {
            made.connect(i % 3);
            made.subscription(1 + i % 11);
            made.assignment(1 + i % 11);
        }
    }

    private static void tell(String kind, int version, ByteBuffer bytes, Map<String, Object> means) throws Exception {
        byte[] all = new byte[bytes.remaining()];
        bytes.get(all);
        Map<String, Object> line = new LinkedHashMap<>();
        line.put("kind", kind);
        line.put("version", version);
        line.put("hex", HexFormat.of().formatHex(all));
        line.put("means", means);
        System.out.println(JSON.writeValueAsString(line));
    }

    private void connect(int version) throws Exception {
        ExtendedAssignment before = extended(version);
        String url = "http://" + word() + ":" + (1024 + random.nextInt(60000)) + "/";
        long offset = random.nextInt(1000) - 1;
        Map<String, Object> means = new TreeMap<>();
        means.put("url", url);
        means.put("config_offset", offset);
        if (version == 0) {
            tell("connect-metadata", version,
                    ConnectProtocol.serializeMetadata(new ConnectProtocol.WorkerState(url, offset)), means);
        } else {
            boolean nothing = random.nextInt(4) == 0;
            ExtendedWorkerState state = new ExtendedWorkerState(url, offset, nothing ? null : before);
            means.put("before", nothing ? work(List.of(), List.of()) : work(before.connectors(), before.tasks()));
            tell("connect-metadata", version,
                    IncrementalCooperativeConnectProtocol.serializeMetadata(state, version == 2), means);
        }
        ExtendedAssignment given = extended(version);
        Map<String, Object> told = new TreeMap<>();
        told.put("error", given.error() == 0 ? null : "CONFIG_MISMATCH");
        told.put("leader", given.leader());
        told.put("leader_url", given.leaderUrl());
        told.put("config_offset", given.offset());
        told.put("given", work(given.connectors(), given.tasks()));
        told.put("revoked", version == 0
                ? work(List.of(), List.of()) : work(given.revokedConnectors(), given.revokedTasks()));
        told.put("delay_ms", version == 0 ? 0 : given.delay());
        tell("connect-assignment", version, version == 0
                ? ConnectProtocol.serializeAssignment(given)
                : IncrementalCooperativeConnectProtocol.serializeAssignment(given, version == 2), told);
    }

    private ExtendedAssignment extended(int version) {
        return new ExtendedAssignment((short) version, (short) random.nextInt(2), word(), "http://" + word() + ":1/",
                random.nextInt(1000), connectors(), tasks(), connectors(), tasks(), random.nextInt(300000));
    }

    private List<String> connectors() {
        Set<String> found = new TreeSet<>();
        for (int i = random.nextInt(4); i > 0; i--) {
            found.add(word());
        }
        return new ArrayList<>(found);
    }

    private List<ConnectorTaskId> tasks() {
        Set<ConnectorTaskId> found = new TreeSet<>();
        for (int i = random.nextInt(5); i > 0; i--) {
            found.add(new ConnectorTaskId(word(), random.nextInt(12)));
        }
        return new ArrayList<>(found);
    }

    private static Map<String, Object> work(Collection<String> connectors, Collection<ConnectorTaskId> tasks) {
        Map<String, Set<Integer>> byConnector = new TreeMap<>();
        for (ConnectorTaskId task : tasks) {
            byConnector.computeIfAbsent(task.connector(), name -> new TreeSet<>()).add(task.task());
        }
        List<Object> rows = new ArrayList<>();
        byConnector.forEach((name, numbers) -> rows.add(Map.of("connector", name, "tasks", numbers)));
        return Map.of("connectors", new TreeSet<>(connectors), "tasks", rows);
    }

    private void subscription(int version) throws Exception {
        UUID process = new UUID(random.nextLong(), random.nextLong());
        int latest = version < 3 ? -1 : version + random.nextInt(3);
        String endpoint = random.nextBoolean() ? null : word() + ":7000";
        Map<TaskId, Long> sums = new HashMap<>();
        for (int i = random.nextInt(6); i > 0; i--) {
            long[] possible = {-2L, -3L, random.nextInt(100000), 0};
            sums.put(task(version), possible[random.nextInt(4)]);
        }
        Map<String, String> tags = version < 11 || random.nextBoolean() ? Map.of() : Map.of("zone", word(), "k", "");
        byte unique = (byte) random.nextInt(256);
        int error = random.nextInt(5);
        SubscriptionInfo info =
                new SubscriptionInfo(version, latest, new ProcessId(process), endpoint, sums, unique, error, tags);
        Map<String, Object> means = new TreeMap<>();
        means.put("version", version);
        means.put("latest_version", version < 3 ? null : latest);
        means.put("process_id", process.toString());
        means.put("user_endpoint", version < 2 ? null : endpoint);
        means.put("unique_field", version < 8 ? null : unique);
        means.put("error", version < 9 ? null : ERRORS[error]);
        means.put("client_tags", tags);
        Map<String, Object> previous = new TreeMap<>();
        sums.forEach((task, sum) -> {
            Map<String, Object> told = new HashMap<>();
            told.put("role", sum == -2 ? "active" : "standby");
            told.put("offset_sum", version < 7 || sum < 0 ? null : sum);
            previous.put(task.toString(), told);
        });
        means.put("previous", previous);
        tell("streams-metadata", version, info.encode(), means);
    }

    private static final String[] ERRORS = {
        null, "INCOMPLETE_SOURCE_TOPIC_METADATA", "VERSION_PROBING", "ASSIGNMENT_ERROR", "SHUTDOWN_REQUESTED"
    };

    private void assignment(int version) throws Exception {
        List<TaskId> active = new ArrayList<>();
        for (int i = random.nextInt(6); i > 0; i--) {
            active.add(task(version));
        }
        Map<TaskId, Set<TopicPartition>> standby = new HashMap<>();
        for (int i = random.nextInt(4); i > 0; i--) {
            standby.put(task(version), partitions());
        }
        Map<HostInfo, Set<TopicPartition>> hosts = hosts();
        Map<HostInfo, Set<TopicPartition>> replicas = hosts();
        int error = random.nextInt(5);
        AssignmentInfo info = new AssignmentInfo(version, 11, active, standby, hosts, replicas, error);
        long next = random.nextBoolean() ? Long.MAX_VALUE : random.nextLong() >>> 20;
        info.setNextRebalanceTime(next);
        Map<String, Object> means = new TreeMap<>();
        means.put("version", version);
        means.put("latest_version", version < 3 ? null : 11);
        means.put("active", names(active));
        means.put("standby", names(standby.keySet()));
        means.put("error", version < 4 ? null : ERRORS[error]);
        means.put("next_rebalance_ms", version < 7 || next == Long.MAX_VALUE ? null : next);
        means.put("active_hosts", version < 2 ? Map.of() : told(hosts));
        means.put("standby_hosts", version < 6 ? Map.of() : told(replicas));
        tell("streams-assignment", version, info.encode(), means);
    }

    private static Set<String> names(Collection<TaskId> tasks) {
        Set<String> names = new TreeSet<>();
        tasks.forEach(task -> names.add(task.toString()));
        return names;
    }

    private static Map<String, Object> told(Map<HostInfo, Set<TopicPartition>> hosts) {
        Map<String, Object> told = new TreeMap<>();
        hosts.forEach((host, partitions) -> {
            Set<String> names = new TreeSet<>();
            partitions.forEach(each -> names.add(each.toString()));
            told.put(host.host() + ":" + host.port(), names);
        });
        return told;
    }

    private Map<HostInfo, Set<TopicPartition>> hosts() {
        Map<HostInfo, Set<TopicPartition>> hosts = new HashMap<>();
        for (int i = random.nextInt(4); i > 0; i--) {
            hosts.put(new HostInfo(word(), random.nextInt(5)), partitions());
        }
        return hosts;
    }

    private Set<TopicPartition> partitions() {
        Set<TopicPartition> found = new HashSet<>();
        for (int i = 1 + random.nextInt(3); i > 0; i--) {
            found.add(new TopicPartition(word(), random.nextInt(20)));
        }
        return found;
    }

    private TaskId task(int version) {
        String topology = version >= 10 && random.nextInt(4) == 0 ? word() : null;
        return new TaskId(random.nextInt(4), random.nextInt(20), topology);
    }

    private String word() {
        String[] words = {"orders", "orders-sink", "pay", "größe", "a.b", "x"};
        return words[random.nextInt(words.length)];
    }
}

package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.AlterShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.DeleteShareGroupOffsetsRequestData;
import org.apache.kafka.common.message.ShareGroupDescribeResponseData;
import org.apache.kafka.common.message.ShareGroupHeartbeatRequestData;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Plays programs on share groups in Kafka's group coordinator. Each line of standard input is a program, `{"setup": {...}, "ops": [...]}`;
 * the answer is a line, a list with what each operation did. What the coordinator has the share coordinator do is an operation of its own.
 */
public final class Groups {
    private static final GroupCoordinatorMetrics METRICS = new GroupCoordinatorMetrics();
    private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);
    private static final GroupCoordinatorRecordSerde SERDE = new GroupCoordinatorRecordSerde();

    private final Clock clock = new Clock();
    private final List<CoordinatorRecord> log = new ArrayList<>();
    private final GroupCoordinatorConfig config;
    private final GroupConfigManager groupConfigs;
    private MetadataImage image = MetadataImage.EMPTY;
    private long version = 0;
    private SnapshotRegistry snapshots;
    private GroupCoordinatorShard shard;
    private Timers timers;
    private ArrayNode records = Player.JSON.createArrayNode();

    private Groups(JsonNode setup) {
        Map<String, Object> given = new HashMap<>();
        setup.get("broker").properties().forEach(setting -> given.put(setting.getKey(), setting.getValue().asText()));
        AbstractConfig all = new AbstractConfig(
            Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), given, false);
        config = new GroupCoordinatorConfig(all);
        groupConfigs = new GroupConfigManager(config, new ShareGroupConfig(all));
        setup.get("topics").forEach(this::change);
        load();
    }

    public static void main(String[] args) throws IOException {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode program = Player.JSON.readTree(line);
            Groups groups = new Groups(program.get("setup"));
            ArrayNode trace = Player.JSON.createArrayNode();
            program.get("ops").forEach(op -> trace.add(groups.played(op)));
            out.print(trace + "\n");
            out.flush();
        }
    }

    private ObjectNode played(JsonNode op) {
        ObjectNode told = Player.JSON.createObjectNode();
        records = told.putArray("records");
        try {
            carryOut(op, told);
        } catch (ApiException refused) {
            told.put("error", Errors.forException(refused).name());
            told.put("message", refused.getMessage());
        } catch (RuntimeException crash) {
            told.put("crash", crash.toString());
        }
        return told;
    }

    private void carryOut(JsonNode op, ObjectNode told) {
        String group = op.path("group").asText();
        switch (op.get("op").asText()) {
            case "heartbeat" -> {
                advance(1); // so that no two sessions end at one time
                var answer = done(shard.shareGroupHeartbeat(context(op), new ShareGroupHeartbeatRequestData(body(op), (short) 1)));
                told.put("answer", hex(answer.getKey(), 1));
                answer.getValue().ifPresent(asked -> initialize(told, asked));
            }
            case "initialized" -> done(shard.initializeShareGroupState(group, partitions(op)));
            case "failed" -> done(shard.uninitializeShareGroupState(group, partitions(op)));
            case "alter" -> {
                var answer = done(shard.alterShareGroupOffsets(group, new AlterShareGroupOffsetsRequestData(body(op), (short) 0)));
                told.put("answer", hex(answer.getKey(), 0));
                initialize(told, answer.getValue());
            }
            case "begin_delete" -> beginDelete(group, op, told);
            case "end_delete" -> {
                Map<Uuid, String> topics = new HashMap<>();
                op.get("topics").forEach(topic -> topics.put(Uuid.fromString(topic.asText()), ""));
                done(shard.completeDeleteShareGroupOffsets(group, topics, List.of()));
            }
            case "begin_delete_group" -> {
                var asked = done(shard.sharePartitionDeleteRequests(List.of(group))).get(group);
                if (asked != null) {
                    told.put("code", asked.getValue().name());
                    deleted(told, asked.getKey());
                }
            }
            case "delete_group" ->
                told.put("code", Errors.forCode(done(shard.deleteGroups(null, List.of(group))).find(group).errorCode()).name());
            case "describe" -> told.put("answer", hex(new ShareGroupDescribeResponseData()
                .setGroups(shard.shareGroupDescribe(List.of(group), log.size())), 1));
            case "topic" -> topic(op);
            case "settings" -> {
                Properties own = new Properties();
                op.get("settings").properties().forEach(one -> own.put(one.getKey(), one.getValue().asText()));
                groupConfigs.updateGroupConfig(group, own);
            }
            case "wait" -> advance(op.get("ms").asLong());
            case "load" -> {
                load();
                op.get("order").forEach(member -> timers.last("session-timeout-" + member.asText()));
            }
            default -> throw new IllegalArgumentException(op.toString());
        }
    }

    private void beginDelete(String group, JsonNode op, ObjectNode told) {
        var request = new DeleteShareGroupOffsetsRequestData(body(op), (short) 0);
        var holder = done(shard.initiateDeleteShareGroupOffsets(group, request));
        told.put("code", Errors.forCode(holder.topLevelErrorCode()).name());
        if (holder.errorTopicResponseList() != null) {
            ArrayNode absent = told.putArray("absent");
            holder.errorTopicResponseList().forEach(topic -> absent.add(topic.topicName() + ": " + topic.errorMessage()));
        }
        if (holder.deleteStateRequestParameters() != null) {
            deleted(told, holder.deleteStateRequestParameters());
        }
    }

    private void load() {
        timers = new Timers();
        snapshots = new SnapshotRegistry(new LogContext());
        GroupCoordinatorShard.Builder builder = new GroupCoordinatorShard.Builder(config, groupConfigs);
        builder.withLogContext(new LogContext()).withSnapshotRegistry(snapshots).withTime(clock).withTimer(timers)
            .withExecutor(new Idle()).withCoordinatorMetrics(METRICS).withTopicPartition(PARTITION);
        shard = builder.withAuthorizerPlugin(Optional.empty()).build();
        snapshots.idempotentCreateSnapshot(0);
        for (int offset = 0; offset < log.size(); offset++) {
            shard.replay(offset, -1L, (short) 0, log.get(offset));
        }
        snapshots.idempotentCreateSnapshot(log.size());
        shard.onLoaded(new KRaftCoordinatorMetadataImage(image));
    }

    private <T> T done(CoordinatorResult<T, CoordinatorRecord> result) {
        for (CoordinatorRecord record : result.records()) {
            byte[] value = SERDE.serializeValue(record);
            records.addArray().add(HexFormat.of().formatHex(SERDE.serializeKey(record)))
                .add(value == null ? null : HexFormat.of().formatHex(value));
            shard.replay(log.size(), -1L, (short) 0, record);
            log.add(record);
        }
        snapshots.idempotentCreateSnapshot(log.size());
        return result.response();
    }

    private static void initialize(ObjectNode told, InitializeShareGroupStateParameters asked) {
        ObjectNode topics = told.putObject("initialize");
        asked.groupTopicPartitionData().topicsData().forEach(topic -> {
            ObjectNode partitions = topics.putObject(topic.topicId().toString());
            topic.partitions().forEach(each ->
                partitions.put(Integer.toString(each.partition()), each.stateEpoch() + " " + each.startOffset()));
        });
    }

    private static void deleted(ObjectNode told, DeleteShareGroupStateParameters asked) {
        if (asked.groupTopicPartitionData().topicsData().isEmpty()) {
            return;
        }
        ObjectNode topics = told.putObject("delete");
        asked.groupTopicPartitionData().topicsData().forEach(topic -> {
            ArrayNode partitions = topics.putArray(topic.topicId().toString());
            topic.partitions().stream().map(each -> each.partition()).sorted().forEach(partitions::add);
        });
    }

    private void topic(JsonNode op) {
        MetadataDelta delta = change(op);
        Set<Uuid> gone = delta.topicsDelta() == null ? Set.of() : delta.topicsDelta().deletedTopicIds();
        shard.onMetadataUpdate(new KRaftCoordinatorMetadataDelta(delta), new KRaftCoordinatorMetadataImage(image));
        if (!gone.isEmpty()) {
            done(shard.maybeCleanupShareGroupState(gone));
        }
    }

    /** A topic created, grown to so many partitions, or, with none, deleted. */
    private MetadataDelta change(JsonNode op) {
        MetadataDelta delta = new MetadataDelta.Builder().setImage(image).build();
        Uuid id = Uuid.fromString(op.get("id").asText());
        int partitions = op.get("partitions").asInt();
        if (partitions == 0) {
            delta.replay(new RemoveTopicRecord().setTopicId(id));
        } else {
            var known = image.topics().getTopic(id);
            if (known == null) {
                delta.replay(new TopicRecord().setTopicId(id).setName(op.get("name").asText()));
            }
            for (int number = known == null ? 0 : known.partitions().size(); number < partitions; number++) {
                delta.replay(new PartitionRecord().setTopicId(id).setPartitionId(number).setReplicas(List.of(0)));
            }
        }
        image = delta.apply(new MetadataProvenance(++version, 0, 0L, true));
        return delta;
    }

    private void advance(long ms) {
        long until = clock.milliseconds() + ms;
        Timers.Armed due;
        while ((due = timers.take(until)) != null) {
            clock.advance(Math.max(0, due.deadline - clock.milliseconds()));
            Timers.Armed fired = due;
            Supplier<CoordinatorResult<Void, CoordinatorRecord>> operation = () -> fired.operation.generateRecords();
            done(operation.get());
        }
        clock.advance(until - clock.milliseconds());
    }

    private static Map<Uuid, Set<Integer>> partitions(JsonNode op) {
        Map<Uuid, Set<Integer>> found = new HashMap<>();
        op.get("partitions").properties().forEach(topic -> {
            Set<Integer> numbers = found.computeIfAbsent(Uuid.fromString(topic.getKey()), k -> new HashSet<>());
            topic.getValue().forEach(number -> numbers.add(number.asInt()));
        });
        return found;
    }

    private static ByteBufferAccessor body(JsonNode op) {
        return new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(op.get("request").asText())));
    }

    private static String hex(ApiMessage message, int version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, (short) version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    private static AuthorizableRequestContext context(JsonNode op) {
        Class<?>[] what = {AuthorizableRequestContext.class};
        return (AuthorizableRequestContext) Proxy.newProxyInstance(Groups.class.getClassLoader(), what, (proxy, method, none) ->
            switch (method.getName()) {
                case "clientId" -> op.get("client").asText();
                case "clientAddress" -> InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
                default -> null;
            });
    }

    /** What is armed, taken one by one in the order in which it falls due. */
    private final class Timers implements CoordinatorTimer<CoordinatorRecord> {
        private record Armed(String key, long deadline, long order, TimeoutOperation<CoordinatorRecord> operation) { }

        private final Map<String, Armed> armed = new TreeMap<>();
        private long order = 0;

        @Override
        public void schedule(String key, long delay, TimeUnit unit, boolean retry, long backoff,
                             TimeoutOperation<CoordinatorRecord> operation) {
            armed.put(key, new Armed(key, clock.milliseconds() + unit.toMillis(delay), order++, operation));
        }

        @Override
        public void schedule(String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            schedule(key, delay, unit, retry, 500, operation);
        }

        @Override
        public void scheduleIfAbsent(String key, long delay, TimeUnit unit, boolean retry,
                                     TimeoutOperation<CoordinatorRecord> operation) {
            if (!armed.containsKey(key)) {
                schedule(key, delay, unit, retry, operation);
            }
        }

        @Override
        public void cancel(String key) {
            armed.remove(key);
        }

        @Override
        public boolean isScheduled(String key) {
            return armed.containsKey(key);
        }

        /** Puts a timer behind those that fall due with it: what is armed at loading comes in the order of a hash table. */
        void last(String key) {
            armed.computeIfPresent(key, (k, each) -> new Armed(k, each.deadline, order++, each.operation));
        }

        Armed take(long until) {
            Armed next = armed.values().stream().filter(each -> each.deadline <= until)
                .min((one, other) -> one.deadline == other.deadline
                    ? Long.compare(one.order, other.order) : Long.compare(one.deadline, other.deadline)).orElse(null);
            if (next != null) {
                armed.remove(next.key);
            }
            return next;
        }
    }

    /** Share groups leave nothing to other threads. */
    private static final class Idle implements CoordinatorExecutor<CoordinatorRecord> {
        @Override
        public <R> boolean schedule(String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
            throw new UnsupportedOperationException(key);
        }

        @Override
        public boolean isScheduled(String key) {
            return false;
        }

        @Override
        public void cancel(String key) { }
    }
}

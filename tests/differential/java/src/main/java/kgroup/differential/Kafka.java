package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.requests.TransactionResult;
import org.apache.kafka.common.utils.MockTime;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Kafka's coordinator of one partition, in the hands of a runtime that does what CoordinatorRuntime does for one
 * broker: replay what an operation wrote, append it, commit it at once, and only then complete what waited for that.
 */
final class Kafka {
    /** What was appended: a record as its bytes say it, or the end of the producer's transaction. */
    private record Entry(long producerId, CoordinatorRecord record, TransactionResult ended) { }

    private static final int MOST_FIRED = 100;
    static final long START_MS = 1_700_000_000_000L;
    private static final GroupCoordinatorMetrics METRICS = new GroupCoordinatorMetrics();
    private static final TopicPartition PARTITION = new TopicPartition("__consumer_offsets", 0);

    final MockTime time = new MockTime(0, START_MS, START_MS);
    final List<Spy> assignors;
    final GroupCoordinatorConfig config;
    Timers timers;
    Tasks tasks;
    GroupCoordinatorShard shard;
    private SnapshotRegistry snapshots;
    private final GroupConfigManager groupConfigs;
    private final List<Entry> log = new ArrayList<>();
    private final Trace trace;
    private long endOffset = 0;

    Kafka(JsonNode settings, Topics topics, Trace trace) {
        this.trace = trace;
        Map<String, Object> given = new HashMap<>();
        settings.properties().forEach(setting -> given.put(setting.getKey(), setting.getValue().asText()));
        given.put(GroupCoordinatorConfig.CONSUMER_GROUP_ASSIGNORS_CONFIG, 
            List.of(Spy.Uniform.class.getName(), Spy.Range.class.getName()));
        AbstractConfig all = new AbstractConfig(
            Utils.mergeConfigs(List.of(GroupCoordinatorConfig.CONFIG_DEF, ShareGroupConfig.CONFIG_DEF)), given, false);
        config = new GroupCoordinatorConfig(all);
        assignors = config.consumerGroupAssignors().stream().map(Spy.class::cast).toList();
        assignors.forEach(spy -> spy.trace = trace);
        ShareGroupConfig shares = new ShareGroupConfig(all);
        groupConfigs = Release.groupConfigs(config, shares);
        load(topics);
    }

    /** Starts anew from the log, as a broker that leads the partition again; what was parked is never answered. */
    void load(Topics topics) {
        timers = new Timers(time);
        tasks = new Tasks();
        snapshots = Release.snapshots();
        endOffset = 0;
        GroupCoordinatorShard.Builder builder = new GroupCoordinatorShard.Builder(config, groupConfigs);
        Release.name(builder);
        builder.withSnapshotRegistry(snapshots).withTime(time).withTimer(timers)
            .withExecutor(tasks).withCoordinatorMetrics(METRICS).withTopicPartition(PARTITION);
        shard = builder.withAuthorizerPlugin(Optional.empty()).build();
        StreamsSpy.install(States.field(shard, "groupMetadataManager"), trace);
        snapshots.idempotentCreateSnapshot(0);
        for (int offset = 0; offset < log.size(); offset++) {
            Entry entry = log.get(offset);
            if (entry.record == null) {
                shard.replayEndTransactionMarker(entry.producerId, (short) 0, entry.ended);
            } else {
                shard.replay(offset, entry.producerId, (short) 0, entry.record);
            }
        }
        grow();
        shard.onLoaded(topics.wrapped());
    }

    /** The offset up to which reads see everything. */
    long committed() {
        return endOffset;
    }

    <T> T write(Supplier<CoordinatorResult<T, CoordinatorRecord>> operation) {
        return write(-1L, operation);
    }

    /** Carries out an operation and what the runtime does with its result; throws what the operation throws. */
    <T> T write(long producerId, Supplier<CoordinatorResult<T, CoordinatorRecord>> operation) {
        CoordinatorResult<T, CoordinatorRecord> result = operation.get();
        long offset = endOffset;
        if (result.replayRecords()) {
            for (CoordinatorRecord record : result.records()) {
                shard.replay(offset++, producerId, (short) 0, record);
            }
        }
        trace.records(result.records());
        result.records().forEach(record -> log.add(new Entry(producerId, Trace.reread(record), null)));
        grow();
        if (result.appendFuture() != null) {
            result.appendFuture().complete(null);
        }
        return result.response();
    }

    void endTransaction(long producerId, boolean commit) {
        TransactionResult result = commit ? TransactionResult.COMMIT : TransactionResult.ABORT;
        shard.replayEndTransactionMarker(producerId, (short) 0, result);
        log.add(new Entry(producerId, null, result));
        grow();
    }

    private void grow() {
        if (log.size() == endOffset) {
            return;
        }
        endOffset = log.size();
        snapshots.idempotentCreateSnapshot(endOffset);
        snapshots.deleteSnapshotsUpTo(endOffset);
    }

    void configure(String group, JsonNode settings) {
        Properties properties = new Properties();
        settings.properties().forEach(one -> properties.put(one.getKey(), one.getValue().asText()));
        groupConfigs.updateGroupConfig(group, properties);
    }

    /** Lets time pass, and every timer that falls due meanwhile fire at its deadline, each an event of the trace. */
    void advanceTo(long untilMs, Supplier<ObjectNode> state) {
        runTasks(state);
        Timers.Armed due;
        // A broker's timers come in turn with requests: one that is armed for now again and again holds up nobody.
        for (int fired = 0; fired < MOST_FIRED && (due = timers.take(untilMs)) != null; fired++) {
            if (due.deadlineMs() > time.milliseconds()) {
                time.setCurrentTimeMs(due.deadlineMs());
            }
            fire(due, state);
            runTasks(state);
        }
        if (untilMs > time.milliseconds()) {
            time.setCurrentTimeMs(untilMs);
        }
    }

    private void fire(Timers.Armed due, Supplier<ObjectNode> state) {
        ObjectNode event = trace.begin("fire", time.milliseconds());
        event.put("key", due.key());
        try {
            write(() -> due.operation().generateRecords());
        } catch (RuntimeException failed) {
            event.put("failed", failed.toString());
            timers.again(due);
        }
        trace.end(state);
    }

    void runTasks(Supplier<ObjectNode> state) {
        for (String key = tasks.next(); key != null; key = tasks.next()) {
            String name = key;
            trace.begin("task", time.milliseconds()).put("key", name);
            write(() -> tasks.run(name));
            trace.end(state);
        }
    }
}

package kgroup.differential;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.JoinGroupRequestData;
import org.apache.kafka.common.message.JoinGroupResponseData;
import org.apache.kafka.common.message.OffsetDeleteRequestData;
import org.apache.kafka.common.message.OffsetDeleteResponseData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData.DescribedGroup;
import org.apache.kafka.common.message.SyncGroupRequestData;
import org.apache.kafka.common.message.SyncGroupResponseData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestPartition;
import org.apache.kafka.common.message.TxnOffsetCommitRequestData.TxnOffsetCommitRequestTopic;
import org.apache.kafka.common.message.TxnOffsetCommitResponseData;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.common.requests.TxnOffsetCommitResponse;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorService;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.timeline.SnapshotRegistry;

/** What Kafka 4.3.1's classes are called and want, where another release's differ. */
final class Release {
    static final String VERSION = "4.3";
    static final short STREAMS = 0;
    static final short TXN_OFFSET_COMMIT = 5;
    static final boolean STATIC_STREAMS_MEMBERS = false;

    private Release() { }

    static SnapshotRegistry snapshots() {
        return new SnapshotRegistry(new LogContext());
    }

    static void name(GroupCoordinatorShard.Builder builder) {
        builder.withLogContext(new LogContext());
    }

    static GroupConfigManager groupConfigs(GroupCoordinatorConfig config, ShareGroupConfig shares) {
        return new GroupConfigManager(config.extractGroupConfigMap(shares), config, shares);
    }

    static void check(Map<String, String> settings, GroupCoordinatorConfig config, ShareGroupConfig shares) {
        GroupConfig.validate(settings, config, shares);
    }

    static Object[] parts(GroupCoordinatorConfig config) {
        return new Object[] {new LogContext(), config, null, null, null, null, null, null};
    }

    static CompletableFuture<JoinGroupResponseData> join(
        GroupCoordinatorService service, RequestContext context, JoinGroupRequestData request
    ) {
        return service.joinGroup(context, request, BufferSupplier.NO_CACHING);
    }

    /** What the shard says of a join, without what the service does around it for plugins. */
    static CoordinatorResult<Void, CoordinatorRecord> join(
        GroupCoordinatorShard shard, RequestContext context, JoinGroupRequestData request,
        CompletableFuture<JoinGroupResponseData> answer
    ) {
        return shard.classicGroupJoin(context, request, answer);
    }

    static CompletableFuture<SyncGroupResponseData> sync(
        GroupCoordinatorService service, RequestContext context, SyncGroupRequestData request
    ) {
        return service.syncGroup(context, request, BufferSupplier.NO_CACHING);
    }

    static CompletableFuture<TxnOffsetCommitResponseData> commit(
        GroupCoordinatorService service, RequestContext context, TxnOffsetCommitRequestData request
    ) {
        return service.commitTransactionalOffsets(context, request, BufferSupplier.NO_CACHING);
    }

    static CompletableFuture<OffsetDeleteResponseData> delete(
        GroupCoordinatorService service, RequestContext context, OffsetDeleteRequestData request
    ) {
        return service.deleteOffsets(context, request, BufferSupplier.NO_CACHING);
    }

    static List<DescribedGroup> described(GroupCoordinatorShard shard, List<String> ids, long committed) {
        return shard.streamsGroupDescribe(ids, committed);
    }

    static void epoch(TxnOffsetCommitRequestData request, int epoch) {
        request.setGenerationId(epoch);
    }

    static void topic(TxnOffsetCommitRequestTopic topic, Uuid id) {
        // Its requests have names.
    }

    static Uuid topic(TxnOffsetCommitRequestTopic topic) {
        return Uuid.ZERO_UUID;
    }

    static TxnOffsetCommitResponse.Builder answer(short version) {
        return new TxnOffsetCommitResponse.Builder();
    }

    static void unknown(
        TxnOffsetCommitResponse.Builder answer, TxnOffsetCommitRequestTopic topic, int partition, Errors error
    ) {
        answer.addPartition(topic.name(), partition, error);
    }

    static void unknown(TxnOffsetCommitResponse.Builder answer, TxnOffsetCommitRequestTopic topic, Errors error) {
        answer.addPartitions(topic.name(), topic.partitions(),
            TxnOffsetCommitRequestPartition::partitionIndex, error);
    }
}

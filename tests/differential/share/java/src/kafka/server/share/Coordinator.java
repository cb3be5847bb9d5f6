package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.message.DeleteShareGroupStateRequestData;
import org.apache.kafka.common.message.InitializeShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateRequestData;
import org.apache.kafka.common.message.ReadShareGroupStateSummaryRequestData;
import org.apache.kafka.common.message.WriteShareGroupStateRequestData;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.requests.ReadShareGroupStateResponse;
import org.apache.kafka.common.requests.WriteShareGroupStateResponse;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.share.ShareCoordinatorConfig;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorShard;
import org.apache.kafka.coordinator.share.metrics.ShareCoordinatorMetrics;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.DeleteShareGroupStateResult;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateParameters;
import org.apache.kafka.server.share.persister.InitializeShareGroupStateResult;
import org.apache.kafka.server.share.persister.PartitionStateBatchData;
import org.apache.kafka.server.share.persister.Persister;
import org.apache.kafka.server.share.persister.ReadShareGroupStateParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateResult;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryParameters;
import org.apache.kafka.server.share.persister.ReadShareGroupStateSummaryResult;
import org.apache.kafka.server.share.persister.WriteShareGroupStateParameters;
import org.apache.kafka.server.share.persister.WriteShareGroupStateResult;
import org.apache.kafka.timeline.SnapshotRegistry;
import org.apache.kafka.common.utils.internals.LogContext;

/** Kafka's share coordinator on a log in memory, and the persister that a SharePartition has of it. */
final class Coordinator {
    private final Clock clock;
    private final ShareCoordinatorShard shard;
    private final ArrayNode records = Player.JSON.createArrayNode();
    private final Uuid topicId;
    private final ShareCoordinatorRecordSerde serde = new ShareCoordinatorRecordSerde();
    private Errors fails = Errors.NONE;
    private long offset;

    Coordinator(Clock clock, ObjectNode setup) {
        this.clock = clock;
        this.topicId = Uuid.fromString(setup.get("topic_id").asText());
        Properties own = new Properties();
        own.put("share.coordinator.snapshot.update.records.per.snapshot", setup.get("updates").asText());
        AbstractConfig config = new AbstractConfig(ShareCoordinatorConfig.CONFIG_DEF, own, false);
        ShareCoordinatorMetrics metrics = new ShareCoordinatorMetrics(new Metrics());
        shard = new ShareCoordinatorShard.Builder(new ShareCoordinatorConfig(config)).withLogContext(new LogContext()).withTime(clock)
            .withSnapshotRegistry(new SnapshotRegistry(new LogContext())).withCoordinatorMetrics(metrics)
            .withTopicPartition(new TopicPartition("__share_group_state", 0)).build();
        shard.onLoaded(new Image(topicId, setup.get("partitions").asInt()));
    }

    Uuid topicId() {
        return topicId;
    }

    void failNext(Errors error) {
        fails = error;
    }

    ArrayNode takeRecords() {
        ArrayNode taken = records.deepCopy();
        records.removeAll();
        return taken;
    }

    boolean knows(String name) {
        return Set.of("initialize", "read", "write", "delete", "summary", "cold", "redundant", "deleted").contains(name);
    }

    JsonNode asked(String name, JsonNode op) {
        return switch (name) {
            case "initialize" -> hex(carriedOut(shard.initializeState(new InitializeShareGroupStateRequestData(body(op), version(op)))), op);
            case "read" ->
                hex(carriedOut(shard.readStateAndMaybeUpdateLeaderEpoch(new ReadShareGroupStateRequestData(body(op), version(op)))), op);
            case "write" -> hex(carriedOut(shard.writeState(new WriteShareGroupStateRequestData(body(op), version(op)))), op);
            case "delete" -> hex(carriedOut(shard.deleteState(new DeleteShareGroupStateRequestData(body(op), version(op)))), op);
            case "summary" ->
                hex(carriedOut(shard.readStateSummary(new ReadShareGroupStateSummaryRequestData(body(op), version(op)))), op);
            case "cold" -> ignored(shard.snapshotColdPartitions());
            case "deleted" -> ignored(shard.maybeCleanupShareState(Set.of(topicId)));
            case "redundant" -> Player.JSON.getNodeFactory().numberNode(carriedOut(shard.lastRedundantOffset()).orElse(-1L));
            default -> throw new IllegalArgumentException(name);
        };
    }

    private static ByteBufferAccessor body(JsonNode op) {
        return new ByteBufferAccessor(ByteBuffer.wrap(HexFormat.of().parseHex(op.get("request").asText())));
    }

    private static short version(JsonNode op) {
        return (short) op.get("version").asInt();
    }

    private static JsonNode hex(ApiMessage message, JsonNode op) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, version(op)).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return Player.JSON.getNodeFactory().textNode(HexFormat.of().formatHex(bytes));
    }

    private JsonNode ignored(CoordinatorResult<Void, CoordinatorRecord> result) {
        carriedOut(result);
        return Player.JSON.nullNode();
    }

    private <T> T carriedOut(CoordinatorResult<T, CoordinatorRecord> result) {
        for (CoordinatorRecord record : result.records()) {
            byte[] value = serde.serializeValue(record);
            records.addArray().add(HexFormat.of().formatHex(serde.serializeKey(record)))
                .add(value == null ? null : HexFormat.of().formatHex(value));
            shard.replay(offset++, -1, (short) -1, record);
        }
        return result.response();
    }

    /** Calls the coordinator in the same breath; a write may be told to fail before it gets there. */
    Persister persister() {
        return new Persister() {
            @Override
            public CompletableFuture<ReadShareGroupStateResult> readState(ReadShareGroupStateParameters asked) {
                var topic = asked.groupTopicPartitionData().topicsData().get(0);
                var partition = topic.partitions().get(0);
                if (fails != Errors.NONE) {
                    return CompletableFuture.completedFuture(ReadShareGroupStateResult.from(
                        ReadShareGroupStateResponse.toErrorResponseData(topic.topicId(), partition.partition(), fails, fails.message())));
                }
                var request = new ReadShareGroupStateRequestData().setGroupId(asked.groupTopicPartitionData().groupId())
                    .setTopics(List.of(new ReadShareGroupStateRequestData.ReadStateData().setTopicId(topic.topicId())
                        .setPartitions(List.of(new ReadShareGroupStateRequestData.PartitionData().setPartition(partition.partition())
                            .setLeaderEpoch(partition.leaderEpoch())))));
                return done(carriedOut(shard.readStateAndMaybeUpdateLeaderEpoch(request)), ReadShareGroupStateResult::from);
            }

            @Override
            public CompletableFuture<WriteShareGroupStateResult> writeState(WriteShareGroupStateParameters asked) {
                var topic = asked.groupTopicPartitionData().topicsData().get(0);
                PartitionStateBatchData partition = topic.partitions().get(0);
                if (fails != Errors.NONE) {
                    return CompletableFuture.completedFuture(WriteShareGroupStateResult.from(
                        WriteShareGroupStateResponse.toErrorResponseData(topic.topicId(), partition.partition(), fails, fails.message())));
                }
                var batches = partition.stateBatches().stream().map(batch -> new WriteShareGroupStateRequestData.StateBatch()
                    .setFirstOffset(batch.firstOffset()).setLastOffset(batch.lastOffset()).setDeliveryState(batch.deliveryState())
                    .setDeliveryCount(batch.deliveryCount())).toList();
                var request = new WriteShareGroupStateRequestData().setGroupId(asked.groupTopicPartitionData().groupId())
                    .setTopics(List.of(new WriteShareGroupStateRequestData.WriteStateData().setTopicId(topic.topicId())
                        .setPartitions(List.of(new WriteShareGroupStateRequestData.PartitionData().setPartition(partition.partition())
                            .setStateEpoch(partition.stateEpoch()).setLeaderEpoch(partition.leaderEpoch())
                            .setStartOffset(partition.startOffset()).setDeliveryCompleteCount(partition.deliveryCompleteCount())
                            .setStateBatches(batches)))));
                return done(carriedOut(shard.writeState(request)), WriteShareGroupStateResult::from);
            }

            private <A, B> CompletableFuture<B> done(A answer, Function<A, B> as) {
                return CompletableFuture.completedFuture(as.apply(answer));
            }

            @Override
            public CompletableFuture<InitializeShareGroupStateResult> initializeState(InitializeShareGroupStateParameters asked) {
                throw new UnsupportedOperationException();
            }

            @Override
            public CompletableFuture<DeleteShareGroupStateResult> deleteState(DeleteShareGroupStateParameters asked) {
                throw new UnsupportedOperationException();
            }

            @Override
            public CompletableFuture<ReadShareGroupStateSummaryResult> readSummary(ReadShareGroupStateSummaryParameters asked) {
                throw new UnsupportedOperationException();
            }

            @Override
            public void stop() { }
        };
    }

    private record Image(Uuid topicId, int partitions) implements CoordinatorMetadataImage {
        @Override
        public Set<Uuid> topicIds() {
            return Set.of(topicId);
        }

        @Override
        public Set<String> topicNames() {
            return Set.of("t");
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(String name) {
            return name.equals("t") ? Optional.of(topic()) : Optional.empty();
        }

        @Override
        public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return id.equals(topicId) ? Optional.of(topic()) : Optional.empty();
        }

        private TopicMetadata topic() {
            return new TopicMetadata() {
                @Override
                public String name() {
                    return "t";
                }

                @Override
                public Uuid id() {
                    return topicId;
                }

                @Override
                public int partitionCount() {
                    return partitions;
                }

                @Override
                public List<String> partitionRacks(int partition) {
                    return List.of();
                }
            };
        }

        @Override
        public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override
        public long version() {
            return 1;
        }

        @Override
        public boolean isEmpty() {
            return false;
        }
    }
}

package kafka.server.share;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.partition.PartitionListener;
import org.apache.kafka.server.share.PartitionMetadataProvider;
import org.apache.kafka.server.storage.log.FetchIsolation;
import org.apache.kafka.storage.internals.log.LogOffsetMetadata;

/** The offsets of a log, as an operation gives them. */
record Offsets(JsonNode given) implements PartitionMetadataProvider {
    @Override
    public long offsetForEarliestTimestamp(TopicIdPartition partition, int leaderEpoch) {
        return given.get("earliest").asLong();
    }

    @Override
    public long offsetForLatestTimestamp(TopicIdPartition partition, int leaderEpoch) {
        return given.get("latest").asLong();
    }

    @Override
    public long offsetForTimestamp(TopicIdPartition partition, long timestamp, int leaderEpoch) {
        throw new UnsupportedOperationException();
    }

    @Override
    public LogOffsetMetadata endOffsetMetadata(TopicIdPartition partition, FetchIsolation isolation) {
        throw new UnsupportedOperationException();
    }

    @Override
    public int leaderEpoch(TopicIdPartition partition) {
        throw new UnsupportedOperationException();
    }

    @Override
    public boolean addPartitionListener(TopicIdPartition partition, PartitionListener listener) {
        return true;
    }

    @Override
    public void removePartitionListener(TopicIdPartition partition, PartitionListener listener) { }
}

import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescription;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescriptionPlugin;
import org.apache.kafka.coordinator.group.api.streams.StreamsTopologyDescriptionPermanentFailureException;

/** Keeps descriptions of topologies (KIP-1331) in memory, and fails where the group's name says so. */
public final class Descriptions implements StreamsGroupTopologyDescriptionPlugin {
    private final Map<String, StreamsGroupTopologyDescription> kept = new ConcurrentHashMap<>();

    @Override
    public CompletableFuture<Void> setTopology(String group, int epoch, StreamsGroupTopologyDescription told) {
        if (group.startsWith("refused")) {
            return failed("it is too large");
        }
        kept.put(group, told);
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletableFuture<StreamsGroupTopologyDescription> getTopology(String group, int epoch) {
        if (group.startsWith("unread")) {
            return failed("the store is down");
        }
        return CompletableFuture.completedFuture(kept.get(group));
    }

    @Override
    public CompletableFuture<Void> deleteTopology(String group) {
        if (group.startsWith("stuck")) {
            return failed("the store is read-only");
        }
        kept.remove(group);
        return CompletableFuture.completedFuture(null);
    }

    private static <T> CompletableFuture<T> failed(String why) {
        return CompletableFuture.failedFuture(new StreamsTopologyDescriptionPermanentFailureException(why));
    }

    @Override
    public void configure(Map<String, ?> settings) {
    }

    @Override
    public void close() {
    }
}

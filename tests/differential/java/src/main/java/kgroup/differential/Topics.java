package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.metadata.PartitionRecord;
import org.apache.kafka.common.metadata.RegisterBrokerRecord;
import org.apache.kafka.common.metadata.RemoveTopicRecord;
import org.apache.kafka.common.metadata.TopicRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.image.MetadataDelta;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;

/** The cluster's topics: a metadata image that changes as the program says. */
final class Topics {
    private static final int BROKERS = 4;
    private final Map<String, Uuid> ids = new TreeMap<>();
    private final Map<String, Integer> sizes = new TreeMap<>();
    private MetadataImage image;
    private MetadataDelta delta;
    private long version = 1;
    private long made = 0;
    private long createdVersion = 1;

    Topics(JsonNode topics, boolean racks) {
        delta = new MetadataDelta.Builder().setImage(MetadataImage.EMPTY).build();
        if (racks) {
            for (int broker = 0; broker < BROKERS; broker++) {
                delta.replay(new RegisterBrokerRecord().setBrokerId(broker).setRack("rack" + broker));
            }
        }
        topics.properties().forEach(topic -> create(topic.getKey(), topic.getValue().asInt()));
        image = delta.apply(new MetadataProvenance(version, 0, 0L, true));
    }

    /** A coordinator that has just loaded takes all topics for new ones. */
    void seenAnew() {
        createdVersion = version;
    }

    MetadataImage image() {
        return image;
    }

    CoordinatorMetadataImage wrapped() {
        return new KRaftCoordinatorMetadataImage(image);
    }

    Map<String, Integer> sizes() {
        return sizes;
    }

    Uuid id(String name) {
        return ids.getOrDefault(name, Uuid.ZERO_UUID);
    }

    String name(Uuid id) {
        return ids.entrySet().stream().filter(topic -> topic.getValue().equals(id)).map(Map.Entry::getKey)
            .findFirst().orElse("");
    }

    /** Carries out a change; null when there is nothing to change. */
    KRaftCoordinatorMetadataDelta change(JsonNode op) {
        String name = op.get("name").asText();
        boolean exists = ids.containsKey(name);
        if (exists == op.get("change").asText().equals("create")) {
            return null;
        }
        delta = new MetadataDelta.Builder().setImage(image).build();
        version++;
        switch (op.get("change").asText()) {
            case "create" -> create(name, op.get("partitions").asInt());
            case "grow" -> grow(name);
            default -> {
                delta.replay(new RemoveTopicRecord().setTopicId(ids.remove(name)));
                sizes.remove(name);
            }
        }
        image = delta.apply(new MetadataProvenance(version, 0, 0L, true));
        return new KRaftCoordinatorMetadataDelta(delta);
    }

    private void create(String name, int partitions) {
        Uuid id = new Uuid(77, ++made);
        ids.put(name, id);
        sizes.put(name, 0);
        delta.replay(new TopicRecord().setTopicId(id).setName(name));
        for (int i = 0; i < partitions; i++) {
            grow(name);
        }
        createdVersion = version;
    }

    private void grow(String name) {
        int number = sizes.merge(name, 1, Integer::sum) - 1;
        delta.replay(new PartitionRecord().setTopicId(ids.get(name)).setPartitionId(number)
            .setReplicas(List.of(number % BROKERS, (number + 1) % BROKERS)));
    }

    ObjectNode json() {
        ObjectNode node = Trace.JSON.createObjectNode();
        node.put("version", version).put("created", createdVersion);
        ArrayNode list = node.putArray("topics");
        CoordinatorMetadataImage seen = wrapped();
        for (String name : new ArrayList<>(ids.keySet())) {
            ObjectNode topic = list.addObject();
            topic.put("name", name).put("id", ids.get(name).toString()).put("partitions", sizes.get(name));
            ArrayNode racks = topic.putArray("racks");
            for (int i = 0; i < sizes.get(name); i++) {
                seen.topicMetadata(name).orElseThrow().partitionRacks(i).forEach(racks.addArray()::add);
            }
        }
        return node;
    }
}

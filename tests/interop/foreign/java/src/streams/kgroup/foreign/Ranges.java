package kgroup.foreign;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * What the consumer's own range assignor gives. A JSON line each on stdin: topics (name to a list of the racks of
 * each partition's replicas), members (id to topics, instance, rack). On stdout: member to topic to partitions.
 */
public final class Ranges {
    private static final ObjectMapper JSON = new ObjectMapper();

    private Ranges() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(JSON.writeValueAsString(assigned(JSON.readTree(line))));
        }
    }

    private static Map<String, Map<String, TreeSet<Integer>>> assigned(JsonNode group) {
        Map<String, List<PartitionInfo>> partitions = new HashMap<>();
        group.get("topics").properties().forEach(topic -> {
            List<PartitionInfo> infos = new ArrayList<>();
            for (JsonNode racks : topic.getValue()) {
                List<Node> replicas = new ArrayList<>();
                for (JsonNode rack : racks) {
                    replicas.add(new Node(replicas.size(), "h", 1, rack.isNull() ? null : rack.asText()));
                }
                Node[] nodes = replicas.toArray(new Node[0]);
                infos.add(new PartitionInfo(topic.getKey(), infos.size(), Node.noNode(), nodes, nodes));
            }
            partitions.put(topic.getKey(), infos);
        });
        Map<String, Subscription> subscriptions = new HashMap<>();
        group.get("members").properties().forEach(member -> {
            List<String> topics = new ArrayList<>();
            member.getValue().get("topics").forEach(topic -> topics.add(topic.asText()));
            JsonNode rack = member.getValue().get("rack");
            JsonNode instance = member.getValue().get("instance");
            Subscription subscription = new Subscription(topics, null, List.of(), -1, text(rack));
            subscription.setGroupInstanceId(text(instance));
            subscriptions.put(member.getKey(), subscription);
        });
        partitions.keySet().removeIf(topic -> subscriptions.values().stream().noneMatch(s -> s.topics().contains(topic)));
        Map<String, Map<String, TreeSet<Integer>>> told = new TreeMap<>();
        new RangeAssignor().assignPartitions(partitions, subscriptions).forEach((member, given) -> {
            Map<String, TreeSet<Integer>> byTopic = told.computeIfAbsent(member, name -> new TreeMap<>());
            for (TopicPartition each : given) {
                byTopic.computeIfAbsent(each.topic(), name -> new TreeSet<>()).add(each.partition());
            }
        });
        return told;
    }

    private static Optional<String> text(JsonNode value) {
        return value.isNull() ? Optional.empty() : Optional.of(value.asText());
    }
}

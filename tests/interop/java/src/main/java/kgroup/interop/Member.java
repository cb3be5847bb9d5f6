package kgroup.interop;

import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.CloseOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.common.TopicPartition;

/** A member that subscribes to patterns, may commit what it reads, and says how it closes. */
final class Member extends kgroup.foreign.Member {
    private final List<ConsumerRecord<String, String>> uncopied = new ArrayList<>();
    private final List<List<Object>> heard = Collections.synchronizedList(new ArrayList<>());
    private boolean commits;

    @Override
    protected Properties properties(JsonNode request) {
        commits = request.path("commits").asBoolean(false);
        Properties properties = super.properties(request);
        properties.putIfAbsent("metadata.max.age.ms", "1000");
        properties.putIfAbsent("group.protocol", "classic");
        return properties;
    }

    @Override
    protected void subscribe(JsonNode request) {
        if (!request.hasNonNull("pattern")) {
            super.subscribe(request);
        } else if (request.get("protocol").asText().equals("consumer")) {
            consumer.subscribe(new SubscriptionPattern(request.get("pattern").asText()), this);
        } else {
            consumer.subscribe(Pattern.compile(request.get("pattern").asText()), this);
        }
    }

    @Override
    protected void polled(ConsumerRecords<String, String> found) {
        found.forEach(uncopied::add);
        if (commits && !found.isEmpty()) {
            consumer.commitAsync();
        }
    }

    /** The records read since the last call, up to that value; in the polling thread only. */
    List<ConsumerRecord<String, String>> take(String upTo) {
        while (fatal == null && uncopied.stream().noneMatch(each -> each.value().equals(upTo))) {
            poll();
        }
        List<ConsumerRecord<String, String>> fresh = List.copyOf(uncopied);
        uncopied.clear();
        return fresh;
    }

    ConsumerGroupMetadata metadata() {
        return consumer.groupMetadata();
    }

    /** Null: as the client does by itself; true: leave the group; false: stay in it. */
    @Override
    protected void close(JsonNode leave) throws Exception {
        ask(() -> {
            running = false;
            CloseOptions options = CloseOptions.timeout(Duration.ofSeconds(10));
            if (leave.isBoolean()) {
                options.withGroupMembershipOperation(leave.asBoolean()
                        ? CloseOptions.GroupMembershipOperation.LEAVE_GROUP
                        : CloseOptions.GroupMembershipOperation.REMAIN_IN_GROUP);
            }
            consumer.close(options);
            return null;
        });
    }

    /** What the Javadoc shows: the positions of what is let go of are committed; else it will be read again. */
    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        note("revoked", partitions);
        forget(partitions);
        if (commits) {
            Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
            partitions.forEach(p -> positions.put(p, new OffsetAndMetadata(consumer.position(p))));
            consumer.commitSync(positions);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        note("assigned", partitions);
        super.onPartitionsAssigned(partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        note("lost", partitions);
        forget(partitions);
    }

    private void forget(Collection<TopicPartition> partitions) {
        uncopied.removeIf(each -> partitions.contains(new TopicPartition(each.topic(), each.partition())));
    }

    private void note(String callback, Collection<TopicPartition> partitions) {
        heard.add(List.of(callback, partitions.stream().map(TopicPartition::partition).sorted().toList()));
    }

    /** Each callback of the rebalance listener with its partitions, in their order. */
    List<List<Object>> heard() {
        synchronized (heard) {
            return List.copyOf(heard);
        }
    }
}

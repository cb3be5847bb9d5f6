package kgroup.differential;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.Group;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.OffsetAndMetadata;
import org.apache.kafka.coordinator.group.classic.ClassicGroup;
import org.apache.kafka.coordinator.group.classic.ClassicGroupMember;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup;
import org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsGroup;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;

/** The whole state of Kafka's coordinator as JSON: groups, offsets and timers. `ours.py` makes the same of ours. */
final class States {
    private final Map<String, Group> groups;
    private final Map<String, Map<String, Map<Integer, OffsetAndMetadata>>> offsets;
    private final Map<Long, Object> pending;
    private final Timers timers;

    States(GroupCoordinatorShard shard, Timers timers) {
        this.timers = timers;
        groups = field(field(shard, "groupMetadataManager"), "groups");
        Object manager = field(shard, "offsetMetadataManager");
        offsets = field(field(manager, "offsets"), "offsetsByGroup");
        pending = field(manager, "pendingTransactionalOffsets");
    }

    Map<String, Group> groups() {
        return groups;
    }

    ObjectNode json() {
        ObjectNode node = Trace.JSON.createObjectNode();
        ObjectNode byId = node.putObject("groups");
        groups.forEach((id, group) -> {
            if (group instanceof ClassicGroup classic) {
                byId.set(id, classic(classic));
            } else if (group instanceof ConsumerGroup consumer) {
                byId.set(id, consumer(consumer));
            } else if (group instanceof StreamsGroup streams) {
                byId.set(id, streams(streams));
            }
        });
        node.set("offsets", offsets(offsets));
        ObjectNode open = node.putObject("pending");
        pending.forEach((producer, held) -> {
            ObjectNode own = offsets(field(held, "offsetsByGroup"));
            if (!own.isEmpty()) {
                open.set(producer.toString(), own);
            }
        });
        ObjectNode due = node.putObject("timers");
        timers.all().forEach((key, timer) -> due.put(key, timer.deadlineMs()));
        return node;
    }

    private static ObjectNode classic(ClassicGroup group) {
        ObjectNode node = Trace.JSON.createObjectNode();
        node.put("type", "classic").put("state", group.stateAsString()).put("generation", group.generationId());
        node.put("protocol_type", group.protocolType().orElse(null));
        node.put("protocol", group.protocolName().orElse(null)).put("leader", group.leaderOrNull());
        ObjectNode members = node.putObject("members");
        for (ClassicGroupMember member : group.allMembers()) {
            ObjectNode one = members.putObject(member.memberId());
            one.put("instance", member.groupInstanceId().orElse(null));
            one.put("client", member.clientId()).put("host", member.clientHost());
            one.put("rebalance", member.rebalanceTimeoutMs()).put("session", member.sessionTimeoutMs());
            one.put("protocol_type", member.protocolType()).put("assignment", Hex.of(member.assignment()));
            one.put("new", member.isNew()).put("joining", member.isAwaitingJoin()).put("syncing", member.isAwaitingSync());
            ArrayNode protocols = one.putArray("protocols");
            member.supportedProtocols().forEach(p -> protocols.addArray().add(p.name()).add(Hex.of(p.metadata())));
        }
        Set<String> joining = field(group, "pendingJoinMembers");
        sorted(node, "pending_join", joining);
        sorted(node, "pending_sync", group.allPendingSyncMembers());
        return node.put("awaiting", group.numAwaitingJoinResponse());
    }

    private static ObjectNode consumer(ConsumerGroup group) {
        ObjectNode node = Trace.JSON.createObjectNode();
        node.put("type", "consumer").put("state", group.stateAsString()).put("epoch", group.groupEpoch());
        node.put("assignment_epoch", group.assignmentEpoch()).put("assigned_at", group.assignmentTimestamp());
        node.put("hash", group.metadataHash());
        ObjectNode members = node.putObject("members");
        group.members().forEach((id, member) -> members.set(id, member(member)));
        ObjectNode targets = node.putObject("targets");
        group.targetAssignment().forEach((id, target) -> targets.set(id, partitions(target.partitions())));
        ObjectNode resolved = node.putObject("resolved");
        group.resolvedRegularExpressions().forEach((pattern, found) -> {
            ObjectNode one = resolved.putObject(pattern).put("version", found.version()).put("at", found.timestamp());
            sorted(one, "topics", found.topics());
        });
        return node;
    }

    private static ObjectNode member(ConsumerGroupMember member) {
        ObjectNode node = Trace.JSON.createObjectNode();
        node.put("instance", member.instanceId()).put("rack", member.rackId()).put("client", member.clientId());
        node.put("host", member.clientHost()).put("rebalance", member.rebalanceTimeoutMs());
        sorted(node, "names", member.subscribedTopicNames());
        String pattern = member.subscribedTopicRegex();
        node.put("pattern", pattern == null ? "" : pattern).put("assignor", member.serverAssignorName().orElse(null));
        node.put("epoch", member.memberEpoch()).put("previous", member.previousMemberEpoch());
        node.put("state", member.state().name()).put("classic", member.useClassicProtocol());
        node.set("assigned", epochs(member.assignedPartitions()));
        node.set("revoking", epochs(member.partitionsPendingRevocation()));
        return node;
    }

    private static ObjectNode streams(StreamsGroup group) {
        ObjectNode node = Trace.JSON.createObjectNode();
        node.put("type", "streams").put("state", group.stateAsString()).put("epoch", group.groupEpoch());
        node.put("assignment_epoch", group.assignmentEpoch()).put("assigned_at", group.assignmentTimestamp());
        node.put("hash", group.metadataHash()).put("validated", group.validatedTopologyEpoch());
        node.put("topology", group.topology().map(StreamsTopology::topologyEpoch).orElse(-1));
        node.put("shutdown", group.getShutdownRequestMemberId().orElse(null));
        ObjectNode configs = node.putObject("configs");
        group.lastAssignmentConfigs().forEach(configs::put);
        ObjectNode members = node.putObject("members");
        group.members().forEach((id, member) -> members.set(id, member(member)));
        ObjectNode targets = node.putObject("targets");
        group.targetAssignment().forEach((id, target) -> {
            ObjectNode one = targets.putObject(id);
            one.set("active", tasks(target.activeTasks()));
            one.set("standby", tasks(target.standbyTasks()));
        });
        return node;
    }

    private static ObjectNode member(StreamsGroupMember member) {
        ObjectNode node = Trace.JSON.createObjectNode();
        node.put("instance", member.instanceId().orElse(null));
        node.put("rack", member.rackId().orElse(null)).put("client", member.clientId());
        node.put("host", member.clientHost()).put("rebalance", member.rebalanceTimeoutMs());
        node.put("process", member.processId()).put("topology", member.topologyEpoch());
        node.put("endpoint", member.userEndpoint().map(endpoint -> endpoint.host()).orElse(null));
        ObjectNode tags = node.putObject("tags");
        member.clientTags().forEach(tags::put);
        node.put("epoch", member.memberEpoch()).put("previous", member.previousMemberEpoch());
        node.put("state", member.state().name());
        node.set("assigned", held(member.assignedTasks()));
        node.set("revoking", held(member.tasksPendingRevocation()));
        return node;
    }

    private static ObjectNode held(TasksTupleWithEpochs tasks) {
        ObjectNode node = Trace.JSON.createObjectNode();
        ObjectNode active = node.putObject("active");
        tasks.activeTasksWithEpochs().forEach((subtopology, numbers) -> {
            ObjectNode one = active.putObject(subtopology);
            numbers.forEach((number, epoch) -> one.put(number.toString(), epoch));
        });
        node.set("standby", tasks(tasks.standbyTasks()));
        node.set("warmup", tasks(tasks.warmupTasks()));
        return node;
    }

    static ObjectNode tasks(Map<String, Set<Integer>> tasks) {
        ObjectNode node = Trace.JSON.createObjectNode();
        tasks.forEach((subtopology, numbers) -> new TreeSet<>(numbers).forEach(node.withArray(subtopology)::add));
        return node;
    }

    static ObjectNode offsetsOf(Map<String, Map<Integer, Long>> offsets) {
        ObjectNode node = Trace.JSON.createObjectNode();
        offsets.forEach((subtopology, numbers) -> {
            ObjectNode one = node.putObject(subtopology);
            numbers.forEach((number, offset) -> one.put(number.toString(), offset));
        });
        return node;
    }

    private static ObjectNode offsets(Map<String, Map<String, Map<Integer, OffsetAndMetadata>>> byGroup) {
        ObjectNode node = Trace.JSON.createObjectNode();
        byGroup.forEach((group, topics) -> topics.forEach((topic, parts) -> parts.forEach((number, stored) ->
            node.putArray(group + "/" + topic + "/" + number).add(stored.committedOffset)
                .add(stored.leaderEpoch.orElse(-1)).add(stored.metadata).add(stored.commitTimestampMs)
                .add(stored.expireTimestampMs.orElse(-1)).add(stored.topicId.toString()))));
        return node;
    }

    private static void sorted(ObjectNode node, String name, Collection<String> texts) {
        new TreeSet<>(texts).forEach(node.putArray(name)::add);
    }

    private static ObjectNode epochs(Map<Uuid, Map<Integer, Integer>> partitions) {
        ObjectNode node = Trace.JSON.createObjectNode();
        partitions.forEach((topic, numbers) -> {
            if (!numbers.isEmpty()) {
                ObjectNode one = node.putObject(topic.toString());
                numbers.forEach((number, epoch) -> one.put(number.toString(), epoch));
            }
        });
        return node;
    }

    private static ObjectNode partitions(Map<Uuid, Set<Integer>> partitions) {
        ObjectNode node = Trace.JSON.createObjectNode();
        partitions.forEach((topic, numbers) -> {
            if (!numbers.isEmpty()) {
                new TreeSet<>(numbers).forEach(node.putArray(topic.toString())::add);
            }
        });
        return node;
    }

    static void set(Object of, String name, Object value) {
        try {
            Field field = of.getClass().getDeclaredField(name);
            field.setAccessible(true);
            field.set(of, value);
        } catch (ReflectiveOperationException absent) {
            throw new IllegalStateException(absent);
        }
    }

    /** A private field's value; Kafka gives no other way to see all of its state. */
    @SuppressWarnings("unchecked")
    static <T> T field(Object of, String name) {
        try {
            Field field = of.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return (T) field.get(of);
        } catch (ReflectiveOperationException absent) {
            throw new IllegalStateException(absent);
        }
    }
}

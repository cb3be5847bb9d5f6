package kgroup.differential;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.StreamSupport;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.StreamsGroupDescribeRequestData;
import org.apache.kafka.common.message.StreamsGroupDescribeResponseData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.CopartitionGroup;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Endpoint;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.KeyValue;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Subtopology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TaskIds;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TaskOffset;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.TopicInfo;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData.Topology;
import org.apache.kafka.common.message.StreamsGroupHeartbeatResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.RequestContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.group.streams.StreamsGroupHeartbeatResult;

/** The streams protocol's operations; the service's own checks of a request come first. */
final class StreamsOps {
    private static final short VERSION = Release.STREAMS;
    /** Internal topics that a group missed, with the partitions they should have. */
    final Map<String, Integer> missing = new TreeMap<>();
    private final Player player;
    private long made = 0;

    StreamsOps(Player player) {
        this.player = player;
    }

    void play(JsonNode op) {
        if (op.get("do").asText().equals("streams_describe")) {
            describe(op);
        } else {
            heartbeat(op);
        }
    }

    private void describe(JsonNode op) {
        List<String> ids = Player.texts(op.get("groups"));
        StreamsGroupDescribeRequestData request = new StreamsGroupDescribeRequestData().setGroupIds(ids);
        int ticket = player.trace.request(request, VERSION, "admin");
        player.carryOut(ticket, VERSION,
            () -> new CoordinatorResult<>(List.of(), new StreamsGroupDescribeResponseData()
                .setGroups(Release.described(player.kafka.shard, ids, player.kafka.committed()))),
            reply -> reply,
            (error, message) -> {
                throw new IllegalStateException(error + " " + message);
            });
    }

    private void heartbeat(JsonNode op) {
        Client client = player.client(op.get("as").asText());
        if (op.path("member").asText().equals("fresh")) {
            client.forget();
            client.memberId = new Uuid(0x73747265616dL, ++made).toString();
        }
        StreamsGroupHeartbeatRequestData request = request(op, client);
        int ticket = player.trace.request(request, VERSION, client.name);
        RequestContext context = Player.context(ApiKeys.STREAMS_GROUP_HEARTBEAT, VERSION, client.name);
        StreamsGroupHeartbeatResult refusal = player.service.refusal(
            service -> service.streamsGroupHeartbeat(context, request));
        if (refusal != null) {
            player.trace.reply(ticket, refusal.data(), VERSION);
            return;
        }
        player.carryOut(ticket, VERSION,
            () -> player.kafka.shard.streamsGroupHeartbeat(context, request),
            result -> {
                missing.clear();
                result.creatableTopics().forEach((name, topic) -> missing.put(name, topic.numPartitions()));
                return told(op, client, request, result.data());
            },
            (error, message) -> {
                if (error == Errors.FENCED_MEMBER_EPOCH || error == Errors.UNKNOWN_MEMBER_ID) {
                    client.epoch = 0;
                    client.loseTasks();
                }
                return new StreamsGroupHeartbeatResponseData().setErrorCode(error.code()).setErrorMessage(message);
            });
    }

    private StreamsGroupHeartbeatRequestData request(JsonNode op, Client client) {
        StreamsGroupHeartbeatRequestData request = new StreamsGroupHeartbeatRequestData()
            .setGroupId(op.get("group").asText())
            .setMemberId(op.path("member").asText().equals("fresh") ? client.memberId
                : player.member(op, "member", client))
            .setMemberEpoch(Player.epoch(op, client))
            .setEndpointInformationEpoch(op.path("endpoints").asInt(client.endpointEpoch))
            .setInstanceId(Player.text(op, "instance")).setRackId(Player.text(op, "rack"))
            .setRebalanceTimeoutMs(op.path("rebalance").asInt(-1)).setProcessId(Player.text(op, "process"))
            .setShutdownApplication(op.path("shutdown").asBoolean());
        if (op.has("host")) {
            request.setUserEndpoint(new Endpoint().setHost(op.get("host").asText()).setPort(9));
        }
        if (op.has("tags")) {
            request.setClientTags(Player.texts(op.get("tags")).stream()
                .map(tag -> new KeyValue().setKey(tag).setValue("v-" + tag)).toList());
        }
        if (op.has("topology")) {
            request.setTopology(topology(op.get("topology")));
        }
        request.setTaskOffsets(offsets(Player.text(op, "offsets"))).setTaskEndOffsets(offsets(Player.text(op, "ends")));
        String owned = Player.text(op, "owned");
        if (owned != null) {
            boolean own = owned.equals("own");
            request.setActiveTasks(own ? tasks(client.active) : odd(owned));
            request.setStandbyTasks(own ? tasks(client.standby) : List.of());
            request.setWarmupTasks(owned.equals("warm") ? odd(owned) : List.of());
        }
        return request;
    }

    private static List<TaskOffset> offsets(String which) {
        if (which == null) {
            return null;
        }
        List<TaskOffset> listed = new ArrayList<>();
        listed.add(new TaskOffset().setSubtopologyId("0").setPartition(0).setOffset(which.length() * 7L));
        if (!which.equals("some")) {
            listed.add(new TaskOffset().setSubtopologyId("1").setPartition(which.equals("many") ? 1 : 0).setOffset(5));
            listed.add(new TaskOffset().setSubtopologyId(which.equals("many") ? "0" : "1")
                .setPartition(which.equals("many") ? 1 : 0).setOffset(9));
        }
        return listed;
    }

    private static List<TaskIds> odd(String owned) {
        return owned.equals("none") ? List.of()
            : List.of(new TaskIds().setSubtopologyId(owned.equals("stranger") ? "9" : "0").setPartitions(List.of(0, 7)));
    }

    private static List<TaskIds> tasks(Map<String, List<Integer>> held) {
        List<TaskIds> listed = new ArrayList<>();
        held.forEach((subtopology, numbers) -> listed.add(
            new TaskIds().setSubtopologyId(subtopology).setPartitions(numbers)));
        return listed;
    }

    private static Topology topology(JsonNode node) {
        List<Subtopology> parts = new ArrayList<>();
        for (JsonNode part : node.get("parts")) {
            parts.add(new Subtopology().setSubtopologyId(part.get("id").asText())
                .setSourceTopics(Player.texts(part.path("sources")))
                .setRepartitionSinkTopics(Player.texts(part.path("sinks")))
                .setRepartitionSourceTopics(infos(part.path("repartition")))
                .setStateChangelogTopics(infos(part.path("changelogs")))
                .setCopartitionGroups(StreamSupport.stream(part.path("together").spliterator(), false)
                    .map(StreamsOps::together).toList()));
        }
        return new Topology().setEpoch(node.get("epoch").asInt()).setSubtopologies(parts);
    }

    private static CopartitionGroup together(JsonNode group) {
        return new CopartitionGroup().setSourceTopics(shorts(group.get("sources")))
            .setRepartitionSourceTopics(shorts(group.get("repartition")));
    }

    private static List<Short> shorts(JsonNode list) {
        return StreamSupport.stream(list.spliterator(), false).map(number -> (short) number.asInt()).toList();
    }

    private static List<TopicInfo> infos(JsonNode list) {
        return StreamSupport.stream(list.spliterator(), false).map(info -> new TopicInfo()
            .setName(info.get("name").asText()).setPartitions(info.path("partitions").asInt())
            .setReplicationFactor((short) info.path("replicas").asInt())
            .setTopicConfigs(List.of(new KeyValue().setKey("cleanup.policy").setValue("compact")))).toList();
    }

    private static StreamsGroupHeartbeatResponseData told(
        JsonNode op, Client client, StreamsGroupHeartbeatRequestData request, StreamsGroupHeartbeatResponseData reply
    ) {
        if (request.memberEpoch() < 0) {
            client.epoch = 0;
            client.loseTasks();
            return reply;
        }
        client.memberId = reply.memberId();
        client.epoch(reply.memberEpoch());
        client.endpointEpoch = reply.endpointInformationEpoch();
        if (reply.activeTasks() != null && !op.path("deaf").asBoolean()) {
            client.loseTasks();
            reply.activeTasks().forEach(ids -> client.active.put(ids.subtopologyId(), ids.partitions()));
            reply.standbyTasks().forEach(ids -> client.standby.put(ids.subtopologyId(), ids.partitions()));
        }
        return reply;
    }
}
